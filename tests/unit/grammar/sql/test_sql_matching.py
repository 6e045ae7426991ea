"""When two results are the same answer, and which of several statements most agree with."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from guided.errors import GuidedError
from guided.grammar.sql import QueryResult
from guided.grammar.sql.matching import holds_result, same_result
from guided.grammar.sql.reranking import rerank_by_execution
from tests.databases import Databases


def result(*rows: tuple[Any, ...], width: int = 0) -> QueryResult:
    n_columns = len(rows[0]) if rows else width
    return QueryResult(tuple(f"c{n}" for n in range(n_columns)), rows, False, 0.0)


@pytest.mark.parametrize(
    ("found", "gold", "ordered", "same"),
    [
        (result((1,), (2,)), result((2,), (1,)), False, True),
        (result((1,), (2,)), result((2,), (1,)), True, False),
        (result((1,), (1,), (2,)), result((1,), (2,), (2,)), False, False),
        (result((1, "a"), (2, "b")), result(("b", 2), ("a", 1)), False, True),
        (result((1, "a"), (2, "b")), result(("b", 1), ("a", 2)), False, False),
        (result((1, 1), (1, 2)), result((1, 1), (2, 1)), False, True),
        (result((1, 2), (2, 1)), result((1, 1), (2, 2)), False, False),
        (result((1.0,)), result((1,)), False, True),
        (result((True,)), result((1,)), False, True),
        (result((Decimal("0.30"),)), result((0.1 + 0.2,)), False, True),
        (result(("1",)), result((1,)), False, False),
        (result((None,)), result((0,)), False, False),
        (result((date(2020, 1, 2),)), result(("2020-01-02",)), False, True),
        (result((datetime(2020, 1, 2, 3, 4),)), result(("2020-01-02 03:04:00",)), False, True),
        (result((float("nan"),)), result((float("nan"),)), False, True),
        (result((2**60 + 1,)), result((2**60,)), False, False),
        (result((memoryview(b"x"),)), result((b"x",)), False, True),
        (result(([1, 2.0],)), result(((1.0, 2),)), False, True),
        (result(width=1), result(width=1), True, True),
        (result(width=2), result(width=1), True, False),
        (result((1,)), result(width=1), False, False),
    ],
)
def test_same_result(found: QueryResult, gold: QueryResult, ordered: bool, same: bool) -> None:
    assert same_result(found, gold, ordered=ordered) is same
    assert same_result(gold, found, ordered=ordered) is same


def test_more_columns_hold_a_result() -> None:
    assert holds_result(result((1, "x", 5), (2, "y", 6)), result((6,), (5,)), ordered=False)
    assert not holds_result(result((1, "x", 5), (2, "y", 6)), result((6,), (5,)), ordered=True)
    assert not holds_result(result((5,)), result((5, 5)), ordered=False)
    assert not same_result(result((1, 5)), result((5,)), ordered=False)


def test_many_equal_columns_end() -> None:
    rows = tuple((0,) * 12 + (n % 2, (n + 1) % 2) for n in range(4))
    assert same_result(result(*rows), result(*rows), ordered=False)
    other = tuple((0,) * 12 + (n % 2, n % 2) for n in range(4))
    assert not same_result(result(*rows), result(*other), ordered=True)
    assert not same_result(result(*rows), result(*other), ordered=False)
    cycled = tuple(tuple((n + m) % 9 for m in range(9)) for n in range(9))
    assert same_result(result(*cycled), result(*reversed(cycled)), ordered=False)


def test_the_answer_that_most_agree_on(databases: Databases) -> None:
    url = databases("sqlite").create("CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 2), (3, 4)")
    most = [
        "SELECT a, b FROM t",
        "SELECT b, a FROM t ORDER BY b DESC",
        "SELECT a FROM t",
        "SELECT b, a FROM t ORDER BY b DESC",
    ]
    chosen = rerank_by_execution(url, [*most, "SELECT gone FROM t", "DELETE FROM t"])
    assert chosen.statement == "SELECT b, a FROM t ORDER BY b DESC", "written twice, and another agrees"
    assert chosen.record() == {"votes": 3, "samples": 6, "answers": 2, "failed": 2}
    assert rerank_by_execution(url, ["SELECT a FROM t", "SELECT b FROM t"]).statement == "SELECT a FROM t"
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n"
    chosen = rerank_by_execution(url, [endless, endless, "SELECT a FROM t"], seconds=0.2)
    assert (chosen.statement, chosen.failed) == ("SELECT a FROM t", 2)
    none = rerank_by_execution(url, ["nonsense", "SELECT gone FROM t", "SELECT gone FROM t"])
    assert (none.statement, none.votes, none.failed) == ("SELECT gone FROM t", 0, 3)
    with pytest.raises(GuidedError, match="no statements"):
        rerank_by_execution(url, [])
