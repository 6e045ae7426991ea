"""What a catalogue tells, before values are sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from guided.errors import GuidedError
from guided.grammar.sql.schema import NameCase, Table

__all__ = ["ALL_SCHEMAS", "NO_RIGHT", "NO_USE", "Found", "check_schemas"]

NO_RIGHT = "this user may not read it"
"""Why a table is left out that the user has no right to."""
NO_USE = "this user may not use it"
"""The same of a schema."""


@dataclass
class Found:
    """The tables of a database, and what is true of all of them."""

    default_schema: str | None
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    table_names: NameCase = NameCase.IGNORED
    column_names: NameCase = NameCase.IGNORED
    version: tuple[int, ...] = ()
    modes: tuple[str, ...] = ()

    def leave_out(self, table: str, why: object) -> None:
        """Note that a table is not among those that a query may name."""
        self.notes.append(f"table {table!r} is left out: {' '.join(str(why).split())}")


ALL_SCHEMAS = "*"
"""Stands for every schema but the engine's own."""


def check_schemas(wanted: Sequence[str] | None, known: Sequence[str], default: str | None) -> list[str]:
    """The schemas to read besides the default one; raises `GuidedError` for one that is not there."""
    chosen = [name for name in wanted or () if name != default]
    if ALL_SCHEMAS in chosen:
        return [name for name in known if name != default]
    for name in chosen:
        if name not in known:
            raise GuidedError(f"there is no schema {name!r}", remedy=f"Its schemas are: {', '.join(map(repr, known))}.")
    return list(dict.fromkeys(chosen))
