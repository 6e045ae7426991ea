"""What differs between engines whose types are followed: words, signs, literals and clauses, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from guided.grammar.attributed.lexis import Lexis
from guided.grammar.attributed.nodes import LiteralForm
from guided.grammar.sql.query.typed.system import TypeSystem

__all__ = ["Nested", "TypedDialect"]


@dataclass(frozen=True)
class Nested:
    """A struct, or a map if it has no fields; ``name`` is one of `typed.types.NESTED`."""

    name: str
    fields: tuple[tuple[str, str], ...] = ()
    """Names, folded, and types."""
    key: str = ""
    value: str = ""


@dataclass(frozen=True, eq=False)
class TypedDialect:
    """An engine's; keywords are written as people write them."""

    lexis: Lexis
    keywords: frozenset[str]
    """Words that are no alias unless AS stands before them."""
    system: TypeSystem
    declared: Callable[[str], str]
    """The type of a column by the words in which the engine tells it."""
    type_words: Mapping[str, str]
    """Types of one word, to which a cast may lead."""
    type_phrases: Mapping[str, str]
    """Those of several."""
    sized_types: Mapping[str, str]
    """Those that a size may follow."""
    scaled_types: tuple[tuple[str, int, int], ...]
    """Decimals by the fewest and most digits behind the point."""
    most_digits: int
    """Those that a decimal may have."""
    moments: Mapping[str, str]
    """Words that stand for a date or a time, with their types."""
    signs: tuple[str, ...]
    """Binary operators that have a sign, but for comparisons and matches."""
    patterns: tuple[str, ...]
    """Words of operators that match a pattern which may be any text."""
    matches: tuple[str, ...]
    """Signs and words of operators that match a regular expression."""
    numbers: Mapping[str, str]
    """Spellings of numbers, by the type that each is read as."""
    strings: tuple[str, ...]
    """The literals of `typed.types.LITERALS` that it has, any text last."""
    typed_texts: tuple[tuple[str, str, str], ...]
    """Words before a string, its spelling (`typed.types.LITERALS`), and the type that both have."""
    span_units: tuple[str, ...]
    """Units behind INTERVAL and a whole number."""
    span_forms: tuple[LiteralForm, ...]
    """How that number is written: as one, or in quotes."""
    fields: tuple[tuple[str, str, str], ...]
    """What EXTRACT takes of a type, by one of each kind; the type that it gives."""
    whole: str
    """The type of what POSITION gives."""
    wholes: tuple[str, ...]
    """The types of the numbers that SUBSTRING and subscripts take."""
    word_functions: tuple[str, ...]
    """Functions whose names are reserved words."""
    selected_rows: tuple[str, ...] = ()
    """Functions that give rows which SELECT may have as a column."""
    enums: tuple[tuple[str, ...], ...] = ()
    """The labels of types that the database defines, which are `typed.types.ENUMS` in their order."""
    nested: tuple[Nested, ...] = ()
    """The structs and maps of the database."""
