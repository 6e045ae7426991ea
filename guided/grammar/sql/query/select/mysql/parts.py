"""What the modules of MySQL's clauses share beside `guided.grammar.sql.query.select.parts`."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Literal, LiteralForm, Name, Node, Rule, Spelled, choice, maybe, seq
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.dialect import Dialect
from guided.grammar.sql.query.literals import AnyText, HeldText, OneCharacter, Size
from guided.grammar.sql.query.select.parts import Parts
from guided.grammar.sql.query.spelled import DATE, MOMENT, PATTERN, SpelledString

__all__ = ["MysqlParts"]

MOST_PRECISION = 65
"""Digits of a decimal number (https://mariadb.com/kb/en/decimal/)."""
MOST_SCALE = 10
MOST_FRACTION = 6
"""Digits of the fraction of a second."""


class MysqlParts(Parts):
    """Nodes that many clauses use."""

    def __init__(self, catalog: Catalog, dialect: Dialect) -> None:
        super().__init__(catalog, dialect)
        self.value = Rule("value")
        text, held = Name(AnyText(), Spelled.STRING), Name(HeldText(), Spelled.STRING, is_exact=True)
        self.text = choice(text, held) if catalog.has_values else text
        self.fraction = Literal(LiteralForm.NUMBER, Size(0, MOST_FRACTION))
        self.pattern = Literal(LiteralForm.STRING, SpelledString("a regular expression", PATTERN))
        self.date = Literal(LiteralForm.STRING, SpelledString("a date", DATE))
        self.moment = Literal(LiteralForm.STRING, SpelledString("a date and time", MOMENT))
        self.character = Literal(LiteralForm.STRING, OneCharacter())

    def precision(self) -> Node:
        """The digits of a decimal number, and those behind its point, which are no more."""
        alone = Literal(LiteralForm.NUMBER, Size(1, MOST_PRECISION))
        both = (
            seq(
                Literal(LiteralForm.NUMBER, Size(max(1, scale), MOST_PRECISION)),
                self.comma,
                Literal(LiteralForm.NUMBER, Size(scale, scale)),
            )
            for scale in range(MOST_SCALE + 1)
        )
        return maybe(self.open, choice(alone, *both), self.close)
