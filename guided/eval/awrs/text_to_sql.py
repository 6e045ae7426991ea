"""Text to SQL: questions of Spider about databases that hold rows, judged by what the statement returns.

Spider's own copies here are empty, and in an empty database every statement is right: only questions whose database
lies with its rows beside the folder (``text2sql/concert_singer.sqlite``) are asked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import guided
from guided.errors import GuidedError
from guided.eval.awrs.problems import Asker, Problem, Question, TaskName, needed
from guided.eval.requests import sql_request
from guided.grammar.sql import reflect, run_query
from guided.hf import LoadedModel

__all__ = ["asker", "read", "same_answer"]


def read(data: Path) -> list[Problem]:
    """The questions of Spider's development set whose database has rows."""
    folder = needed(data / "text2sql", "the text-to-SQL data")
    rows = json.loads(needed(folder / "spider" / "dev.json", "Spider's development set").read_text("utf-8"))
    found: list[Problem] = []
    for number, row in enumerate(rows):
        database = folder / f"{row['db_id']}.sqlite"
        if database.is_file():
            content = {"database": str(database), "question": row["question"], "gold": row["query"]}
            found.append(Problem(TaskName.SQL, f"spider/{number}", content))
    return found


def asker(model: LoadedModel) -> Asker:
    """Asks for one SELECT over the tables and columns that exist."""
    known: dict[str, tuple[Any, Any]] = {}

    def ask(problem: Problem) -> Question:
        path = problem.content["database"]
        if path not in known:
            database = reflect(path)
            known[path] = database, guided.compile(guided.sql(database), model.vocabulary)
        database, constraint = known[path]
        request = sql_request(model.name, database, problem.content["question"])
        prompt = list(model.tokenizer(request)["input_ids"])
        judge = same_answer(path, problem.content["gold"])
        return Question(prompt, model.vocabulary, constraint, judge, "rows returned")

    return ask


def same_answer(database: str, gold: str) -> Callable[[str], bool]:
    """A judge of statements: the same rows as ``gold``, in the same order where that asks for one."""
    wanted = run_query(database, gold).rows
    ordered = "order by" in gold.lower()

    def judge(statement: str) -> bool:
        try:
            rows = run_query(database, statement).rows
        except GuidedError:
            return False
        if ordered:
            return rows == wanted
        return Counter(map(repr, rows)) == Counter(map(repr, wanted))

    return judge
