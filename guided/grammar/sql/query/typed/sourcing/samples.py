"""Some of the rows: of a table by TABLESAMPLE, in DuckDB of a result by USING SAMPLE."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Literal, LiteralForm, Node, Sign, choice, maybe, seq, words
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.literals import Percent, Size
from guided.grammar.sql.query.typed.scope import Query

__all__ = ["sample", "sampled_result"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")
_SEED = Literal(LiteralForm.NUMBER, Size(0, 9999))
_PERCENT = Literal(LiteralForm.NUMBER, Percent())
_AGAIN = maybe(words("REPEATABLE"), _OPEN, _SEED, _CLOSE)


def sample(dialect: TypedDialect) -> Node:
    """TABLESAMPLE behind a table of the database."""
    method = choice(words("SYSTEM"), words("BERNOULLI"))
    if dialect.system.from_first:
        part = seq(_PERCENT, choice(Sign("%"), words("PERCENT")))
        # SYSTEM alone may have a number of rows.
        number = Literal(LiteralForm.NUMBER, Size(1, 9999))
        drawn = choice(seq(method, _OPEN, part), seq(words("SYSTEM"), _OPEN, number))
        ways = [seq(drawn, _CLOSE, _AGAIN), _some()]
    else:
        ways = [seq(method, _OPEN, _PERCENT, _CLOSE, _AGAIN)]
    return seq(Action(_may_be_sampled), words("TABLESAMPLE"), choice(*ways))


def sampled_result() -> Node:
    """USING SAMPLE behind the other clauses of a SELECT."""
    return maybe(words("USING SAMPLE"), _some())


def _some() -> Node:
    """A part of the rows, or a number of them, and how they are drawn."""
    part = seq(_PERCENT, choice(Sign("%"), words("PERCENT")))
    number = seq(Literal(LiteralForm.NUMBER, Size(1, 9999)), maybe(words("ROWS")))
    any_ = choice(*map(words, ("BERNOULLI", "SYSTEM", "RESERVOIR")))
    seed = maybe(_COMMA, _SEED)
    return choice(
        seq(part, maybe(_OPEN, any_, seed, _CLOSE)),
        seq(number, maybe(_OPEN, words("RESERVOIR"), seed, _CLOSE)),
        seq(words("RESERVOIR"), _OPEN, choice(part, number), _CLOSE, _AGAIN),
    )


def _may_be_sampled(query: Query) -> Query | None:
    """Behind a table whose rows are its own."""
    return query if query.sources[-1].relation.is_stored else None
