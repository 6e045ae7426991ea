"""Values and conditions over the columns of one scope.

Every construct exists once for each scope, because column names differ, and in two flavours: *row* (WHERE, ON, GROUP
BY, inside aggregates) and *group* (SELECT list, HAVING, ORDER BY after GROUP BY), where aggregates may stand.  So no
aggregate is ever nested or misplaced.  Nesting is bounded, because SQLite's parser has a stack of 100 entries and gives
up at a dozen nested calls: a function's argument is *flat* (columns, literals, aggregates, calls on those), and
brackets nest `MAX_BRACKETS` deep.

Numbers and strings are kept apart; a column of unknown type is both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum

from guided.grammar.ir import Body, Choice, Reference, Repetition, Rule, Sequence, Terminal
from guided.grammar.regular.expr import alternation, concat, repeat
from guided.grammar.sql.schema import Column, ColumnKind, Table
from guided.grammar.sql.scope import Binding, Scope, unique_columns
from guided.grammar.sql.spelling import Spelling, identifier

__all__ = ["Columns", "Expressions", "Flavour", "Rules", "choice", "comma_list", "maybe", "sequence"]

# SQLite refuses expressions deeper than 1,000 and result sets wider than 2,000; these bounds stay far below it, and
# above every query of the Spider and Defog collections (at most 4 operands, 5 conditions, 8 items).
MAX_OPERANDS = 8
MAX_CONDITIONS = 16
MAX_LIST = 64
MAX_BRACKETS = 2


class Flavour(Enum):
    """May aggregates stand here?"""

    ROW = "row"
    GROUP = "group"


def sequence(*parts: Body) -> Body:
    """One after another."""
    return parts[0] if len(parts) == 1 else Sequence(parts)


def choice(*options: Body | None) -> Body:
    """Any of the options that exist."""
    present = tuple(option for option in options if option is not None)
    return present[0] if len(present) == 1 else Choice(present)


def maybe(*parts: Body) -> Body:
    """The parts or nothing."""
    return Repetition(sequence(*parts), 0, 1)


class Rules:
    """Rules made on first use and named by what they are about; a rule may refer to itself while it is made."""

    def __init__(self) -> None:
        self._index: dict[Hashable, int] = {}
        self._rules: list[Rule | None] = []

    def get(self, key: Hashable, name: str, build: Callable[[], Body]) -> Reference:
        """The rule of this key, made by ``build`` when it is new."""
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self._rules)
            self._rules.append(None)
            self._rules[index] = Rule(name, build())
        return Reference(index)

    def finish(self) -> tuple[Rule, ...]:
        """All rules, in the order of their indices."""
        return tuple(rule for rule in self._rules if rule is not None)


@dataclass(frozen=True)
class Columns:
    """The terminals that name a scope's columns, by kind; a terminal per table, shared between scopes."""

    number: tuple[Terminal, ...]
    text: tuple[Terminal, ...]
    """All text columns."""
    free: tuple[Terminal, ...]
    """Text columns that any string may be compared with."""
    sampled: tuple[tuple[Terminal, Terminal], ...]
    """Text columns with sampled values: (their names, the equations with those values)."""


class Expressions:
    """Makes and keeps the rules for values and conditions."""

    def __init__(self, rules: Rules, spelling: Spelling, tables: tuple[Table, ...]) -> None:
        self.rules = rules
        self.spelling = spelling
        self.tables = tables
        self._columns: dict[Scope, Columns] = {}
        s = spelling.snippet
        self.close = s(")")
        self.comma = s(", ")
        self._arithmetic = s(" + ", " - ", " * ", " / ", " % ")
        self._compare = s(" = ", " != ", " <> ", " < ", " <= ", " > ", " >= ")
        self._is_null = s(" IS NULL", " IS NOT NULL")

    # Columns -----------------------------------------------------------------------------------------------------

    def columns(self, scope: Scope) -> Columns:
        """The scope's columns: each with its qualifier, and without one where that is unambiguous."""
        found = self._columns.get(scope)
        if found is None:
            found = self._columns[scope] = self._make_columns(scope)
        return found

    def _make_columns(self, scope: Scope) -> Columns:
        number: list[Terminal] = []
        text: list[Terminal] = []
        free: list[Terminal] = []
        sampled: list[tuple[Terminal, Terminal]] = []
        bare = unique_columns(self.tables, scope)
        for binding, alone in zip(scope.bindings, bare, strict=True):
            label = f"column of {self.tables[binding.table].name}"
            for prefix, columns in ((f"{binding.qualifier}.", self.tables[binding.table].columns), ("", alone)):
                self._add(number, prefix, label, [c for c in columns if c.kind is not ColumnKind.TEXT])
                self._add(text, prefix, label, [c for c in columns if c.kind is not ColumnKind.NUMBER])
                texts = [c for c in columns if c.kind is not ColumnKind.NUMBER]
                self._add(free, prefix, label, [c for c in texts if not c.values])
                valued = [c for c in texts if c.values]
                if valued:
                    names = self.spelling.names((prefix + identifier(c.name) for c in valued), label)
                    sampled.append((names, self._equations(prefix, valued)))
        return Columns(tuple(number), tuple(text), tuple(free), tuple(sampled))

    def _add(self, to: list[Terminal], prefix: str, label: str, columns: list[Column]) -> None:
        if columns:
            to.append(self.spelling.names((prefix + identifier(column.name) for column in columns), label))

    def _equations(self, prefix: str, columns: list[Column]) -> Terminal:
        """``column = value`` and ``column IN (value, ...)``, with the sampled values of each column only."""
        equals = self.spelling.snippet(" = ", " != ", " <> ").expr
        within, comma, close = (self.spelling.snippet(*t).expr for t in ((" IN (", " NOT IN ("), (", ",), (")",)))
        parts = []
        for column in columns:
            name = self.spelling.names([prefix + identifier(column.name)], column.name).expr
            value = self.spelling.values(column.values).expr
            several = concat(within, value, repeat(concat(comma, value), 0, MAX_LIST - 1), close)
            parts.append(concat(name, alternation([concat(equals, value), several])))
        return Terminal(alternation(parts), "a column compared with its values")

    def of_kind(self, binding: Binding, kind: ColumnKind) -> Terminal | None:
        """The qualified columns of one table that compare with this kind."""
        columns = [c for c in self.tables[binding.table].columns if c.kind in (kind, ColumnKind.ANY)]
        names = [f"{binding.qualifier}.{identifier(column.name)}" for column in columns]
        return self.spelling.names(names, f"column of {self.tables[binding.table].name}") if names else None

    # Values ------------------------------------------------------------------------------------------------------

    def number(self, scope: Scope, flavour: Flavour) -> Reference:
        """A numeric value: operands with arithmetic between them."""
        return self._rule("number", scope, flavour, lambda: self._number(scope, flavour))

    def text(self, scope: Scope, flavour: Flavour) -> Reference:
        """A string value: operands with ``||`` between them."""
        return self._rule("text", scope, flavour, lambda: self._text(scope, flavour))

    def value(self, scope: Scope, flavour: Flavour) -> Body:
        """A value of either kind."""
        return choice(self.number(scope, flavour), self.text(scope, flavour))

    def sort_key(self, scope: Scope, flavour: Flavour) -> Reference:
        """A value that does not start with a literal or bracket: SQLite reads a bare number there as a position."""

        def build() -> Body:
            columns = self.columns(scope)
            number = self._arithmetic_on(choice(*columns.number, self._number_call(scope, flavour)), scope, flavour)
            return choice(number, *columns.text, self._text_call(scope, flavour))

        return self._rule("sort key", scope, flavour, build)

    def _rule(self, what: str, scope: Scope, flavour: Flavour, build: Callable[[], Body], *more: Hashable) -> Reference:
        names = ", ".join(binding.source for binding in scope.bindings)
        return self.rules.get((what, scope, flavour, *more), f"{what} over {names}", build)

    def _number(self, scope: Scope, flavour: Flavour) -> Body:
        s = self.spelling
        operand = self._number_operand(scope, flavour)
        first = choice(operand, sequence(s.snippet("-"), choice(s.number, self._number_call(scope, flavour))))
        return self._arithmetic_on(first, scope, flavour)

    def _number_operand(self, scope: Scope, flavour: Flavour) -> Body:
        call = self._number_call(scope, flavour)
        return choice(*self.columns(scope).number, call, self.spelling.number, self._bracketed(scope, flavour))

    def _arithmetic_on(self, first: Body, scope: Scope, flavour: Flavour) -> Body:
        more = sequence(self._arithmetic, self._number_operand(scope, flavour))
        return sequence(first, Repetition(more, 0, MAX_OPERANDS - 1))

    def _bracketed(self, scope: Scope, flavour: Flavour) -> Body:
        return sequence(self.spelling.snippet("("), self._flat_number(scope, flavour), self.close)

    def _text(self, scope: Scope, flavour: Flavour) -> Body:
        operand = choice(*self.columns(scope).text, self._text_call(scope, flavour), self.spelling.string)
        return Repetition(operand, 1, MAX_OPERANDS, self.spelling.snippet(" || "))

    def _flat_number(self, scope: Scope, flavour: Flavour) -> Reference:
        def build() -> Body:
            s, columns = self.spelling, self.columns(scope)
            number = choice(*(*columns.number, *self._number_aggregates(scope, flavour)) or (s.number,))
            text = choice(*columns.text, *self._text_aggregates(scope, flavour)) if columns.text else None
            calls = self._number_functions(number, text, choice(number, text), choice(number, s.number))
            first = choice(number, *calls, s.number)
            return Repetition(first, 1, MAX_OPERANDS, self._arithmetic)

        return self._rule("flat number", scope, flavour, build)

    def _flat_text(self, scope: Scope, flavour: Flavour) -> Reference:
        def build() -> Body:
            columns = self.columns(scope)
            aggregates = self._number_aggregates(scope, flavour)
            text = choice(*columns.text, *self._text_aggregates(scope, flavour), self.spelling.string)
            calls = self._text_functions(text, choice(*columns.number, *aggregates, *columns.text))
            return Repetition(choice(text, *calls), 1, MAX_OPERANDS, self.spelling.snippet(" || "))

        return self._rule("flat text", scope, flavour, build)

    def _number_call(self, scope: Scope, flavour: Flavour) -> Reference:
        def build() -> Body:
            number = self._flat_number(scope, flavour)
            text = self._flat_text(scope, flavour) if self.columns(scope).text else None
            functions = self._number_functions(number, text, choice(number, text), number)
            case = self._case(scope, self._flat_number(scope, Flavour.ROW))
            return choice(*self._number_aggregates(scope, flavour), *functions, case)

        return self._rule("numeric call", scope, flavour, build)

    def _text_call(self, scope: Scope, flavour: Flavour) -> Reference:
        def build() -> Body:
            text = self._flat_text(scope, flavour)
            functions = self._text_functions(text, choice(self._flat_number(scope, flavour), text))
            case = self._case(scope, self._flat_text(scope, Flavour.ROW))
            return choice(*self._text_aggregates(scope, flavour), *functions, case)

        return self._rule("string call", scope, flavour, build)

    def _number_aggregates(self, scope: Scope, flavour: Flavour) -> list[Body]:
        if flavour is Flavour.ROW:
            return []
        s, number = self.spelling.snippet, self.number(scope, Flavour.ROW)
        heads = s("SUM(", "AVG(", "MIN(", "MAX(", "TOTAL(", "SUM(DISTINCT ", "AVG(DISTINCT ")
        counted = self.value(scope, Flavour.ROW) if self.columns(scope).text else number
        return [
            s("COUNT(*)"),
            sequence(s("COUNT(", "COUNT(DISTINCT "), counted, self.close),
            sequence(heads, number, self.close),
        ]

    def _text_aggregates(self, scope: Scope, flavour: Flavour) -> list[Body]:
        if flavour is Flavour.ROW or not self.columns(scope).text:
            return []
        s, text = self.spelling.snippet, self.text(scope, Flavour.ROW)
        separated = sequence(s("GROUP_CONCAT("), text, self.comma, self.spelling.string, self.close)
        heads = s("MIN(", "MAX(", "GROUP_CONCAT(", "GROUP_CONCAT(DISTINCT ")
        return [sequence(heads, text, self.close), separated]

    def _number_functions(self, number: Body, text: Body | None, value: Body, default: Body) -> list[Body]:
        s, close, comma = self.spelling.snippet, self.close, self.comma
        functions: list[Body] = [
            sequence(s("ABS("), number, close),
            sequence(s("ROUND("), number, maybe(comma, self.spelling.digit), close),
            sequence(s("COALESCE(", "IFNULL(", "NULLIF("), number, comma, default, close),
            sequence(s("CAST("), value, s(" AS REAL)", " AS INTEGER)", " AS NUMERIC)")),
        ]
        if text is not None:
            functions.append(sequence(s("LENGTH(", "JULIANDAY("), text, close))
            functions.append(sequence(s("INSTR("), text, comma, self.spelling.string, close))
            year = sequence(s("STRFTIME("), self.spelling.date_format, comma, text, close)
            functions.append(sequence(s("CAST("), year, s(" AS INTEGER)")))
        return functions

    def _text_functions(self, text: Body, value: Body) -> list[Body]:
        s, close, comma, string = self.spelling.snippet, self.close, self.comma, self.spelling.string
        whole = self.spelling.integer
        return [
            sequence(s("LOWER(", "UPPER(", "TRIM("), text, close),
            sequence(s("SUBSTR("), text, comma, whole, maybe(comma, whole), close),
            sequence(s("REPLACE("), text, comma, string, comma, string, close),
            sequence(s("COALESCE(", "IFNULL(", "NULLIF("), text, comma, text, close),
            sequence(s("STRFTIME("), self.spelling.date_format, comma, text, close),
            sequence(s("DATE(", "DATETIME(", "TIME("), text, maybe(comma, string), close),
            sequence(s("CAST("), value, s(" AS TEXT)")),
        ]

    def _case(self, scope: Scope, result: Body) -> Body:
        s = self.spelling.snippet
        branch = sequence(s(" WHEN "), self.flat_condition(scope), s(" THEN "), result)
        tail = maybe(s(" ELSE "), choice(result, s("NULL")))
        return sequence(s("CASE"), Repetition(branch, 1, MAX_OPERANDS), tail, s(" END"))

    # Conditions --------------------------------------------------------------------------------------------------

    def flat_condition(self, scope: Scope) -> Reference:
        """A condition on flat values, without brackets or sub-queries, for CASE."""

        def build() -> Body:
            columns = self.columns(scope)
            number, text = self._flat_number(scope, Flavour.ROW), self._flat_text(scope, Flavour.ROW)
            free = choice(*columns.free) if columns.free else None
            atoms = self._number_atoms(choice(*columns.number), number, None) if columns.number else []
            return self._conditions(atoms + self._text_atoms(columns, free, text, None, None))

        return self._rule("plain condition", scope, Flavour.ROW, build)

    def condition(
        self, scope: Scope, flavour: Flavour, queries: Queries | None, brackets: int = MAX_BRACKETS
    ) -> Reference:
        """A condition; ``queries`` gives the sub-queries it may hold, None for none."""

        def build() -> Body:
            s, columns = self.spelling.snippet, self.columns(scope)
            left = choice(*columns.number, self._number_call(scope, flavour), self._bracketed(scope, flavour))
            left = self._arithmetic_on(left, scope, flavour)
            atoms = self._number_atoms(left, self.number(scope, flavour), queries)
            if columns.text:
                call = self._text_call(scope, flavour)
                free = choice(*columns.free, call)
                atoms += self._text_atoms(columns, free, self.text(scope, flavour), call, queries)
            if queries is not None:
                atoms.append(sequence(s("EXISTS ("), queries.any_rows, self.close))
            if brackets:
                inside = self.condition(scope, flavour, queries, brackets - 1)
                atoms.append(sequence(s("("), inside, self.close))
            return self._conditions(atoms)

        level = None if queries is None else queries.key
        return self._rule("condition", scope, flavour, build, level, brackets)

    def _conditions(self, atoms: list[Body]) -> Body:
        s = self.spelling.snippet
        one = sequence(maybe(s("NOT ")), choice(*atoms))
        return Repetition(one, 1, MAX_CONDITIONS, s(" AND ", " OR "))

    def _number_atoms(self, left: Body, right: Body, queries: Queries | None) -> list[Body]:
        s, number = self.spelling.snippet, self.spelling.number
        signed = sequence(maybe(s("-")), number)
        listed: Body = comma_list(signed, self.comma, MAX_LIST)
        if queries is not None:
            listed = choice(listed, queries.numbers)
            right = choice(right, queries.number)
        return [
            sequence(
                left,
                choice(
                    sequence(self._compare, right),
                    sequence(s(" BETWEEN ", " NOT BETWEEN "), right, s(" AND "), right),
                    sequence(s(" IN (", " NOT IN ("), listed, self.close),
                    self._is_null,
                ),
            )
        ]

    def _text_atoms(
        self, columns: Columns, free: Body | None, text: Body, call: Body | None, queries: Queries | None
    ) -> list[Body]:
        """Comparisons of strings: of ``free`` operands with any text, of columns with values with those."""
        s, string = self.spelling.snippet, self.spelling.string
        listed: Body = comma_list(string, self.comma, MAX_LIST)
        query: tuple[Body, ...] = ()
        if queries is not None:
            query = (queries.text,)
            listed = choice(listed, queries.texts)
        order = [
            sequence(s(" LIKE ", " NOT LIKE "), text),
            sequence(s(" BETWEEN ", " NOT BETWEEN "), text, s(" AND "), text),
            self._is_null,
        ]
        within = s(" IN (", " NOT IN (")
        atoms: list[Body] = []
        if free is not None:
            same = sequence(self._compare, choice(text, *query))
            atoms.append(sequence(free, choice(same, sequence(within, listed, self.close), *order)))
        for names, equations in columns.sampled:
            other = choice(*columns.text, *((call,) if call is not None else ()), *query)
            after: list[Body] = [
                sequence(s(" = ", " != ", " <> "), other),
                sequence(s(" < ", " <= ", " > ", " >= "), choice(text, *query)),
                *order,
            ]
            if queries is not None:
                after.append(sequence(within, queries.texts, self.close))
            atoms += [equations, sequence(names, choice(*after))]
        return atoms


@dataclass(frozen=True)
class Queries:
    """Sub-queries that a condition may hold; ``key`` tells sets of them apart.

    ``number`` and ``text`` are bracketed scalars, ``numbers`` and ``texts`` are queries of one column, ``any_rows``
    is what EXISTS asks about.
    """

    key: Hashable
    number: Body
    text: Body
    numbers: Body
    texts: Body
    any_rows: Body


def comma_list(item: Body, comma: Body, high: int) -> Repetition:
    """One to ``high`` items."""
    return Repetition(item, 1, high, comma)
