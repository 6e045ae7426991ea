"""Items by methods, here or on Ray, resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from guided.eval.decoding_methods.methods import METHODS
from guided.eval.decoding_methods.names import MethodName, Mode, TaskName
from guided.eval.decoding_methods.results import DecodingLog, DecodingRecord, DecodingSettings, key_of
from guided.eval.decoding_methods.tasks import DecodingTask, read_items
from guided.eval.resumable import Resumable, keep
from guided.serving.ray.mapping import Worker, map_on_ray

if TYPE_CHECKING:
    from guided.eval.decoding_methods.evaluator import DecodingEvaluator

__all__ = ["Task", "records_of", "run_here", "run_on_ray", "tasks_for", "tasks_left"]

Task = tuple[DecodingTask, MethodName]
"""An item and the method that answers it."""


def tasks_for(
    tasks: Sequence[TaskName], modes: Sequence[Mode], methods: Sequence[MethodName], limit: int | None
) -> list[Task]:
    """Every item with every method; the methods take turns at going first, so that none always fills the caches."""
    found: list[Task] = []
    items = [item for task in tasks for mode in modes for item in read_items(task, mode, limit)]
    for number, item in enumerate(items):
        turn = number % len(methods)
        found += [(item, method) for method in (*methods[turn:], *methods[:turn]) if item.mode in METHODS[method].modes]
    return found


def _evaluator(settings: DecodingSettings, on_stage: Callable[[str], None] | None) -> DecodingEvaluator:
    from guided.eval.decoding_methods.evaluator import DecodingEvaluator

    return DecodingEvaluator(settings, on_stage)


_TASKS: Resumable[DecodingTask, MethodName, DecodingSettings, DecodingRecord] = Resumable(key_of, _evaluator)
tasks_left, records_of, run_here = _TASKS.tasks_left, _TASKS.records_of, _TASKS.run_here


def run_on_ray(
    tasks: Sequence[Task],
    settings: DecodingSettings,
    log: DecodingLog,
    *,
    workers: int,
    on_stage: Callable[[str], None] | None = None,
    on_record: Callable[[DecodingRecord], None] | None = None,
) -> None:
    """As `guided.eval.distributed.run_on_ray`; times of several machines are not comparable."""
    map_on_ray(
        _Worker,
        settings.as_record(),
        [
            {"task": item.task, "id": item.id, "mode": item.mode, "prompt": item.prompt, "about": dict(item.about),
             "method": method}
            for item, method in tasks_left(tasks, settings, log)
        ],
        workers=workers,
        model=settings.model or "the packaged models",
        device=settings.device,
        on_line=lambda line: keep(DecodingRecord.of(json.loads(line)), log, on_record),
        on_stage=on_stage,
    )  # fmt: skip


class _Worker(Worker):
    def load(self) -> Any:
        from guided.eval.decoding_methods.evaluator import DecodingEvaluator

        return DecodingEvaluator(DecodingSettings(**self.told))

    def answer(self, loaded: Any, task: dict[str, Any]) -> str:
        item = DecodingTask(TaskName(task["task"]), task["id"], Mode(task["mode"]), task["prompt"], task["about"])
        return str(loaded.evaluate(item, MethodName(task["method"])).line())
