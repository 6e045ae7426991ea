"""SentencePiece models: pieces with U+2581 for a space, byte pieces ``<0xNN>``, and control and user-defined pieces.

The kinds of pieces are read from the model's own protocol buffer (`sentencepiece_model.proto`), because the Python
class does not tell user-defined pieces from normal ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from guided.errors import VocabularyError
from guided.vocab.families.self_check import check_round_trips
from guided.vocab.families.table import Reading, TokenTable, known_end_ids, special_names

__all__ = ["Model", "PieceKind", "parse_model", "piece_bytes", "read_sentencepiece"]


class PieceKind(IntEnum):
    """``ModelProto.SentencePiece.Type``."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Model:
    """What a model file says about its pieces."""

    pieces: list[tuple[str, PieceKind]]
    strips_first_space: bool


def read_sentencepiece(processor: Any, eos_ids: tuple[int, ...] | None, text_ids: frozenset[int]) -> Reading:
    """Read a ``sentencepiece.SentencePieceProcessor``; only normal and byte pieces match text."""
    proto = bytes(processor.serialized_model_proto())
    if eos_ids is None:
        own = int(processor.eos_id())
        eos_ids = (own,) if own >= 0 else known_end_ids((), "SentencePiece model")

    def table() -> TokenTable:
        model = parse_model(proto)
        tokens = [piece_bytes(piece, kind) for piece, kind in model.pieces]
        check_round_trips(tokens, processor.decode, strips_space=model.strips_first_space)
        for token in text_ids:
            if not 0 <= token < len(tokens) or model.pieces[token][1] is not PieceKind.USER_DEFINED:
                raise VocabularyError(f"text id {token} is no user-defined piece", remedy="Leave it out of text_ids.")
            tokens[token] = piece_bytes(model.pieces[token][0], PieceKind.NORMAL)
        named = ((piece, token) for token, (piece, kind) in enumerate(model.pieces) if kind in _NAMED)
        return TokenTable(tokens, model.strips_first_space, special_names(named, text_ids))

    return Reading([b"sentencepiece 1", proto, repr(sorted(text_ids)).encode()], eos_ids, table)


_NAMED = (PieceKind.CONTROL, PieceKind.USER_DEFINED)
"""Pieces that a grammar may ask for by name."""


def piece_bytes(piece: str, kind: PieceKind) -> bytes | None:
    """Return the bytes that a piece stands for inside a text, ``None`` where it never matches text.

    >>> piece_bytes("▁the", PieceKind.NORMAL), piece_bytes("<0x0A>", PieceKind.BYTE)
    (b' the', b'\\n')
    """
    if kind is PieceKind.BYTE:
        return bytes([int(piece[3:5], 16)])
    return piece.replace("\u2581", " ").encode() if kind is PieceKind.NORMAL else None


def parse_model(proto: bytes) -> Model:
    """Read the pieces and the treatment of the first space from a serialised ``ModelProto``.

    Raises `VocabularyError` for a damaged model.
    """
    pieces: list[tuple[str, PieceKind]] = []
    strips = True
    for field, value in _fields(proto):
        if field == 1 and isinstance(value, bytes):
            of_piece = dict(_fields(value))
            text, kind = of_piece.get(1, b""), of_piece.get(3, PieceKind.NORMAL)
            if not isinstance(text, bytes) or not isinstance(kind, int):
                raise VocabularyError("the SentencePiece model is damaged", where=f"piece {len(pieces)}")
            pieces.append((text.decode(), PieceKind(kind)))
        elif field == 3 and isinstance(value, bytes):
            normalizer = dict(_fields(value))
            # `add_dummy_prefix` or `remove_extra_whitespaces`, both true unless said otherwise.
            strips = bool(normalizer.get(3, True)) or bool(normalizer.get(4, True))
    return Model(pieces, strips)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field of a protocol buffer: an integer, or the raw bytes of any other."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        match tag & 7:
            case 0:
                number, position = _varint(message, position)
                yield tag >> 3, number
                continue
            case 1:
                length = 8
            case 2:
                length, position = _varint(message, position)
            case 5:
                length = 4
            case wire:
                raise VocabularyError(f"the SentencePiece model is damaged: wire type {wire}", where=f"byte {position}")
        yield tag >> 3, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
