"""Conditions over the columns of a scope: comparisons, BETWEEN, IN, LIKE, IS NULL, EXISTS, AND, OR, NOT, brackets."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from guided.grammar.ir import Body, Reference
from guided.grammar.sql.columns import Columns, ColumnTerminals, View
from guided.grammar.sql.rules import Rules, choice, listed, maybe, sequence
from guided.grammar.sql.scope import Scope
from guided.grammar.sql.values import Flavour, Values

__all__ = ["MAX_BRACKETS", "Conditions", "Queries"]

MAX_BRACKETS = 2
"""Nesting of brackets; SQLite's parser has a stack of 100 entries for everything that is open."""


@dataclass(frozen=True)
class Queries:
    """Sub-queries that a condition may hold; ``key`` tells sets of them apart.

    ``scalar`` is a bracketed query of one column, ``column`` one without brackets, ``rows`` is what EXISTS asks about.
    """

    key: Hashable
    scalar: Body
    column: Body
    rows: Body


class Conditions:
    """Makes and keeps the rules for conditions."""

    def __init__(self, rules: Rules, columns: ColumnTerminals) -> None:
        self.rules = rules
        self.columns = columns
        self.values = Values(rules, columns, self.plain)
        self.spelling = columns.spelling
        s = self.spelling.snippet
        self._comma, self._close = s(", "), s(")")
        self._and = s(" AND ")
        self._compare = s(" = ", " != ", " <> ", " < ", " <= ", " > ", " >= ")
        self._equal = s(" = ", " != ", " <> ")
        self._order = s(" < ", " <= ", " > ", " >= ")
        self._between = s(" BETWEEN ", " NOT BETWEEN ")
        self._within = s(" IN (", " NOT IN (")
        self._like = s(" LIKE ", " NOT LIKE ")
        self._is_null = s(" IS NULL", " IS NOT NULL")

    def plain(self, scope: Scope) -> Reference:
        """A condition for CASE: columns compared with columns and literals, no brackets, no sub-queries."""

        def build() -> Body:
            atoms: list[Body] = []
            s, columns = self.spelling, self.columns.of(scope)
            numbers, texts = self.values.number_columns(scope), self.values.text_columns(scope)
            if numbers is not None:
                atoms.append(self._number_atom(numbers, choice(numbers, self._signed())))
            if texts is not None:
                lower = s.snippet("LOWER(", "UPPER(")
                free = (*columns.free, sequence(lower, texts, self._close))
                text = choice(texts, s.string, sequence(lower, s.string, self._close))
                atoms += self._text_atoms(columns, free, text, (texts,))
            atoms += self._boolean_atoms(columns)
            return self._joined(choice(*atoms))

        return self._rule("plain condition", scope, Flavour.ROW, build)

    def condition(
        self, scope: Scope, flavour: Flavour, queries: Queries | None, brackets: int = MAX_BRACKETS
    ) -> Reference:
        """A condition; ``queries`` gives the sub-queries it may hold, None for none."""

        def build() -> Body:
            s = self.spelling.snippet
            atom: Body = self._comparison(scope, flavour)
            if queries is not None:
                atom = choice(atom, self._comparison_with_query(scope, flavour, queries))
            if brackets:
                inside = self.condition(scope, flavour, queries, brackets - 1)
                atom = choice(atom, sequence(s("("), inside, self._close))
            return self._joined(atom)

        return self._rule("condition", scope, flavour, build, None if queries is None else queries.key, brackets)

    def _rule(self, what: str, scope: Scope, flavour: Flavour, build: Callable[[], Body], *more: Hashable) -> Reference:
        return self.rules.get((what, scope, flavour, *more), f"{what} over {scope.title}", build)

    def _joined(self, atom: Body) -> Body:
        s = self.spelling.snippet
        return listed(sequence(maybe(s("NOT ")), atom), s(" AND ", " OR "))

    def _comparison(self, scope: Scope, flavour: Flavour) -> Reference:
        """One comparison without sub-queries."""

        def build() -> Body:
            s, values = self.spelling, self.values
            left, right = values.number_from_column(scope, flavour), values.number(scope, flavour)
            atoms = [self._number_atom(left, right), *self._boolean_atoms(self.columns.of(scope))]
            if self.columns.of(scope).text:
                atoms.append(self._text_comparison(scope))
                if flavour is Flavour.GROUP:
                    aggregates = values.text_aggregates(scope)
                    atoms.append(sequence(choice(*aggregates), self._compare, choice(s.string, *aggregates)))
            return choice(*atoms)

        return self._rule("comparison", scope, flavour, build)

    def joined_on(self, view: View) -> Reference:
        """What ON may ask of a table besides its key: a column compared with a literal."""

        def build() -> Body:
            s, columns = self.spelling, self.columns.of_view(view)
            atoms: list[Body] = [equations for _, equations in columns.sampled]
            if columns.number:
                atoms.append(sequence(choice(*columns.number), self._compare, self._signed()))
            if columns.free:
                atoms.append(sequence(choice(*columns.free), self._compare, s.string))
            return choice(*atoms)

        return self.rules.get(("joined on", view), f"condition on {view.binding.source}", build)

    def _boolean_atoms(self, columns: Columns) -> list[Body]:
        """A truth value by itself, or compared with TRUE or FALSE."""
        s = self.spelling.snippet
        compared = sequence(s(" = ", " != ", " IS ", " IS NOT "), s("TRUE", "FALSE"))
        return [sequence(choice(*columns.boolean), maybe(compared))] if columns.boolean else []

    def _text_comparison(self, scope: Scope) -> Reference:
        def build() -> Body:
            columns, calls = self.columns.of(scope), self.values.text_calls(scope)
            others = (self.values.text_columns(scope), *calls)
            return choice(*self._text_atoms(columns, (*columns.free, *calls), self.values.text(scope), others))

        return self._rule("comparison of texts", scope, Flavour.ROW, build)

    def _comparison_with_query(self, scope: Scope, flavour: Flavour, queries: Queries) -> Reference:
        def build() -> Body:
            s = self.spelling.snippet
            return choice(
                sequence(s("EXISTS ("), queries.rows, self._close),
                sequence(self._compared_with_query(scope, flavour), self._query_compared(queries)),
            )

        return self._rule("comparison with a query", scope, flavour, build, queries.key)

    def _compared_with_query(self, scope: Scope, flavour: Flavour) -> Reference:
        """What may stand left of a sub-query; its kind and the query's need not agree."""

        def build() -> Body:
            texts = (self.values.text_columns(scope), *self.values.text_calls(scope))
            return choice(self.values.number_from_column(scope, flavour), *texts)

        return self._rule("value compared with a query", scope, flavour, build)

    def _query_compared(self, queries: Queries) -> Body:
        return choice(sequence(self._compare, queries.scalar), sequence(self._within, queries.column, self._close))

    def _signed(self) -> Body:
        return sequence(maybe(self.spelling.snippet("-")), self.spelling.number)

    def _number_atom(self, left: Body, right: Body) -> Body:
        numbers = listed(self._signed(), self._comma)
        return sequence(
            left,
            choice(
                sequence(self._compare, right),
                sequence(self._between, right, self._and, right),
                sequence(self._within, numbers, self._close),
                self._is_null,
            ),
        )

    def _text_atoms(
        self, columns: Columns, free: tuple[Body, ...], text: Body, others: tuple[Body | None, ...]
    ) -> list[Body]:
        """Comparisons of strings: of ``free`` operands with any text, of columns with values with those.

        ``others`` are the texts that are no literals, which columns with values may be compared with too.
        """
        string = self.spelling.string
        further = [
            sequence(self._like, text),
            sequence(self._between, text, self._and, text),
            self._is_null,
        ]
        atoms: list[Body] = []
        if free:
            several = sequence(self._within, listed(string, self._comma), self._close)
            atoms.append(sequence(choice(*free), choice(sequence(self._compare, text), several, *further)))
        for names, equations in columns.sampled:
            equal, ordered = sequence(self._equal, choice(*others)), sequence(self._order, text)
            atoms += [equations, sequence(names, choice(equal, ordered, *further))]
        return atoms
