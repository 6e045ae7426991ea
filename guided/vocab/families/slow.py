"""Hugging Face tokenizers written in Python ("slow"): told apart by what they offer, then checked against ``decode``.

Their ``decode`` strips the ends of a text in ways that differ from class to class, so the check ignores outer spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from guided.errors import VocabularyError
from guided.vocab.families.self_check import check_round_trips
from guided.vocab.families.sentencepiece import PieceKind, parse_model, piece_bytes
from guided.vocab.families.table import Reading, TokenTable, joined_pieces, known_end_ids, special_names, unknown_bytes
from guided.vocab.families.word_piece import word_piece_decoder

__all__ = ["read_slow"]

_BYTE_PIECE = re.compile(r"<0x[0-9A-Fa-f]{2}>\Z")


def read_slow(tokenizer: Any, eos_ids: tuple[int, ...] | None, text_ids: frozenset[int]) -> Reading:
    """Read the vocabulary, the added tokens and the family of a Python tokenizer.

    Raises `VocabularyError` for text ids that are no added tokens.
    """
    by_piece: Mapping[str | bytes, int] = tokenizer.get_vocab()
    added = {int(token): str(entry) for token, entry in tokenizer.added_tokens_decoder.items()}
    own = getattr(tokenizer, "eos_token_id", None)
    if eos_ids is None:
        named = ((name, token) for token, name in added.items())
        eos_ids = known_end_ids(named, "tokenizer") if own is None else (int(own),)
    never = set(added) | set(tokenizer.all_special_ids)
    unknown = sorted(text_ids - set(added))
    if unknown:
        raise VocabularyError(f"text id {unknown[0]} is no added token", remedy="Leave it out of text_ids.")
    size = max([*by_piece.values(), *added], default=-1) + 1
    pieces: list[str | bytes | None] = [None] * size
    for piece, token in by_piece.items():
        if token not in never:
            pieces[token] = piece
    family, to_bytes, strips = _family(tokenizer, [piece for piece in pieces if piece is not None])
    content = [
        b"slow 2",
        family.encode(),
        repr(pieces).encode("utf-8", "surrogatepass"),
        joined_pieces([f"{token} {added[token]}" for token in sorted(text_ids)]),
        joined_pieces([f"{token} {name}" for token, name in sorted(added.items())]),
    ]

    def table() -> TokenTable:
        tokens: list[bytes | None] = [None if piece is None else to_bytes(piece) for piece in pieces]
        checked = [None if _printed_otherwise(piece) else data for piece, data in zip(pieces, tokens, strict=True)]
        check_round_trips(
            checked,
            lambda ids: tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False),
            strips_space=strips,
            ignore_outer_spaces=True,
        )
        for token in text_ids:
            tokens[token] = added[token].encode()
        named = [(added[token], token) for token in sorted(added)]
        return TokenTable(tokens, strips, special_names(named, text_ids))

    return Reading(content, eos_ids, table)


def _printed_otherwise(piece: str | bytes | None) -> bool:
    """Return whether the piece is a byte of SentencePiece, which Python tokenizers print as ``<0xNN>``, not decoded."""
    return isinstance(piece, str) and _BYTE_PIECE.match(piece) is not None


def _family(tokenizer: Any, pieces: list[str | bytes]) -> tuple[str, Callable[[Any], bytes | None], bool]:
    """Return the family's name for the key, the bytes of one of its pieces, and whether decode strips a first space."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if not texts:
        return "bytes", lambda piece: piece, False
    if len(texts) < len(pieces):
        raise VocabularyError("the tokenizer's vocabulary mixes strings and bytes", remedy="Use from_tokens.")
    alphabet = getattr(tokenizer, "byte_decoder", None)
    if isinstance(alphabet, Mapping) and len(alphabet) == 256:
        return f"byte level {sorted(alphabet.items())}", lambda piece: bytes(alphabet[c] for c in piece), False
    model = getattr(tokenizer, "sp_model", None)
    if model is not None:
        parsed = parse_model(bytes(model.serialized_model_proto()))
        kinds = dict(parsed.pieces)
        family = f"sentencepiece {parsed.pieces}"
        return family, lambda piece: piece_bytes(piece, kinds.get(piece, PieceKind.NORMAL)), True
    if set(texts) >= set(map(chr, range(256))) and all(len(piece) == 1 and ord(piece) < 256 for piece in texts):
        return "bytes as characters", lambda piece: piece.encode("latin-1"), False
    # What is left prints its pieces side by side or with spaces between; ask it which.
    probe = [piece for piece in texts if piece.isalnum()][:2]
    printed = tokenizer.convert_tokens_to_string(probe) if len(probe) == 2 else None
    if printed == " ".join(probe):
        if any(piece.startswith("##") for piece in texts):
            return "word pieces", word_piece_decoder("##", cleanup=False), True
        return "words", lambda piece: b" " + piece.encode(), True
    lossy = [piece for piece in texts if "�" in piece]
    if printed == "".join(probe) and not lossy:
        return "characters", lambda piece: piece.encode(), False
    vocabulary = tokenizer.get_vocab()
    raise unknown_bytes(
        sorted(vocabulary[piece] for piece in lossy or texts), f"{type(tokenizer).__qualname__} is of no known family"
    )
