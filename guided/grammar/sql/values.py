"""Values over the columns of a scope: names, literals, arithmetic, functions, aggregates, CASE.

Everything comes in two flavours: *row* (WHERE, GROUP BY, inside aggregates) and *group* (SELECT list, HAVING, ORDER BY
after GROUP BY), where aggregates may stand; so no aggregate is ever nested or misplaced.  Nesting is bounded, because
SQLite's parser has a stack of 100 entries and gives up at a dozen nested calls: an argument is *flat* (columns,
literals, aggregates, calls on those).

Numbers and strings are kept apart; a column of unknown type is both.  Functions of strings look at one table at a
time and at no aggregates, which lets scopes share them; arithmetic, aggregates and COALESCE may mix tables.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from guided.grammar.ir import Body, Reference, Repetition
from guided.grammar.sql.columns import ColumnTerminals, View
from guided.grammar.sql.rules import Rules, choice, listed, maybe, sequence
from guided.grammar.sql.scope import Scope

__all__ = ["Flavour", "Values"]


class Flavour(Enum):
    """May aggregates stand here?"""

    ROW = "row"
    GROUP = "group"


class Values:
    """Makes and keeps the rules for values."""

    def __init__(self, rules: Rules, columns: ColumnTerminals, plain_condition: Callable[[Scope], Reference]) -> None:
        self.rules = rules
        self.columns = columns
        self.spelling = columns.spelling
        self._plain_condition = plain_condition
        s = self.spelling.snippet
        self._comma, self._close = s(", "), s(")")
        self._arithmetic = s(" + ", " - ", " * ", " / ", " % ")

    def number_columns(self, scope: Scope) -> Body | None:
        """The numeric columns, None without any."""
        terminals = self.columns.of(scope).number
        return self._rule("numeric column", scope, Flavour.ROW, lambda: choice(*terminals)) if terminals else None

    def text_columns(self, scope: Scope) -> Body | None:
        """The text columns, None without any."""
        terminals = self.columns.of(scope).text
        return self._rule("text column", scope, Flavour.ROW, lambda: choice(*terminals)) if terminals else None

    def number(self, scope: Scope, flavour: Flavour) -> Reference:
        """A numeric value: operands with arithmetic between them."""

        def build() -> Body:
            s = self.spelling
            negative = sequence(s.snippet("-"), choice(s.number, self._number_call(scope, flavour)))
            first = choice(self._operand(scope, flavour), s.number, negative)
            return self._chain(first, scope, flavour)

        return self._rule("number", scope, flavour, build)

    def number_from_column(self, scope: Scope, flavour: Flavour) -> Reference:
        """A numeric value that starts with no literal, as the left side of a comparison does."""
        return self._rule(
            "number from a column", scope, flavour, lambda: self._chain(self._operand(scope, flavour), scope, flavour)
        )

    def text(self, scope: Scope) -> Reference:
        """A string value of a row: operands with ``||`` between them."""

        def build() -> Body:
            operand = choice(self.text_columns(scope), *self.text_calls(scope), self.spelling.string)
            return listed(operand, self.spelling.snippet(" || "))

        return self._rule("text", scope, Flavour.ROW, build)

    def text_aggregates(self, scope: Scope) -> list[Reference]:
        """Strings made of a group's rows, for each table that has strings."""
        return [self._text_aggregate(view) for view in self._views_with_text(scope)]

    def value(self, scope: Scope, flavour: Flavour) -> Body:
        """A value of either kind."""
        texts = self.text_aggregates(scope) if flavour is Flavour.GROUP else []
        return choice(self.number(scope, flavour), self.text(scope), *texts)

    def sort_key(self, scope: Scope, flavour: Flavour) -> Reference:
        """A value that starts with no literal or bracket: SQLite reads a bare number there as a position."""

        def build() -> Body:
            s = self.spelling.snippet
            first = choice(self.number_columns(scope), self._number_call(scope, flavour))
            first = choice(first, sequence(s("("), self._chain(first, scope, flavour), self._close))
            texts = self.text_aggregates(scope) if flavour is Flavour.GROUP else []
            number = self._chain(first, scope, flavour)
            return choice(number, self.text_columns(scope), *self.text_calls(scope), *texts)

        return self._rule("sort key", scope, flavour, build)

    def text_calls(self, scope: Scope) -> list[Reference]:
        """Calls that give a string, of each table that has strings; CASE."""
        return [self._text_call(view) for view in self._views_with_text(scope)] + [self._text_case(scope)]

    def _flat_number(self, scope: Scope, flavour: Flavour) -> Reference:
        """Arithmetic on columns, literals, aggregates and calls on single columns and aggregates."""

        def build() -> Body:
            basic = self._basic_number(scope, flavour)
            calls: list[Body] = []
            if basic is not None:
                default = choice(basic, self.spelling.number)
                calls = self._number_functions(basic, default, choice(basic, self.text_columns(scope)))
                inside = listed(default, self._arithmetic)
                calls.append(sequence(self.spelling.snippet("("), inside, self._close))
            calls += [self._length(view) for view in self._views_with_text(scope)]
            return listed(choice(basic, *calls, self.spelling.number), self._arithmetic)

        return self._rule("flat number", scope, flavour, build)

    def _flat_texts(self, scope: Scope) -> list[Reference]:
        """Strings of each table: columns, literals and calls on single columns, with ``||`` between them."""
        return [self._flat_text(view) for view in self._views_with_text(scope)]

    # Numbers of a scope ------------------------------------------------------------------------------------------

    def _rule(self, what: str, scope: Scope, flavour: Flavour, build: Callable[[], Body]) -> Reference:
        return self.rules.get((what, scope, flavour), f"{what} over {scope.title}", build)

    def _operand(self, scope: Scope, flavour: Flavour) -> Body:
        bracketed = sequence(self.spelling.snippet("("), self._flat_number(scope, flavour), self._close)
        return choice(self.number_columns(scope), self._number_call(scope, flavour), bracketed)

    def _chain(self, first: Body, scope: Scope, flavour: Flavour) -> Body:
        def build() -> Body:
            operand = choice(self._operand(scope, flavour), self.spelling.number)
            return Repetition(sequence(self._arithmetic, operand), 0)

        return sequence(first, self._rule("arithmetic", scope, flavour, build))

    def _number_call(self, scope: Scope, flavour: Flavour) -> Reference:
        def build() -> Body:
            s, number, texts = self.spelling.snippet, self._flat_number(scope, flavour), self._flat_texts(scope)
            of_text: list[Body] = []
            if texts:
                of_text.append(sequence(s("LENGTH(", "JULIANDAY("), choice(*texts), self._close))
                of_text.append(sequence(s("INSTR("), choice(*texts), self._comma, self.spelling.string, self._close))
            functions = self._number_functions(number, number, choice(number, *texts))
            now = s("JULIANDAY('now')")
            return choice(self._aggregate(scope, flavour), *functions, *of_text, now, self._number_case(scope))

        return self._rule("numeric call", scope, flavour, build)

    def _basic_number(self, scope: Scope, flavour: Flavour) -> Body | None:
        """A column or an aggregate, None when there can be neither."""
        aggregate, columns = self._aggregate(scope, flavour), self.number_columns(scope)
        if aggregate is None:
            return columns
        return self._rule("basic number", scope, flavour, lambda: choice(columns, aggregate))

    def _aggregate(self, scope: Scope, flavour: Flavour) -> Reference | None:
        if flavour is Flavour.ROW:
            return None

        def build() -> Body:
            s, number = self.spelling.snippet, self.number(scope, Flavour.ROW)
            counted = choice(number, *self._flat_texts(scope))
            heads = s("SUM(", "AVG(", "TOTAL(", "SUM(DISTINCT ", "AVG(DISTINCT ")
            # Numbers are often kept in columns that are declared as text.
            summed = choice(number, self.text_columns(scope))
            return choice(
                s("COUNT(*)"),
                sequence(s("COUNT(", "COUNT(DISTINCT "), counted, self._close),
                sequence(heads, summed, self._close),
                sequence(s("MIN(", "MAX("), number, self._close),
            )

        return self._rule("aggregate", scope, flavour, build)

    def _number_functions(self, number: Body, default: Body, value: Body) -> list[Body]:
        s, close, comma = self.spelling.snippet, self._close, self._comma
        return [
            sequence(s("ABS("), number, close),
            sequence(s("ROUND("), number, maybe(comma, self.spelling.digit), close),
            sequence(s("COALESCE(", "IFNULL(", "NULLIF("), number, comma, default, close),
            sequence(s("CAST("), value, s(" AS REAL)", " AS INTEGER)", " AS NUMERIC)")),
        ]

    def _number_case(self, scope: Scope) -> Reference:
        def build() -> Body:
            return self._case(scope, self._flat_number(scope, Flavour.ROW))

        return self._rule("number by cases", scope, Flavour.ROW, build)

    def _text_case(self, scope: Scope) -> Reference:
        def build() -> Body:
            return self._case(scope, choice(self.spelling.string, self.text_columns(scope)))

        return self._rule("string by cases", scope, Flavour.ROW, build)

    def _case(self, scope: Scope, result: Body) -> Body:
        s = self.spelling.snippet
        branch = sequence(s(" WHEN "), self._plain_condition(scope), s(" THEN "), result)
        otherwise = maybe(s(" ELSE "), choice(result, s("NULL")))
        return sequence(s("CASE"), Repetition(branch, 1), otherwise, s(" END"))

    # Strings of one table ----------------------------------------------------------------------------------------

    def _views_with_text(self, scope: Scope) -> list[View]:
        return [view for view in self.columns.views(scope) if self.columns.of_view(view).text]

    def _view_rule(self, what: str, view: View, build: Callable[[], Body]) -> Reference:
        return self.rules.get((what, view), f"{what} over {view.binding.source}", build)

    def _flat_text(self, view: View) -> Reference:
        def build() -> Body:
            columns = self.columns.of_view(view)
            basic = self._view_rule("basic text", view, lambda: choice(*columns.text, self.spelling.string))
            calls = self._text_functions(basic, choice(*columns.number, *columns.text))
            calls += self._epoch(view)
            return listed(choice(basic, *calls), self.spelling.snippet(" || "))

        return self._view_rule("flat text", view, build)

    def _text_call(self, view: View) -> Reference:
        def build() -> Body:
            flat = self._flat_text(view)
            functions = self._text_functions(flat, choice(*self.columns.of_view(view).number, flat))
            return choice(*functions, *self._epoch(view))

        return self._view_rule("string call", view, build)

    def _epoch(self, view: View) -> list[Body]:
        """Dates that are kept as seconds since 1970."""
        s, number = self.spelling.snippet, self.columns.of_view(view).number
        end = s(", 'unixepoch')")
        return [sequence(s("DATE(", "DATETIME(", "TIME("), choice(*number), end)] if number else []

    def _text_aggregate(self, view: View) -> Reference:
        def build() -> Body:
            s, text = self.spelling.snippet, self._flat_text(view)
            separated = sequence(s("GROUP_CONCAT("), text, self._comma, self.spelling.string, self._close)
            heads = s("MIN(", "MAX(", "GROUP_CONCAT(", "GROUP_CONCAT(DISTINCT ")
            return choice(sequence(heads, text, self._close), separated)

        return self._view_rule("string aggregate", view, build)

    def _length(self, view: View) -> Reference:
        def build() -> Body:
            text = choice(*self.columns.of_view(view).text)
            return sequence(self.spelling.snippet("LENGTH(", "JULIANDAY("), text, self._close)

        return self._view_rule("length", view, build)

    def _text_functions(self, text: Body, value: Body) -> list[Body]:
        s, close, comma, string = self.spelling.snippet, self._close, self._comma, self.spelling.string
        whole = self.spelling.integer
        return [
            sequence(s("LOWER(", "UPPER(", "TRIM("), text, close),
            sequence(s("SUBSTR("), text, comma, whole, maybe(comma, whole), close),
            sequence(s("REPLACE("), text, comma, string, comma, string, close),
            sequence(s("COALESCE(", "IFNULL(", "NULLIF("), text, comma, text, close),
            sequence(s("STRFTIME("), self.spelling.date_format, comma, text, close),
            sequence(s("DATE(", "DATETIME(", "TIME("), text, Repetition(sequence(comma, string), 0, 3), close),
            sequence(s("CAST("), value, s(" AS TEXT)")),
        ]
