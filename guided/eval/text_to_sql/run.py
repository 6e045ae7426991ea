"""Many questions by several methods, here or on Ray, resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from guided.eval.resumable import Resumable, keep
from guided.eval.text_to_sql.questions import SqlQuestion
from guided.eval.text_to_sql.results import SqlLog, SqlMethod, SqlRecord, SqlSettings, key_of
from guided.serving.ray.mapping import Worker, map_on_ray

if TYPE_CHECKING:
    from guided.eval.text_to_sql.evaluator import SqlEvaluator

__all__ = ["Task", "records_of", "run_here", "run_on_ray", "tasks_for", "tasks_left"]

Task = tuple[SqlQuestion, SqlMethod]
"""A question and what is done with it."""


def tasks_for(questions: Sequence[SqlQuestion], methods: Sequence[SqlMethod]) -> list[Task]:
    """Every question with every method, the questions about a database together: its language is made once."""
    order = {name: number for number, name in enumerate(dict.fromkeys(each.database for each in questions))}
    together = sorted(questions, key=lambda question: order[question.database])
    return [(question, method) for question in together for method in methods]


def _evaluator(settings: SqlSettings, on_stage: Callable[[str], None] | None) -> SqlEvaluator:
    from guided.eval.text_to_sql.evaluator import SqlEvaluator

    return SqlEvaluator(settings, on_stage=on_stage)


_TASKS: Resumable[SqlQuestion, SqlMethod, SqlSettings, SqlRecord] = Resumable(key_of, _evaluator)
tasks_left, records_of, run_here = _TASKS.tasks_left, _TASKS.records_of, _TASKS.run_here


def run_on_ray(
    tasks: Sequence[Task],
    settings: SqlSettings,
    log: SqlLog,
    *,
    workers: int,
    on_stage: Callable[[str], None] | None = None,
    on_record: Callable[[SqlRecord], None] | None = None,
) -> None:
    """As `guided.eval.distributed.run_on_ray`; databases must lie at the same path on every machine."""
    map_on_ray(
        _Worker,
        settings.as_record(),
        [{"question": question.as_record(), "method": method} for question, method in tasks_left(tasks, settings, log)],
        workers=workers,
        model=settings.model,
        device=settings.device,
        on_line=lambda line: keep(SqlRecord.of(json.loads(line)), log, on_record),
        on_stage=on_stage,
    )


class _Worker(Worker):
    def load(self) -> Any:
        from guided.eval.text_to_sql.evaluator import SqlEvaluator

        return SqlEvaluator(SqlSettings(**self.told))

    def answer(self, loaded: Any, task: dict[str, Any]) -> str:
        question = SqlQuestion.of(task["question"])
        return str(loaded.evaluate(question, SqlMethod(task["method"])).line())
