"""Many texts by one model on one machine: continuous batching, each text with its own constraint.  No HTTP here.

* `jobs`: `Job`, what is asked for, and `events`: what comes back, token by token, through a `Stream`.
* `limits`: `SchedulerLimits`; `refusals`: `Busy` and `Closing`, what a scheduler raises instead of taking a job.
* To come: ``Scheduler(model: LoadedModel, limits)`` with ``submit(job) -> Stream``, ``await run(function, client=)``,
  whose function gets a `guided.lm.LanguageModel` whose passes take turns with the batch and raise `Cancelled` once the
  awaiting task is cancelled, ``counters``, ``await close(grace)``; and ``Compiler(vocabulary, limits)`` with
  ``await compiled(request) -> Constrains`` for `guided.serving.Request` or anything hashable with such a ``grammar``.
"""

from guided.server.scheduling.events import Alternative, Event, Failed, Finished, Reason, Token
from guided.server.scheduling.jobs import Job
from guided.server.scheduling.limits import SchedulerLimits
from guided.server.scheduling.refusals import Busy, Cancelled, Closing
from guided.server.scheduling.stream import Stream

__all__ = [
    "Alternative",
    "Busy",
    "Cancelled",
    "Closing",
    "Event",
    "Failed",
    "Finished",
    "Job",
    "Reason",
    "SchedulerLimits",
    "Stream",
    "Token",
]
