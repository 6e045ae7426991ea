"""What is known behind an operand: the name and taint of the column of the result that is being read."""

from __future__ import annotations

from guided.grammar.attributed.watched import asked, gathered
from guided.grammar.sql.query.laws import SQLITE_LAWS
from guided.grammar.sql.query.relations import ROW_NAMES
from guided.grammar.sql.query.scope import Clause, Item, Output, Query, Taint

__all__ = ["has_taint", "read_atom"]


@asked("item")
def _is_fresh(query: Query) -> bool:
    """Was nothing of the column read?"""
    return query.item is Item.FRESH


def read_atom(query: Query, name: str | None = None, taint: Taint = Taint.NONE, qualifier: str = "") -> Query:
    """The query behind an operand; ``name`` is the column's when it is one, with its ``qualifier``."""
    item: str | Item
    if query.clause is Clause.SELECT or (query.clause is Clause.GROUP and query.laws.selected_first):
        is_fresh = _is_fresh(query)
        if query.laws.selected_first and is_fresh:
            query = query._replace(item_of=qualifier)
        item = name if name is not None and is_fresh else Item.COMPLEX
        if item in ROW_NAMES and query.laws is SQLITE_LAWS:
            item = Item.ROW_NUMBER
        taint = max(query.taint, taint, key=lambda one: one.value)
        query = query._replace(item=item, taint=taint)
    return query._replace(alone=False, name="", is_mixed=False, values=None, held=None)


@gathered("outputs", False)
def has_taint(output: Output, taints: tuple[Taint, ...]) -> bool:
    """Holds a column of the result any of these?"""
    return output.taint in taints
