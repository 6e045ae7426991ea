"""The columns of relations by name, with the types as which they are read where FROM is still to come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import count, takewhile

from guided.grammar.attributed.words import Words, words_of
from guided.grammar.sql.query.typed.relations import Relation
from guided.grammar.sql.query.typed.types import OTHER

__all__ = ["ReadColumns", "Readings", "columns_of"]

Readings = frozenset[tuple[str, str]]
"""Types, each with the wider one as which it is read."""


class ReadColumns:
    """Columns that FROM will bind: for each name the types as which it can be used."""

    def __init__(self, kinds: Iterable[tuple[str, Iterable[str]]], readings: Readings) -> None:
        wider = dict(readings)
        self.types: Mapping[str, tuple[str, ...]] = {
            name: tuple({wider.get(kind, kind): None for kind in some if kind != OTHER}) for name, some in kinds
        }

    @cached_property
    def untyped(self) -> frozenset[str]:
        """The names that cannot be used as any type."""
        return frozenset(name for name, types in self.types.items() if not types)

    @cached_property
    def by_count(self) -> tuple[Words, ...]:
        """The names with so many types or more, as long as there are any; all of them first."""
        sets = (words_of(name for name, of in self.types.items() if len(of) >= least) for least in count())
        return tuple(takewhile(len, sets))

    def of_count(self, least: int) -> Words:
        """The names with so many types or more."""
        return self.by_count[least] if least < len(self.by_count) else _NONE


_NONE = words_of(())


@lru_cache(maxsize=1 << 12)
def columns_of(relation: Relation, readings: Readings) -> ReadColumns:
    """Those of one relation."""
    return ReadColumns(((name, (kind,)) for name, kind in relation.types.items()), readings)
