"""Gold entries: several accepted queries, choices of columns, and whether the order of rows counts."""

from __future__ import annotations

import pytest

from guided.eval.text_to_sql.gold import MAX_VARIANTS, accepted_queries, is_ordered


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
