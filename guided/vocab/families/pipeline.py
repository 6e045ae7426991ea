"""The decoder pipelines of the ``tokenizers`` library, turned into a function from one piece to its bytes.

A decoder maps a *list* of pieces to a text.  Those accepted here are, but for the first piece of a text, the
concatenation of what each piece maps to; any other is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from guided.errors import VocabularyError
from guided.vocab.families.byte_level import byte_level_decoder
from guided.vocab.families.word_piece import word_piece_decoder

__all__ = ["PieceDecoder", "piece_decoder"]

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")


@dataclass(frozen=True)
class PieceDecoder:
    """The bytes of a piece inside a text, and whether the first piece of a whole text loses one leading space."""

    to_bytes: Callable[[str], bytes]
    first_token_strips_space: bool


def piece_decoder(spec: Mapping[str, Any] | None) -> PieceDecoder:
    """Interpret a decoder as serialised in ``tokenizer.json``; raise `VocabularyError` for one that does not fit.

    >>> decoder = piece_decoder({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})
    >>> decoder.to_bytes("▁word"), decoder.first_token_strips_space
    (b' word', True)
    """
    steps = _flatten(spec)
    kinds = [step["type"] for step in steps]
    if not steps:
        # Without a decoder, the library joins the pieces with single spaces.
        return PieceDecoder(lambda piece: b" " + _utf8(piece), True)
    if kinds == ["ByteLevel"]:
        return PieceDecoder(byte_level_decoder(), False)
    if kinds == ["WordPiece"]:
        return PieceDecoder(word_piece_decoder(steps[0]["prefix"], cleanup=steps[0]["cleanup"]), True)
    return _replacing_decoder(steps)


def _flatten(spec: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    if spec is None:
        return []
    if spec["type"] == "Sequence":
        return [step for inner in spec["decoders"] for step in _flatten(inner)]
    return [spec]


def _replacing_decoder(steps: list[Mapping[str, Any]]) -> PieceDecoder:
    """Interpret replacements, byte fallback and the removal of the dummy prefix: SentencePiece in all its spellings."""
    replacements: list[tuple[str, str]] = []
    byte_fallback = fused = strips = False
    for step in steps:
        match step:
            case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(content)} if not fused:
                replacements.append((pattern, content))
            case {"type": "Metaspace", "replacement": str(mark)} if not fused:
                replacements.append((mark, " "))
                strips |= step.get("prepend_scheme", "always") != "never"
            case {"type": "ByteFallback"} if not fused:
                byte_fallback = True
            case {"type": "Fuse"}:
                fused = True
            case {"type": "Strip", "content": " ", "start": 1, "stop": 0} if fused:
                strips = True
            case _:
                raise VocabularyError(
                    f"the tokenizer's decoder {_describe(steps)} does not map single tokens to bytes: {step['type']}",
                    remedy="Give the bytes of every id yourself: Vocabulary.from_tokens(tokens, eos_ids=[...]).",
                )

    def to_bytes(piece: str) -> bytes:
        # `<0xNN>` holds no mark, so it is the same before and after the replacements.
        if byte_fallback and (byte := _BYTE.match(piece)):
            return bytes([int(byte[1], 16)])
        for pattern, content in replacements:
            piece = piece.replace(pattern, content)
        return _utf8(piece)

    return PieceDecoder(to_bytes, strips)


def _describe(steps: list[Mapping[str, Any]]) -> str:
    return "[" + ", ".join(str(step["type"]) for step in steps) + "]"


def _utf8(piece: str) -> bytes:
    return piece.encode("utf-8", "surrogatepass")
