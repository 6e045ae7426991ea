"""Exceptions of EBNF, ``A - B``: the texts of A that are none of B, as a regular language of their own.

While a text is read its exceptions stand as names that no rule can have; `settled` puts languages there.  What has no
regular language for sure, because a rule comes back to itself, is refused: the difference may not be context-free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.folding import place_of, regular_language
from guided.grammar.pieces import Definition, Either, Name, Piece, Regular, Repeated, Row, Text, pieces_of
from guided.grammar.regular.expr import difference

__all__ = ["Difference", "Exceptions"]


@dataclass(frozen=True, slots=True)
class Difference:
    """The texts of ``body`` without those of ``without``; ``label`` is how the grammar writes it."""

    body: Piece
    without: Piece
    offset: int
    label: str


class Exceptions:
    """The exceptions of one text, by the names that stand for them."""

    def __init__(self) -> None:
        self._found: dict[str, Difference] = {}

    def add(self, found: Difference) -> Piece:
        """What stands in the rule for the exception."""
        name = f"{found.label} (at {found.offset})"
        self._found[name] = found
        return Name(name, found.offset)

    def settled(self, definitions: Mapping[str, Definition], text: str) -> dict[str, Definition]:
        """The definitions with those of the exceptions.

        Raises `UnsupportedError` at an exception of which a side is not regular, and `GrammarError` where such a side
        names a rule that is not defined.

        An exception may stand inside others, in either side: each is settled when those inside it are.
        """
        result = dict(definitions)
        waiting = dict(self._found)
        progress = True
        while progress:
            progress = False
            for name, found in list(waiting.items()):
                piece = self._language(found, result)
                if piece is not None:
                    result[name] = Definition(piece, found.offset)
                    del waiting[name]
                    progress = True
        for found in waiting.values():
            raise self._refusal(found, result, waiting, text)
        return result

    def _language(self, found: Difference, definitions: Mapping[str, Definition]) -> Piece | None:
        body = regular_language(found.body, definitions)
        without = regular_language(found.without, definitions)
        if body is not None and without is not None:
            return Regular(difference(body, without), found.label)
        # `{A}-`, the usual way to say one or more, needs no regular A: only one that is never the empty text.
        match found:
            case Difference(Repeated(once, 0, None), Row(())) if not _may_be_empty(once, definitions):
                return Repeated(once, 1, None)
        return None

    def _refusal(
        self,
        found: Difference,
        definitions: Mapping[str, Definition],
        waiting: Mapping[str, Difference],
        text: str,
    ) -> GrammarError | UnsupportedError:
        """Why an exception has no language; one inside it that has none is the cause, and is waiting as well."""
        seen: set[str] = set()
        pieces = list(pieces_of([found.body, found.without]))
        for piece in pieces:
            if isinstance(piece, Name) and piece.name not in seen:
                seen.add(piece.name)
                if piece.name in definitions:
                    pieces += pieces_of([definitions[piece.name].body])
                elif piece.name not in waiting:
                    return GrammarError(
                        f"rule {piece.name!r} is not defined",
                        where=place_of(text, piece.offset),
                        remedy="Define it, or quote the text.",
                    )
        return UnsupportedError(
            f"the exception {found.label!r}, a side of which comes back to itself",
            where=place_of(text, found.offset),
            remedy="Write both sides without recursion, or say directly what is left.",
        )


def _may_be_empty(piece: Piece, definitions: Mapping[str, Definition]) -> bool:
    """May the piece be the empty text?  Also where a rule has no definition yet."""
    empty: set[str] = {
        item.name for item in pieces_of([d.body for d in definitions.values()]) if isinstance(item, Name)
    } - definitions.keys()

    def is_empty(part: Piece) -> bool:
        match part:
            case Text(text):
                return not text
            case Name(name):
                return name in empty or name not in definitions
            case Regular(language):
                return language.nullable
            case Row(parts):
                return all(map(is_empty, parts))
            case Either(options):
                return any(map(is_empty, options))
            case Repeated(body, low):
                return low == 0 or is_empty(body)
            case _:
                return False

    grows = True
    while grows:
        added = {name for name, definition in definitions.items() if name not in empty and is_empty(definition.body)}
        empty |= added
        grows = bool(added)
    return is_empty(piece)
