"""What the modules of all clauses share: the catalog, the dialect, and the nodes that hold each other."""

from __future__ import annotations

from guided.grammar.attributed.nodes import (
    Action,
    Literal,
    LiteralForm,
    Name,
    Node,
    Rule,
    Sign,
    Spelled,
    choice,
    maybe,
    seq,
    words,
)
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query import values
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.dialect import Dialect
from guided.grammar.sql.query.literals import AnyString, HeldString, Number, QuotedString, WholeNumber
from guided.grammar.sql.query.names import columns
from guided.grammar.sql.query.names.fixed import FixedName

__all__ = ["Parts"]


class Parts:
    """Nodes that many clauses use; `guided.grammar.sql.query.select.statement` gives the rules their bodies."""

    def __init__(self, catalog: Catalog, dialect: Dialect) -> None:
        self.catalog = catalog
        self.dialect = dialect
        self.expression = Rule("expression")
        self.compound = Rule("query")
        self.comma = Sign(",")
        self.open, self.close = Sign("("), Sign(")")
        self.number = Literal(LiteralForm.NUMBER, Number())
        self.whole = Literal(LiteralForm.NUMBER, WholeNumber())
        self.string = Literal(LiteralForm.STRING, AnyString())
        self.is_exact = dialect.lexis.keeps_case
        self.bare = Name(columns.BareColumn(catalog))
        quoted = Name(QuotedString(), Spelled.STRING)
        held = Name(HeldString(dialect.lexis), Spelled.STRING, is_exact=True)
        self.quoted = choice(quoted, held) if catalog.has_values else quoted
        column = columns.QualifiedColumn(catalog)
        self.any_qualifier = Name(columns.Qualifier(catalog), is_exact=self.is_exact)
        self.qualifier = Name(columns.Qualifier(catalog, column), is_exact=self.is_exact)
        self.qualified = Name(column)
        collation = Name(FixedName("a collation", dialect.collations))
        self.collated = maybe(words("COLLATE"), self.when_held(values.no_column), collation)

    def when_held(self, change: do.Change) -> Node:
        """What is followed only where values of columns are known."""
        return Action(change) if self.catalog.has_values else seq()

    def bracketed(self, *, sees: bool, width: int | None, leave: do.Change = do.leave_operand) -> Node:
        """A query and the bracket behind it."""
        return seq(Action(do.enter(sees=sees, width=width)), self.compound, Action(leave), self.close)
