"""Choosing among statements by what they return: the answer that most of them agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guided.errors import GuidedError
from guided.grammar.sql.connection import open_session
from guided.grammar.sql.engines.session import DEFAULT_SECONDS
from guided.grammar.sql.matching import same_result
from guided.grammar.sql.result import QueryResult

__all__ = ["Reranked", "rerank_by_execution"]

COMPARED_ROWS = 10_000


@dataclass(frozen=True)
class Reranked:
    """The statement that was chosen, and why."""

    statement: str
    votes: int
    """How many of the statements return the same rows."""
    n: int
    """How many there were."""
    answers: int
    """How many different answers they gave."""
    failed: int
    """How many could not be run, or took too long."""

    def record(self) -> dict[str, Any]:
        """What is said of the choice, as JSON data."""
        return {"votes": self.votes, "samples": self.n, "answers": self.answers, "failed": self.failed}


def rerank_by_execution(
    url_or_engine: str | Any, statements: Sequence[str], *, seconds: float = DEFAULT_SECONDS
) -> Reranked:
    """The statement whose answer most others give, too; each is run once, read-only.

    Answers are the same when their rows are, in any order of rows and columns; of a truncated one the first 10,000 rows
    are compared.  Of those that agree the one that was written most often is chosen, and the first where these are as
    many.  A statement that fails counts for no answer; where all fail, the most frequent one is chosen with 0 votes.
    """
    if not statements:
        raise GuidedError("there are no statements to choose from", remedy="Give one or more.")
    written = Counter(statements)
    answers: list[tuple[QueryResult, list[str]]] = []
    failed = 0
    with open_session(url_or_engine) as session:
        for statement, times in written.items():
            try:
                found = session.run(statement, limit_rows=COMPARED_ROWS, seconds=seconds)
            except GuidedError:
                failed += times
                continue
            for other, alike in answers:
                if same_result(found, other, ordered=False):
                    alike.append(statement)
                    break
            else:
                answers.append((found, [statement]))
    if not answers:
        return Reranked(max(written, key=written.__getitem__), 0, len(statements), 0, failed)
    # The first of those with most votes: `max` keeps the order.
    _, alike = max(answers, key=lambda answer: sum(written[each] for each in answer[1]))
    chosen = max(alike, key=written.__getitem__)
    return Reranked(chosen, sum(written[each] for each in alike), len(statements), len(answers), failed)
