"""`substring`: any piece of a collection of texts, byte for byte, in whatever tokens; over an FM-index of bytes.

Its sibling over tokens, for retrieval, is `guided.monitor.ngrams`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint, TokenTree, name_bytes
from guided.errors import GuidedError, UnsupportedError
from guided.monitor.fm_index import FmIndex
from guided.special_bytes import SENTINEL
from guided.vocab.vocabulary import Vocabulary

__all__ = ["SubstringLanguage", "substring"]

_CONTINUATION = range(0x80, 0xC0)

_State = tuple[int, int, int]
"""An interval of rows, and how many bytes the last character still misses; -1: nothing is read yet."""


class SubstringLanguage:
    """The pieces of some texts that are not empty; pieces of str begin and end where characters do."""

    def __init__(self, index: FmIndex, *, text: bool = True) -> None:
        self.index = index
        self.text = text
        low, high = index.whole
        self._start: _State = (low, high, -1)
        self._symbol_of = np.array([index.symbol(byte) for byte in range(256)], np.int64)
        self._skip = np.zeros(256, np.bool_)
        if text:
            self._skip[_CONTINUATION] = True
        self._following: dict[_State, bytes] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_language, (self.index, self.text))

    def __repr__(self) -> str:
        return f"any substring of {self.index.n_documents} documents"

    @property
    def start(self) -> _State:
        """Nothing is read."""
        return self._start

    def step(self, at: _State, byte: int) -> _State | None:
        """One step of the backward search."""
        low, high, missing = at
        if missing < 0 and self._skip[byte]:
            return None
        low, high = self.index.append((low, high), byte)
        if low >= high:
            return None
        if not self.text:
            return low, high, 0
        return low, high, missing - 1 if missing > 0 else _continuations(byte)

    def following(self, at: _State) -> Sequence[int]:
        """The bytes behind the piece, in any of the places where it stands."""
        found = self._following.get(at)
        if found is None:
            low, high, missing = at
            items = self.index.following((low, high))[0]
            if missing < 0:
                items = items[~self._skip[items]]
            if len(self._following) > 1 << 16:
                self._following.clear()
            found = self._following[at] = bytes(items.tolist())
        return found

    def may_end(self, at: _State) -> bool:
        """Something is read, and no character is open."""
        return at[2] == 0

    def rest(self, at: _State) -> bytes:
        """To the end of a character; at the start, the first of the shortest characters there are."""
        out = bytearray()
        while not self.may_end(at):
            out.append(self.following(at)[0])
            after = self.step(at, out[-1])
            assert after is not None
            at = after
        return bytes(out)

    def row(self, at: _State, tree: TokenTree) -> NDArray[np.uint32]:
        """One walk of the trie by a kernel."""
        from guided.kernels.tokens.fm_index import walk_trie

        row = np.zeros(tree.vocabulary.n_words, np.uint32)
        index, trie, (low, high, missing) = self.index, tree.trie, at
        matrix = (index.words, index.before, index.zeros, index.shift)
        skip = self._skip if missing < 0 else np.zeros_like(self._skip)
        arrays = (trie.byte, trie.end, trie.token_offset, trie.token_ids)
        path = np.empty((3, tree.vocabulary.longest + 2), np.int64)
        walk_trie(*matrix, *arrays, self._symbol_of, low, high, skip, path, row)
        return row

    def unfinished(self, at: _State, tree: TokenTree, limit: int) -> Iterable[int] | None:
        """Any allowed token, where a character may have more bytes than there is room for; else none."""
        return None if limit < 3 and self.text and bool((self._symbol_of[0x80:] >= 0).any()) else ()

    def expected(self, at: _State) -> str:
        """The next bytes."""
        following = name_bytes(self.following(at)) if self.following(at) else "nothing more"
        return f"{following} or the end of the text" if self.may_end(at) else following


def _language(index: FmIndex, text: bool) -> SubstringLanguage:
    return SubstringLanguage(index, text=text)


def _continuations(byte: int) -> int:
    return 0 if byte < 0xC0 else 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3


def substring(
    corpus: str | bytes | Iterable[str] | Iterable[bytes], vocabulary: Vocabulary, *, limits: Limits | None = None
) -> LiveConstraint:
    """Any non-empty piece of a text, or of one of several; a piece never spans two of them.

    Pieces of ``str`` begin and end between characters, those of ``bytes`` anywhere.  Memory: at most 3 bytes a byte of
    the corpus.  Building takes some seconds for ten million bytes; the mask of the start is the dearest (a walk of the
    whole vocabulary), others cost what the piece may still become.

    Raises `GuidedError` for texts of both kinds, `UnsatisfiableError` for nothing but empty ones, `VocabularyError` for
    a vocabulary that lacks single bytes.
    """
    documents: list[str | bytes] = [corpus] if isinstance(corpus, (str, bytes)) else list(corpus)
    text = all(isinstance(document, str) for document in documents)
    if not text and not all(isinstance(document, bytes) for document in documents):
        raise GuidedError("a corpus of str and bytes mixed", remedy="Give texts of one kind.")
    data = [_encoded(document, number) for number, document in enumerate(documents)]
    if vocabulary.has_special and not text and any(SENTINEL in document for document in data):
        raise UnsupportedError(
            "a corpus with the byte 0xFF, which stands around special tokens in this vocabulary",
            remedy="Use a corpus of text.",
        )
    return LiveConstraint(SubstringLanguage(FmIndex.build(data), text=text), vocabulary, limits)


def _encoded(document: str | bytes, number: int) -> bytes:
    try:
        return document.encode() if isinstance(document, str) else document
    except UnicodeEncodeError:
        raise GuidedError(
            "a text holds a lone surrogate, which no tokenizer can spell",
            where=f"document {number}",
            remedy="Remove it.",
        ) from None
