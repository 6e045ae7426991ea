"""Many schemas on many machines: `guided.serving.ray` maps them over workers that each hold the model and the engines.

This process writes the results as they come; the next run, here or on Ray, does what is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from guided.eval.corpus import SchemaRow
from guided.eval.engines.names import EngineName
from guided.eval.records import Record, RecordLog
from guided.eval.resumable import keep
from guided.eval.run import Task, tasks_left
from guided.eval.settings import Settings
from guided.serving.ray.mapping import Worker, map_on_ray

__all__ = ["run_on_ray"]


class _Worker(Worker):
    def load(self) -> Any:
        from guided.eval.evaluator import Evaluator

        return Evaluator(Settings(**self.told["settings"]), [EngineName(name) for name in self.told["engines"]])

    def answer(self, loaded: Any, task: dict[str, Any]) -> str:
        row = SchemaRow(task["id"], task["split"], task["schema"])
        return str(loaded.evaluate(row, EngineName(task["engine"])).line())


def run_on_ray(
    tasks: Sequence[Task],
    settings: Settings,
    log: RecordLog,
    *,
    workers: int,
    on_stage: Callable[[str], None] | None = None,
    on_record: Callable[[Record], None] | None = None,
) -> None:
    """Run the tasks that are left on ``workers`` actors; see `guided.serving.ray.mapping.map_on_ray`."""
    left = tasks_left(tasks, settings, log)
    map_on_ray(
        _Worker,
        {"settings": settings.as_record(), "engines": list(dict.fromkeys(engine.value for _, engine in left))},
        [{"id": row.id, "split": row.split, "schema": row.schema, "engine": engine.value} for row, engine in left],
        workers=workers,
        model=settings.model,
        device=settings.device,
        on_line=lambda line: keep(Record.of(json.loads(line)), log, on_record),
        on_stage=on_stage,
    )
