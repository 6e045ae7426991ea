"""Gold entries, and when two results are the same answer."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from guided.eval.text_to_sql.gold import MAX_VARIANTS, accepted_queries, is_ordered
from guided.eval.text_to_sql.matching import holds_result, same_result
from guided.grammar.sql import QueryResult


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


def test_accepted_queries() -> None:
    assert accepted_queries("SELECT 1;") == ["SELECT 1"]
    assert accepted_queries("SELECT ';' ; SELECT \"a;b\";;") == ["SELECT ';'", 'SELECT "a;b"']
    assert accepted_queries("SELECT '{a,b}' FROM t") == ["SELECT '{a,b}' FROM t"]
    two = accepted_queries("SELECT {a, b}, {x, y} FROM t GROUP BY a")
    assert len(two) == 9 and "SELECT a, b, x, y FROM t GROUP BY a" in two
    many = "SELECT {" + ", ".join(f"c{n}" for n in range(20)) + "} FROM t"
    assert len(accepted_queries(many)) == MAX_VARIANTS


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t order  /* it */ by a LIMIT 1", True),
        ("SELECT a FROM t WHERE b = 'ORDER BY'", False),
        ("SELECT RANK() OVER (ORDER BY a) FROM t", False),
        ("SELECT a FROM t GROUP BY a", False),
    ],
)
def test_ordered(query: str, ordered: bool) -> None:
    assert is_ordered(query) is ordered
