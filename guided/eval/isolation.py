"""An evaluator in a process of its own: an engine that hangs, eats all memory or crashes ends only that process.

A limit of seconds cannot interrupt compiled code from within (see `guided.eval.time_limit`), and the index of a large
schema can take an engine an hour.  From outside it can: the process is killed, the schema gets its record, and the next
one a new process, at the cost of loading the model again.  Times are measured inside, so they are the same as without.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from guided.errors import GuidedError
from guided.eval.corpus import SchemaRow
from guided.eval.engines.names import EngineName
from guided.eval.records import Outcome, Record
from guided.eval.settings import Settings, result_key

__all__ = ["IsolatedEvaluator"]

GRACE_SECONDS = 5.0
"""How much later than the evaluator's own limits the process is killed; reading a prompt and judging count too."""
START_SECONDS = 1800.0
"""For loading a model, which may have to be fetched."""


class IsolatedEvaluator:
    """`guided.eval.evaluator.Evaluator` in another process, with the same ``evaluate``, for a ``with`` statement."""

    def __init__(
        self,
        settings: Settings,
        engines: Sequence[EngineName],
        *,
        on_stage: Callable[[str], None] | None = None,
    ) -> None:
        """Start the process; raises what the evaluator raises when it cannot be made."""
        self.settings = settings
        self._engines = list(engines)
        self._report = on_stage or (lambda stage: None)
        self._process: Any = None
        self._pipe: Any = None
        self._start()

    def evaluate(self, row: SchemaRow, engine: EngineName) -> Record:
        """The result for a schema; a process that had to be killed, or died, is one of the results."""
        if self._process is None:
            self._start()
        self._pipe.send((row, engine))
        seconds = self.settings.compile_seconds
        known: dict[str, Any] = {
            "key": result_key(row, engine, self.settings),
            "id": row.id,
            "split": row.split,
            "engine": engine.value,
        }
        for outcome, then in (
            (Outcome.COMPILE_TIME, self.settings.generate_seconds),
            (Outcome.GENERATE_TIME, 0.0),
        ):
            answer = self._answer(seconds + GRACE_SECONDS)
            if isinstance(answer, Record):
                return answer
            if answer is None:
                what = "compiling" if outcome is Outcome.COMPILE_TIME else "generating"
                self._stop()
                reason = f"{what} took longer than {seconds:g} s and could not be interrupted: its process was killed"
                return Record(**known, outcome=outcome, reason=reason)
            if isinstance(answer, EOFError):
                code = self._stop()
                stage = Outcome.REFUSED if outcome is Outcome.COMPILE_TIME else Outcome.CRASHED
                return Record(**known, outcome=stage, reason=f"the process died ({_ending(code)})")
            seconds = then  # it said that compiling is done
        raise AssertionError("an evaluator says twice that it has compiled")

    def __enter__(self) -> IsolatedEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self) -> None:
        # Not forked: threads of torch do not survive it.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.settings, self._engines), daemon=True)
        self._process.start()
        theirs.close()
        while True:
            answer = self._answer(START_SECONDS)
            if isinstance(answer, str):
                self._report(answer)
            elif answer is True:
                return
            else:
                code = self._stop()
                if isinstance(answer, GuidedError):
                    raise answer
                raise GuidedError(
                    f"the process of the evaluation did not start: {_ending(code)}", remedy="Run it with --no-isolate."
                )

    def _answer(self, seconds: float) -> Any:
        """What the process sends; None when it does not in time, the `EOFError` when it is gone."""
        try:
            return self._pipe.recv() if self._pipe.poll(seconds) else None
        except EOFError as error:
            return error
        except OSError:
            return EOFError()

    def _stop(self) -> int | None:
        """End the process and give its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        self._pipe.close()
        if process.is_alive():
            process.join(0.5)
        if process.is_alive():
            process.kill()
        process.join()
        code: int | None = process.exitcode
        return code


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"


def _serve(pipe: Connection, settings: Settings, engines: list[EngineName]) -> None:
    """What the process runs: an evaluator that answers until the pipe closes."""
    # Ctrl-C reaches the whole group; what follows from it is decided by the parent alone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from guided.eval.evaluator import Evaluator

    try:
        evaluator = Evaluator(settings, engines, on_stage=pipe.send)
    except GuidedError as error:
        pipe.send(error)
        return
    pipe.send(True)
    while True:
        try:
            row, engine = pipe.recv()
        except EOFError:
            return
        pipe.send(evaluator.evaluate(row, engine, on_compiled=lambda: pipe.send(False)))
