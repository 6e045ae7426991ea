"""Many problems by several methods, here or on Ray, resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from guided.eval.awrs.methods import MethodName
from guided.eval.awrs.problems import Problem, TaskName
from guided.eval.awrs.results import AwrsLog, AwrsRecord, AwrsSettings, key_of
from guided.eval.resumable import Resumable, keep
from guided.serving.ray.mapping import Worker, map_on_ray

if TYPE_CHECKING:
    from guided.eval.awrs.evaluator import AwrsEvaluator

__all__ = ["Task", "records_of", "run_here", "run_on_ray", "tasks_for", "tasks_left"]

Task = tuple[Problem, MethodName]
"""A problem and the method that answers it."""


def tasks_for(problems: Sequence[Problem], methods: Sequence[MethodName]) -> list[Task]:
    """Every problem with every method; the methods take turns at going first, so that none always compiles for others.

    >>> from guided.eval.awrs.problems import Problem, TaskName
    >>> [(p.id, m.value) for p, m in tasks_for([Problem(TaskName.JSON, "a", True)], [MethodName.BASE, MethodName.AWRS])]
    [('a', 'base'), ('a', 'awrs-smc')]
    """
    tasks: list[Task] = []
    for number, problem in enumerate(problems):
        turn = number % len(methods)
        tasks += [(problem, method) for method in (*methods[turn:], *methods[:turn])]
    return tasks


def _evaluator(settings: AwrsSettings, on_stage: Callable[[str], None] | None) -> AwrsEvaluator:
    from guided.eval.awrs.evaluator import AwrsEvaluator

    return AwrsEvaluator(settings, on_stage=on_stage)


_TASKS: Resumable[Problem, MethodName, AwrsSettings, AwrsRecord] = Resumable(key_of, _evaluator)
tasks_left, records_of, run_here = _TASKS.tasks_left, _TASKS.records_of, _TASKS.run_here


def run_on_ray(
    tasks: Sequence[Task],
    settings: AwrsSettings,
    log: AwrsLog,
    *,
    workers: int,
    on_stage: Callable[[str], None] | None = None,
    on_record: Callable[[AwrsRecord], None] | None = None,
) -> None:
    """As `guided.eval.distributed.run_on_ray`; databases must lie at the same path on every machine."""
    map_on_ray(
        _Worker,
        settings.as_record(),
        [
            {"task": problem.task, "id": problem.id, "content": problem.content, "method": method}
            for problem, method in tasks_left(tasks, settings, log)
        ],
        workers=workers,
        model=settings.model,
        device=settings.device,
        on_line=lambda line: keep(AwrsRecord.of(json.loads(line)), log, on_record),
        on_stage=on_stage,
    )


class _Worker(Worker):
    def load(self) -> Any:
        from guided.eval.awrs.evaluator import AwrsEvaluator

        return AwrsEvaluator(AwrsSettings(**self.told))

    def answer(self, loaded: Any, task: dict[str, Any]) -> str:
        problem = Problem(TaskName(task["task"]), task["id"], task["content"])
        return str(loaded.evaluate(problem, MethodName(task["method"])).line())
