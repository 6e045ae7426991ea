"""Tasks with results in a file: which are left, and running these one after the other.  A task is an item and a method.

What an item and a method are is each evaluation's own, and so is how they travel to Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from guided.eval.records import Line, LineLog

__all__ = ["Evaluates", "Resumable", "keep"]

Item = TypeVar("Item")
Method = TypeVar("Method")
Settings = TypeVar("Settings")
Kept = TypeVar("Kept", bound=Line)
Asked = TypeVar("Asked", contravariant=True)
By = TypeVar("By", contravariant=True)
Found = TypeVar("Found", covariant=True)


class Evaluates(Protocol[Asked, By, Found]):
    """A loaded model that answers tasks."""

    def evaluate(self, item: Asked, method: By, /) -> Found:
        """The result of a method on an item."""
        ...


class Resumable(Generic[Item, Method, Settings, Kept]):
    """The tasks of one evaluation; ``key_of`` gives a result's key, ``evaluator`` loads what answers tasks."""

    def __init__(
        self,
        key_of: Callable[[Item, Method, Settings], str],
        evaluator: Callable[[Settings, Callable[[str], None] | None], Evaluates[Item, Method, Kept]],
    ) -> None:
        self._key_of = key_of
        self.evaluator = evaluator

    def tasks_left(
        self, tasks: Sequence[tuple[Item, Method]], settings: Settings, log: LineLog[Kept]
    ) -> list[tuple[Item, Method]]:
        """The tasks whose results are not in the file yet."""
        return [(item, method) for item, method in tasks if self._key_of(item, method, settings) not in log.records]

    def records_of(self, tasks: Sequence[tuple[Item, Method]], settings: Settings, log: LineLog[Kept]) -> list[Kept]:
        """The results of exactly these tasks, as far as they are there; the file may hold those of other settings."""
        found = (log.records.get(self._key_of(item, method, settings)) for item, method in tasks)
        return [record for record in found if record is not None]

    def run_here(
        self,
        tasks: Sequence[tuple[Item, Method]],
        settings: Settings,
        log: LineLog[Kept],
        *,
        on_stage: Callable[[str], None] | None = None,
        on_record: Callable[[Kept], None] | None = None,
    ) -> None:
        """Run the tasks that are left, one after the other; each result is on the disk before the next task begins.

        An interruption loses the task in progress, which the next run does again, and nothing else.
        """
        left = self.tasks_left(tasks, settings, log)
        if left:
            evaluator = self.evaluator(settings, on_stage)
            for item, method in left:
                keep(evaluator.evaluate(item, method), log, on_record)


def keep(record: Kept, log: LineLog[Kept], on_record: Callable[[Kept], None] | None) -> None:
    """Write a result to its file, and report it."""
    log.append(record)
    if on_record is not None:
        on_record(record)
