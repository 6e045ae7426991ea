"""The columns of a scope as terminals: one for each table, kind and way to name it, shared between scopes.

Sharing matters beyond memory: where a hundred scopes may go on with a column of the same table, the engine follows one
terminal, not a hundred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from guided.grammar.ir import Terminal
from guided.grammar.regular.expr import alternation, concat, repeat
from guided.grammar.sql.schema import Column, ColumnKind, Table
from guided.grammar.sql.scope import Binding, Scope
from guided.grammar.sql.spelling import Spelling, identifier

__all__ = ["ColumnTerminals", "Columns", "View"]


@dataclass(frozen=True)
class View:
    """One binding of a scope, and those of its columns that need no qualifier there."""

    binding: Binding
    bare: frozenset[str]


@dataclass(frozen=True)
class Columns:
    """The terminals of a view or scope, by kind; a column of unknown type counts as number and as text."""

    number: tuple[Terminal, ...]
    text: tuple[Terminal, ...]
    """All text columns."""
    free: tuple[Terminal, ...]
    """Text columns that any string may be compared with."""
    sampled: tuple[tuple[Terminal, Terminal], ...]
    """Text columns with sampled values: (their names, the equations with those values)."""
    boolean: tuple[Terminal, ...]


class ColumnTerminals:
    """Makes and keeps the columns of views and scopes."""

    def __init__(self, spelling: Spelling, tables: tuple[Table, ...]) -> None:
        self.spelling = spelling
        self.tables = tables
        self._of_view: dict[View, Columns] = {}
        self._of_scope: dict[Scope, Columns] = {}
        self._views: dict[Scope, tuple[View, ...]] = {}

    def views(self, scope: Scope) -> tuple[View, ...]:
        """The scope's bindings with what is unambiguous in it."""
        found = self._views.get(scope)
        if found is None:
            tables = [self.tables[binding.table] for binding in scope.bindings]
            count = Counter(column.name.lower() for table in tables for column in table.columns)
            found = self._views[scope] = tuple(
                View(binding, frozenset(c.name for c in table.columns if count[c.name.lower()] == 1))
                for binding, table in zip(scope.bindings, tables, strict=True)
            )
        return found

    def of(self, scope: Scope) -> Columns:
        """All columns of a scope."""
        found = self._of_scope.get(scope)
        if found is None:
            views = [self.of_view(view) for view in self.views(scope)]
            found = self._of_scope[scope] = Columns(
                tuple(terminal for columns in views for terminal in columns.number),
                tuple(terminal for columns in views for terminal in columns.text),
                tuple(terminal for columns in views for terminal in columns.free),
                tuple(pair for columns in views for pair in columns.sampled),
                tuple(terminal for columns in views for terminal in columns.boolean),
            )
        return found

    def of_view(self, view: View) -> Columns:
        """The columns of one binding: each with its qualifier, and without one where that is unambiguous."""
        found = self._of_view.get(view)
        if found is None:
            found = self._of_view[view] = self._make(view)
        return found

    def of_kind(self, binding: Binding, kind: ColumnKind) -> Terminal | None:
        """The qualified columns of one binding that compare with this kind."""
        names = [c for c in self.tables[binding.table].columns if c.kind in (kind, ColumnKind.ANY)]
        return self._names(f"{binding.qualifier}.", binding, names) if names else None

    def _make(self, view: View) -> Columns:
        columns = self.tables[view.binding.table].columns
        bare = tuple(column for column in columns if column.name in view.bare)
        number: list[Terminal] = []
        text: list[Terminal] = []
        free: list[Terminal] = []
        sampled: list[tuple[Terminal, Terminal]] = []
        boolean: list[Terminal] = []
        for prefix, some in ((f"{view.binding.qualifier}.", columns), ("", bare)):
            texts = [column for column in some if column.kind is not ColumnKind.NUMBER]
            valued = [column for column in texts if column.values]
            for kept, to in (
                ([column for column in some if column.kind is not ColumnKind.TEXT], number),
                (texts, text),
                ([column for column in texts if not column.values], free),
                ([column for column in some if "BOOL" in column.type.upper()], boolean),
            ):
                if kept:
                    to.append(self._names(prefix, view.binding, kept))
            if valued:
                sampled.append((self._names(prefix, view.binding, valued), self._equations(prefix, valued)))
        return Columns(tuple(number), tuple(text), tuple(free), tuple(sampled), tuple(boolean))

    def _names(self, prefix: str, binding: Binding, columns: Iterable[Column]) -> Terminal:
        label = f"column of {self.tables[binding.table].name}"
        return self.spelling.names((prefix + identifier(column.name) for column in columns), label)

    def _equations(self, prefix: str, columns: list[Column]) -> Terminal:
        """``column = value`` and ``column IN (value, ...)``, with the sampled values of each column only."""
        s = self.spelling.snippet
        equals, within = s(" = ", " != ", " <> ").expr, s(" IN (", " NOT IN (").expr
        comma, close = s(", ").expr, s(")").expr
        parts = []
        for column in columns:
            name = self.spelling.names([prefix + identifier(column.name)], column.name).expr
            value = self.spelling.values(column.values).expr
            several = concat(within, value, repeat(concat(comma, value)), close)
            parts.append(concat(name, alternation([concat(equals, value), several])))
        return Terminal(alternation(parts), "a column compared with its values")
