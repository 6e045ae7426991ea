"""Lists of shares, which aggregates such as QUANTILE_CONT take as constants: ``quantile_cont(x, [0.25, 0.75])``."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Literal, LiteralForm, Node, Sign, listed, seq
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.arguments import begin_argument, end_argument
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.scope import Query

__all__ = ["shares"]


def shares(dialect: TypedDialect) -> Node:
    """Such a list as an argument."""
    one = Literal(LiteralForm.NUMBER, _Share(dialect.numbers["'share"]))
    list_ = seq(Sign("["), listed(one, Sign(",")), Sign("]"), Action(do.operand("'shares")))
    return seq(Action(begin_argument), list_, Action(end_argument))


class _Share:
    """A number between 0 and 1."""

    label = "a share"
    shortest = "1"

    def __init__(self, pattern: str) -> None:
        self._values = Spellings(pattern)

    def allowed(self, query: Query) -> Spellings:
        """The same everywhere."""
        return self._values

    def after(self, query: Query) -> Query:
        """The query as it was."""
        return query
