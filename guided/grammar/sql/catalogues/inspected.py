"""What SQLAlchemy's inspector reads of many tables at once: columns' names, whether they may be NULL, and keys."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from guided.grammar.sql.schema import Column, ForeignKey, Table

__all__ = ["Inspected", "foreign_keys", "inspect_schema"]


@dataclass(frozen=True)
class Inspected:
    """Of one schema, by the table's name."""

    columns: dict[str, list[dict[str, Any]]]
    primary_keys: dict[str, tuple[str, ...]]
    foreign_keys: dict[str, tuple[ForeignKey, ...]]

    def table(self, name: str, columns: tuple[Column, ...], schema: str | None, *, view: bool) -> Table:
        """A table with these columns, and those keys whose columns are among them."""
        here = {column.name for column in columns}
        primary = self.primary_keys.get(name, ())
        return Table(
            name,
            columns,
            primary if here.issuperset(primary) else (),
            tuple(key for key in self.foreign_keys.get(name, ()) if here.issuperset(key.columns)),
            schema,
            view,
        )


def inspect_schema(inspector: Any, schema: str | None) -> Inspected:
    """Everything of one schema, None for the default one, by a few queries."""
    from sqlalchemy.engine.reflection import ObjectKind

    with warnings.catch_warnings():
        # SQLAlchemy warns of type names it does not know; the declared words are read from the catalogue itself.
        warnings.simplefilter("ignore")
        columns = inspector.get_multi_columns(schema=schema, kind=ObjectKind.ANY)
        primary = inspector.get_multi_pk_constraint(schema=schema)
        foreign = inspector.get_multi_foreign_keys(schema=schema)
    return Inspected(
        {name: found for (_, name), found in columns.items()},
        {name: tuple(found["constrained_columns"]) for (_, name), found in primary.items() if found},
        {name: foreign_keys(found) for (_, name), found in foreign.items()},
    )


def foreign_keys(found: list[dict[str, Any]], default_schema: str | None = None) -> tuple[ForeignKey, ...]:
    """Keys as an inspector gives them; those that name no columns refer to what is not there."""
    return tuple(
        ForeignKey(
            tuple(key["constrained_columns"]),
            key["referred_table"],
            tuple(key["referred_columns"]),
            None if key["referred_schema"] == default_schema else key["referred_schema"],
        )
        for key in found
        if key["referred_columns"]
    )
