"""Endless (database schema, question) -> SQLite SELECT pairs over random schemas.

A *case* is one schema with several questions about it.  The schema keeps the values each column may hold, so that the
evaluation can fill a database in which the questions have answers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import words
from names import (
    RESERVED,
    STYLES,
    Name,
    Style,
    column_name,
    date_value,
    number_value,
    plural,
    styled,
    text_value,
    written_date,
)
from sql_spelling import Spelling
from words import Lexicon

from guided.nano import Column, ForeignKey, Table

__all__ = ["Field", "Relation", "Schema", "random_schema", "rendered", "spelled"]


@dataclass(frozen=True)
class Field:
    """A column: ``kind`` is int, real, text, date or bool; ``pool`` the values it may hold, unquoted.

    ``id`` is its name as a statement writes it, ``bare`` as the database keeps it.
    """

    name: Name
    kind: str
    pool: tuple[str, ...]
    references: str | None = None
    spelling: Spelling = Spelling.SQLITE

    @property
    def bare(self) -> str:
        return self.name.identifier

    @property
    def id(self) -> str:
        return self.spelling.name_of(self.bare)


@dataclass(frozen=True)
class Relation:
    """A table; its first field is the key, always called id or after the table.  ``id`` and ``bare`` as for fields."""

    name: Name
    fields: tuple[Field, ...]
    spelling: Spelling = Spelling.SQLITE

    @property
    def bare(self) -> str:
        return self.name.identifier

    @property
    def id(self) -> str:
        return self.spelling.name_of(self.bare)

    def of_kind(self, *kinds: str) -> list[Field]:
        """The fields of these kinds, keys and foreign keys left out."""
        return [field for field in self.fields[1:] if field.kind in kinds and field.references is None]

    @property
    def label(self) -> Field:
        """What a row is called by: its name or title, else its first text, else its key."""
        texts = self.of_kind("text")
        named = [field for field in texts if field.bare.lower() in ("name", "title")]
        return (named or texts or [self.fields[0]])[0]


@dataclass(frozen=True)
class Schema:
    """Tables in order; ``links`` are (child, foreign key field, parent)."""

    relations: tuple[Relation, ...]
    spelling: Spelling = Spelling.SQLITE

    @property
    def links(self) -> list[tuple[Relation, Field, Relation]]:
        by_name = {relation.bare: relation for relation in self.relations}
        return [
            (child, field, by_name[field.references])
            for child in self.relations
            for field in child.fields
            if field.references is not None
        ]


_BASES = {
    "text": words.ATTRIBUTES,
    "int": words.MEASURES,
    "real": words.MEASURES,
    "date": words.DATES,
    "bool": words.FLAGS,
}


def random_schema(rng: random.Random, lexicon: Lexicon, largest: int = 3, tables: int | None = None) -> Schema:
    """One to ``largest`` tables, or just ``tables``, of two to six columns, most of them linked by foreign keys."""
    style = rng.choice(STYLES)
    plurals = rng.random() < 0.6
    relations: list[Relation] = []
    taken: set[str] = set()
    for _ in range(tables or rng.choice([n for n in (1, 1, 2, 2, 2, 3) if n <= largest])):
        while True:
            singular = words.made_up_word(rng, lexicon) if rng.random() < 0.2 else words.pick(rng, words.NOUNS, lexicon)
            parts = [words.pick(rng, words.NOUNS, lexicon), singular] if rng.random() < 0.12 else [singular]
            if parts[-1] not in RESERVED and not taken & {*parts, *map(plural, parts)}:
                break
        taken.update(parts)
        relations.append(_random_relation(rng, parts, style, plurals, relations, lexicon))
    rng.shuffle(relations)
    return Schema(tuple(relations))


def spelled(schema: Schema, spelling: Spelling) -> Schema:
    """The same tables, whose questions are answered in another dialect."""
    relations = (
        replace(
            relation, spelling=spelling, fields=tuple(replace(field, spelling=spelling) for field in relation.fields)
        )
        for relation in schema.relations
    )
    return Schema(tuple(relations), spelling)


def _random_relation(
    rng: random.Random, parts: list[str], style: Style, plurals: bool, others: list[Relation], lexicon: Lexicon
) -> Relation:
    table_parts = [*parts[:-1], plural(parts[-1])] if plurals else parts
    name = Name(styled(table_parts, style), " ".join(parts))
    key = Name("id", "id") if rng.random() < 0.75 else Name(styled([*parts, "id"], style), " ".join([*parts, "id"]))
    if style == "pascal" and key.identifier == "id":
        key = Name("Id", "id")
    fields = [Field(key, "int", ())]
    used = {key.identifier.lower()}
    if rng.random() < 0.45:
        called = "title" if rng.random() < 0.2 else "name"
        fields.append(Field(Name(styled([called], style), called), "text", _pool(rng, "text", lexicon)))
        used.add(called)
    for _ in range(rng.randint(1, 5)):
        kind = rng.choices(list(_BASES), [4, 3, 2, 1.2, 0.8])[0]
        column = column_name(rng, _BASES[kind], style, lexicon)
        if column.identifier.lower() not in used and column.identifier.lower() != name.identifier.lower():
            used.add(column.identifier.lower())
            fields.append(Field(column, kind, _pool(rng, kind, lexicon)))
    if others and rng.random() < 0.85:
        parent = rng.choice(others)
        words_of_key = [*parent.name.spoken.split(), "id"]
        identifier = styled(words_of_key, style)
        if identifier.lower() not in used:
            foreign = Field(Name(identifier, " ".join(words_of_key)), "int", (), references=parent.bare)
            fields.insert(rng.randint(1, len(fields)), foreign)
    return Relation(name, tuple(fields))


def _pool(rng: random.Random, kind: str, lexicon: Lexicon) -> tuple[str, ...]:
    if kind == "text":
        return tuple(dict.fromkeys(text_value(rng, lexicon) for _ in range(rng.randint(3, 6))))
    if kind == "date":
        return tuple(date_value(rng) for _ in range(6))
    if kind == "bool":
        return ("0", "1")
    low, high = sorted(int(number_value(rng, True)) for _ in range(2))
    span = max(high - low, 5)
    if kind == "int":
        return tuple(str(low + rng.randint(0, span)) for _ in range(8))
    return tuple(f"{low + rng.randint(0, span)}.{rng.randint(1, 9)}" for _ in range(8))


_SQL_TYPES = {
    "int": ("INTEGER", "INTEGER", "BIGINT", "INT"),
    "real": ("REAL", "FLOAT", "NUMERIC", "DECIMAL(10, 2)"),
    "text": ("TEXT", "VARCHAR(40)", "VARCHAR"),
    "date": ("DATE", "DATE", "TIMESTAMP"),
    "bool": ("BOOLEAN",),
}


def rendered(schema: Schema) -> list[Table]:
    """The schema as reflection would give it to :func:`guided.nano.sql_prompt`."""
    keys = {relation.bare: relation.fields[0].id for relation in schema.relations}
    return [
        Table(
            relation.bare,
            tuple(Column(field.bare, _SQL_TYPES[field.kind][0]) for field in relation.fields),
            tuple(
                ForeignKey(field.bare, field.references, keys[field.references])
                for field in relation.fields
                if field.references is not None
            ),
        )
        for relation in schema.relations
    ]


def said_date(rng: random.Random, iso: str) -> str:
    """A date in a question: mostly ISO."""
    return iso if rng.random() < 0.7 else written_date(rng, iso)
