"""Bytes to tokens: as a tokenizer splits text where there is one, and the longest token first where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from guided.vocab.remembered import vocabulary_of
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Encode", "TextEncoder", "byte_fallbacks", "longest_first"]

Encode: TypeAlias = Callable[[bytes], Sequence[int]]

ANCHORS = ("", "\n", ".", "a")
"""Texts put before what is split.  SentencePiece puts a space before every text: behind one of these it does not."""


class TextEncoder:
    """Splits bytes into the tokens of a vocabulary; what it gives are always just these bytes, or their beginning.

    ``given`` is a tokenizer (Hugging Face, ``tokenizers``, tiktoken or SentencePiece), what has a ``tokenizer`` (such
    as a loaded model), or a `Vocabulary`, whose tokenizer may be passed beside it.  Without a tokenizer tokens are the
    longest first, and so is what a tokenizer does not split into these bytes: parts of characters, names of special
    tokens.
    """

    def __init__(self, given: Any, tokenizer: Any = None) -> None:
        self.vocabulary = vocabulary_of(given)
        if tokenizer is None:
            known = isinstance(given, Vocabulary) or getattr(given, "vocabulary", None) is not None
            tokenizer = getattr(given, "tokenizer", None if known else given)
        self._split = None if tokenizer is None else _splitter(tokenizer)
        self._longest_first = longest_first(self.vocabulary)
        self.beginning: tuple[int, ...] = () if tokenizer is None else _beginning(tokenizer, self.vocabulary)
        """The special tokens that the tokenizer puts before every text."""

    def __call__(self, data: bytes) -> list[int]:
        """The tokens of a piece of text; fewer where no token goes on."""
        if self._split is None:
            return self._longest_first(data)
        try:
            text, rest = data.decode(), b""
        except UnicodeDecodeError as error:
            text, rest = data[: error.start].decode(), data[error.start :]
        size = len(data) - len(rest)
        for anchor in ANCHORS if size else ():
            found = self._ending(self._split(anchor + text), data[:size])
            if found is not None:
                return [*found, *self._longest_first(rest)]
        return self._longest_first(data)

    def _ending(self, tokens: Sequence[int], data: bytes) -> list[int] | None:
        """The last tokens, if they are just these bytes."""
        left = data
        for at in range(len(tokens) - 1, -1, -1):
            token = tokens[at]
            piece = self.vocabulary.token_bytes(token) if token < self.vocabulary.size else None
            if not piece or not left.endswith(piece):
                return None
            left = left[: len(left) - len(piece)]
            if not left:
                return list(tokens[at:])
        return None


def _splitter(tokenizer: Any) -> Callable[[str], list[int]]:
    """A tokenizer's own splitting, no special tokens added."""
    if hasattr(tokenizer, "encode_ordinary"):  # tiktoken
        return lambda text: list(tokenizer.encode_ordinary(text))
    if hasattr(tokenizer, "EncodeAsIds"):  # SentencePiece
        return lambda text: list(tokenizer.EncodeAsIds(text))

    def split(text: str) -> list[int]:
        found = tokenizer.encode(text, add_special_tokens=False)
        return list(getattr(found, "ids", found))

    return split


def _beginning(tokenizer: Any, vocabulary: Vocabulary) -> tuple[int, ...]:
    """What a tokenizer makes of no text, without the end-of-text token that some put behind it."""
    if hasattr(tokenizer, "encode_ordinary") or hasattr(tokenizer, "EncodeAsIds"):
        return ()
    found = tokenizer.encode("")
    return tuple(token for token in getattr(found, "ids", found) if token not in vocabulary.eos_ids)


def byte_fallbacks(vocabulary: Vocabulary) -> frozenset[int]:
    """The ids of byte tokens such as ``<0x2C>``: 256 in a row, each a byte, some of which other tokens spell as well.

    A tokenizer uses one only where no other token has the byte.
    """
    tokens = vocabulary.tokens
    every = tuple(bytes([byte]) for byte in range(256))
    for start, data in enumerate(tokens[: max(len(tokens) - 255, 0)]):
        if data == b"\0" and tokens[start : start + 256] == every:
            return frozenset(range(start, start + 256))
    return frozenset()


def longest_first(vocabulary: Vocabulary) -> Callable[[bytes], list[int]]:
    """Split bytes into tokens, each as long as possible; stops where no token goes on.

    >>> longest_first(Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3]))(b"aab")
    [0, 2]
    """
    ids: dict[bytes, int] = {}
    fallbacks = byte_fallbacks(vocabulary)
    for token, data in enumerate(vocabulary.tokens):
        if data and token not in vocabulary.eos_ids and (data not in ids or ids[data] in fallbacks):
            ids[data] = token
    longest = max(map(len, ids), default=0)

    def encode(data: bytes) -> list[int]:
        tokens: list[int] = []
        at = 0
        while at < len(data):
            n = next((n for n in range(min(longest, len(data) - at), 0, -1) if data[at : at + n] in ids), 0)
            if not n:
                break
            tokens.append(ids[data[at : at + n]])
            at += n
        return tokens

    return encode
