"""tiktoken encodings: the bytes of every rank are given as they are."""

from __future__ import annotations

from typing import Any

from guided.errors import VocabularyError
from guided.vocab.families.table import Reading, TokenTable, known_end_ids, special_names

__all__ = ["read_tiktoken"]


def read_tiktoken(encoding: Any, eos_ids: tuple[int, ...] | None, text_ids: frozenset[int]) -> Reading:
    """Read a ``tiktoken.Encoding``; ids without an entry and special tokens never match text.

    Raises `VocabularyError` for text ids that are no special tokens.
    """
    special = {int(encoding.encode_single_token(name)): str(name) for name in encoding.special_tokens_set}
    if eos_ids is None:
        eos_ids = known_end_ids(((name, token) for token, name in special.items()), "encoding")
    unknown = sorted(text_ids - set(special))
    if unknown:
        raise VocabularyError(f"text id {unknown[0]} is no special token", remedy="Leave it out of text_ids.")

    def token_bytes(token: int) -> bytes | None:
        if token in special and token not in text_ids:
            return None
        try:
            return bytes(encoding.decode_single_token_bytes(token))
        except KeyError:  # ids need not be contiguous
            return None

    tokens = [token_bytes(token) for token in range(encoding.n_vocab)]
    lengths = b",".join(b"-" if token is None else str(len(token)).encode() for token in tokens)
    names = special_names(((special[token], token) for token in sorted(special)), text_ids)
    content = [b"tiktoken 2", lengths, b"".join(token or b"" for token in tokens), repr(names).encode()]
    return Reading(content, eos_ids, lambda: TokenTable(tokens, special=names))
