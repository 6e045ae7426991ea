"""Many schemas through several engines on this machine, resumable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from guided.eval.corpus import SchemaRow
from guided.eval.engines.names import EngineName
from guided.eval.records import Record, RecordLog
from guided.eval.settings import Settings, result_key

if TYPE_CHECKING:
    from guided.eval.evaluator import Evaluator
    from guided.eval.isolation import IsolatedEvaluator

__all__ = ["Task", "records_of", "run_here", "tasks_for", "tasks_left"]

Task = tuple[SchemaRow, EngineName]
"""A schema and the engine that it goes through."""


def tasks_for(rows: Sequence[SchemaRow], engines: Sequence[EngineName]) -> list[Task]:
    """Every row with every engine, row by row; the engines take turns at going first, so that none is always warm."""
    tasks: list[Task] = []
    for number, row in enumerate(rows):
        turn = number % len(engines)
        tasks += [(row, engine) for engine in (*engines[turn:], *engines[:turn])]
    return tasks


def tasks_left(tasks: Sequence[Task], settings: Settings, log: RecordLog) -> list[Task]:
    """The tasks whose results are not in the file yet."""
    return [(row, engine) for row, engine in tasks if result_key(row, engine, settings) not in log.records]


def records_of(tasks: Sequence[Task], settings: Settings, log: RecordLog) -> list[Record]:
    """The results of exactly these tasks, as far as they are there; the file may hold those of other settings too."""
    found = (log.records.get(result_key(row, engine, settings)) for row, engine in tasks)
    return [record for record in found if record is not None]


def run_here(
    tasks: Sequence[Task],
    settings: Settings,
    log: RecordLog,
    *,
    on_stage: Callable[[str], None] | None = None,
    on_record: Callable[[Record], None] | None = None,
    isolate: bool = False,
) -> None:
    """Run the tasks that are left, one after the other; each result is on the disk before the next task begins.

    ``isolate`` runs them in a process that can be killed, see `guided.eval.isolation`.

    An interruption loses the task in progress, which the next run does again, and nothing else.
    """
    left = tasks_left(tasks, settings, log)
    if not left:
        return
    engines = list(dict.fromkeys(engine for _, engine in left))
    with _evaluator(settings, engines, on_stage, isolate) as evaluator:
        for row, engine in left:
            record = evaluator.evaluate(row, engine)
            log.append(record)
            if on_record is not None:
                on_record(record)


def _evaluator(
    settings: Settings, engines: list[EngineName], on_stage: Callable[[str], None] | None, isolate: bool
) -> AbstractContextManager[Evaluator | IsolatedEvaluator]:
    if isolate:
        from guided.eval.isolation import IsolatedEvaluator

        return IsolatedEvaluator(settings, engines, on_stage=on_stage)
    from guided.eval.evaluator import Evaluator

    return nullcontext(Evaluator(settings, engines, on_stage=on_stage))
