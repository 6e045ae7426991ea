"""What begins and ends a tag: text, special tokens, or both one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from guided.errors import GrammarError
from guided.grammar.embed import Assembly
from guided.grammar.ir import Body, Grammar, Terminal
from guided.grammar.ir import Sequence as Parts
from guided.grammar.regular.expr import literal
from guided.grammar.special import special_token

__all__ = ["Delimiter", "Piece", "parts_of", "pieces_of", "shown"]

Delimiter: TypeAlias = "str | Grammar | Sequence[str | Grammar]"
"""A text, a `guided.special_token`, or several of them one after another."""

Piece: TypeAlias = "str | Grammar"
"""A text that is not empty, or the grammar of one special token."""


def pieces_of(delimiter: Delimiter, where: str) -> tuple[Piece, ...]:
    """The texts and special tokens of a delimiter, neighbouring texts joined and empty ones left out.

    Raises `GrammarError` for what is neither text nor special tokens, and for lone surrogates.
    """
    given = (delimiter,) if isinstance(delimiter, (str, Grammar)) else tuple(delimiter)
    pieces: list[Piece] = []
    for item in given:
        if isinstance(item, str):
            if any("\ud800" <= character <= "\udfff" for character in item):
                raise GrammarError(
                    f"{item!r} holds a lone surrogate, which no text can", where=where, remedy="Remove it."
                )
            if pieces and isinstance(pieces[-1], str):
                pieces[-1] += item
            elif item:
                pieces.append(item)
        elif isinstance(item, Grammar) and item.rebuild is not None and item.rebuild[0] is special_token:
            pieces.append(item)
        else:
            raise GrammarError(
                f"a delimiter is text or special tokens, not {item!r}",
                where=where,
                remedy="Pass a str or guided.special_token(...); what may vary belongs to the content.",
            )
    return tuple(pieces)


def parts_of(assembly: Assembly, pieces: Sequence[Piece]) -> list[Body]:
    """The pieces as bodies of a rule."""
    return [
        Terminal(literal(piece.encode()), repr(piece)) if isinstance(piece, str) else assembly.embed(piece)
        for piece in pieces
    ]


def shown(pieces: Sequence[Piece]) -> str:
    """The pieces as they look in a text."""
    return "".join(piece if isinstance(piece, str) else piece.special_tokens[0] for piece in pieces)


def sequence(parts: Sequence[Body]) -> Body:
    """The parts one after another."""
    return parts[0] if len(parts) == 1 else Parts(tuple(parts))
