"""The tasks of an evaluation in several processes of this machine, each of which loads the model once.

This process writes the results as they come; the next run, in however many processes, does what is left.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from guided.eval.records import Line, LineLog
from guided.eval.resumable import Evaluates, Resumable, keep

__all__ = ["run_in_processes"]

Item = TypeVar("Item")
Method = TypeVar("Method")
Settings = TypeVar("Settings")
Kept = TypeVar("Kept", bound=Line)

_evaluator: Evaluates[Any, Any, Any] | None = None
"""What a worker process loaded."""


def _load(evaluator: Callable[[Any, None], Evaluates[Any, Any, Any]], settings: Any) -> None:
    import torch

    global _evaluator
    torch.set_num_threads(1)  # There is a process for each processor already.
    _evaluator = evaluator(settings, None)


def _answer(item: Any, methods: Sequence[Any]) -> list[Any]:
    assert _evaluator is not None
    return [_evaluator.evaluate(item, method) for method in methods]


def run_in_processes(
    asked: Resumable[Item, Method, Settings, Kept],
    tasks: Sequence[tuple[Item, Method]],
    settings: Settings,
    log: LineLog[Kept],
    *,
    workers: int,
    on_stage: Callable[[str], None] | None = None,
    on_record: Callable[[Kept], None] | None = None,
) -> None:
    """Run the tasks that are left in ``workers`` processes, all methods of an item in one; see `Resumable.run_here`.

    An interruption loses the items in progress.  Items, methods, settings and records travel by pickling.
    """
    of_items: dict[int, tuple[Item, list[Method]]] = {}
    for item, method in asked.tasks_left(tasks, settings, log):
        of_items.setdefault(id(item), (item, []))[1].append(method)
    if not of_items:
        return
    if on_stage is not None:
        on_stage(f"starting {workers} processes")
    spawned = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, spawned, _load, (asked.evaluator, settings))
    try:
        for done in as_completed([pool.submit(_answer, item, methods) for item, methods in of_items.values()]):
            for record in done.result():
                keep(record, log, on_record)
    finally:
        pool.shutdown(cancel_futures=True)
