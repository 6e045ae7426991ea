"""Many texts by one model on one machine: continuous batching, each text with its own constraint.  No HTTP here.

* `jobs`: `Job`, what is asked for, and `events`: what comes back, token by token, through a `Stream`.
* `limits`: `SchedulerLimits`; `refusals`: `Busy` and `Closing`, what a scheduler raises instead of taking a job.
* `scheduler`: `Scheduler`, a thread that runs `lane`: the rows of a batch.  `growing` is one of them, `laws` draws
  its tokens, `masking` fills its masks, `writer` writes its text.  `runs` is for what runs the model itself.
* `compiler`: `Compiler`, grammars beside the event loop.  `handing_over`: threads that share the interpreter.
"""

from guided.server.scheduling.compiler import Asked, Compiler, CompilerLimits
from guided.server.scheduling.counters import Counters
from guided.server.scheduling.events import Alternative, Event, Failed, Finished, Reason, Token
from guided.server.scheduling.jobs import Job
from guided.server.scheduling.limits import SchedulerLimits
from guided.server.scheduling.refusals import Busy, Cancelled, Closing
from guided.server.scheduling.scheduler import Scheduler
from guided.server.scheduling.stream import Stream

__all__ = [
    "Alternative",
    "Asked",
    "Busy",
    "Cancelled",
    "Closing",
    "Compiler",
    "CompilerLimits",
    "Counters",
    "Event",
    "Failed",
    "Finished",
    "Job",
    "Reason",
    "Scheduler",
    "SchedulerLimits",
    "Stream",
    "Token",
]
