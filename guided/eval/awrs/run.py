"""Many problems by several methods, here or on Ray, resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from guided.eval.awrs.methods import MethodName
from guided.eval.awrs.problems import Problem, TaskName
from guided.eval.awrs.results import AwrsLog, AwrsRecord, AwrsSettings, key_of
from guided.eval.distributed import Worker, map_on_ray

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


def tasks_left(tasks: Sequence[Task], settings: AwrsSettings, log: AwrsLog) -> list[Task]:
    """The tasks whose results are not in the file yet."""
    return [(problem, method) for problem, method in tasks if key_of(problem, method, settings) not in log.records]


def records_of(tasks: Sequence[Task], settings: AwrsSettings, log: AwrsLog) -> list[AwrsRecord]:
    """The results of exactly these tasks, as far as they are there."""
    found = (log.records.get(key_of(problem, method, settings)) for problem, method in tasks)
    return [record for record in found if record is not None]


def run_here(
    tasks: Sequence[Task],
    settings: AwrsSettings,
    log: AwrsLog,
    *,
    on_stage: Callable[[str], None] | None = None,
    on_record: Callable[[AwrsRecord], None] | None = None,
) -> None:
    """Run the tasks that are left, one after the other; each result is on the disk before the next task begins."""
    left = tasks_left(tasks, settings, log)
    if not left:
        return
    from guided.eval.awrs.evaluator import AwrsEvaluator

    evaluator = AwrsEvaluator(settings, on_stage=on_stage)
    for problem, method in left:
        _keep(evaluator.evaluate(problem, method), log, on_record)


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
    told = settings.as_record()
    map_on_ray(
        _Worker,
        [
            {"settings": told, "task": problem.task, "id": problem.id, "content": problem.content, "method": method}
            for problem, method in tasks_left(tasks, settings, log)
        ],
        workers=workers,
        model=settings.model,
        device=settings.device,
        on_line=lambda line: _keep(AwrsRecord.of(json.loads(line)), log, on_record),
        on_stage=on_stage,
    )


def _keep(record: AwrsRecord, log: AwrsLog, on_record: Callable[[AwrsRecord], None] | None) -> None:
    log.append(record)
    if on_record is not None:
        on_record(record)


class _Worker(Worker):
    def load(self, task: dict[str, Any]) -> Any:
        from guided.eval.awrs.evaluator import AwrsEvaluator

        return AwrsEvaluator(AwrsSettings(**task["settings"]))

    def answer(self, evaluator: Any, task: dict[str, Any]) -> str:
        problem = Problem(TaskName(task["task"]), task["id"], task["content"])
        return str(evaluator.evaluate(problem, MethodName(task["method"])).line())
