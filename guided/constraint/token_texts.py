"""What the checker wants to know of a vocabulary's tokens as pieces of JSON text; made once per vocabulary."""

from __future__ import annotations

import re
import weakref
from enum import Enum
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided.vocab.vocabulary import Vocabulary


class Place(Enum):
    """Where in a JSON text a token begins, as far as the checker knows."""

    IDLE = "idle"
    """Anywhere; nothing is remembered of the text before."""
    BETWEEN = "between"
    """Between names and strings, or in a number."""
    STRING = "string"
    """In a name or string."""


class Reach(Enum):
    """How far a token must go before the checker could refuse it, though what it began in went its own way."""

    NAME_BEGUN = "name begun"
    """To the place of a next name."""
    NAME_ENDED = "name ended"
    """To the end of a next name."""
    ARRAY = "array"
    """To the second item of an array that it opens."""
    ITEM = "item"
    """To the place of a next item."""
    FAR_ITEM = "far item"
    """The same and further: not just over a comma and into a string."""


_BEGUN = rb',\s*(?:"|$)'
_ENDED = rb',\s*"[\s\S]*"'
_TWO_NAMES = rb'"\s*:[\s\S]*'
_CLOSED = rb'"[\s\S]*'
_NEAR = rb',\s*(?:"[\x20\x21\x23-\x5b\x5d-\x7e]*)?\Z'
_ARRAY = re.compile(rb"\[[\s\S]*,")
_PATTERNS = {
    (Reach.NAME_BEGUN, Place.IDLE): re.compile(_TWO_NAMES + _BEGUN),
    (Reach.NAME_BEGUN, Place.BETWEEN): re.compile(_BEGUN),
    (Reach.NAME_BEGUN, Place.STRING): re.compile(_CLOSED + _BEGUN),
    (Reach.NAME_ENDED, Place.IDLE): re.compile(_TWO_NAMES + _ENDED),
    (Reach.NAME_ENDED, Place.BETWEEN): re.compile(_ENDED),
    (Reach.NAME_ENDED, Place.STRING): re.compile(_CLOSED + _ENDED),
    (Reach.ARRAY, Place.IDLE): _ARRAY,
    (Reach.ARRAY, Place.BETWEEN): _ARRAY,
    (Reach.ARRAY, Place.STRING): _ARRAY,
    (Reach.ITEM, Place.IDLE): re.compile(rb","),
    (Reach.ITEM, Place.BETWEEN): re.compile(rb","),
    (Reach.ITEM, Place.STRING): re.compile(_CLOSED + rb","),
    (Reach.FAR_ITEM, Place.BETWEEN): re.compile(rb'\A(?![^"\[\]{},:]*' + _NEAR + rb")[\s\S]*,"),
    (Reach.FAR_ITEM, Place.STRING): re.compile(rb'\A(?![^"\\]*"\s*' + _NEAR + rb')[\s\S]*"[\s\S]*,'),
}
"""Every token that reaches so far matches; others may match too.  A next name or item comes after a comma."""


NO_TOKENS = np.zeros(0, np.int64)


class _Tokens(NamedTuple):
    """Tokens, and where each stands in a row."""

    token: NDArray[np.int64]
    word: NDArray[np.int64]
    bit: NDArray[np.uint32]


class TokenTexts:
    """Facts about the tokens of one vocabulary; ``bool[size]`` arrays are by token."""

    _all: ClassVar[weakref.WeakKeyDictionary[Vocabulary, TokenTexts]] = weakref.WeakKeyDictionary()

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> TokenTexts:
        """The one object of a vocabulary."""
        found = cls._all.get(vocabulary)
        if found is None:
            found = cls._all[vocabulary] = cls(vocabulary)
        return found

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._data = vocabulary.data
        self._offsets = vocabulary.offsets
        self.quotes = self._holding(b'"')
        self.lone_quotes = self._holding(b'"', once=True)
        self.quotes_or_arrays = self._holding(b'"[')
        self.structural = self._holding(b'"\\[]{},:')
        visible = self._holding(bytes(byte for byte in range(256) if byte not in b" \t\n\r"))
        no_digits = self._holding(bytes(byte for byte in range(256) if byte not in b"0123456789"))
        no_letters = self._holding(bytes(byte for byte in range(256) if byte < 0x20 or byte >= 0x7F or byte in b'"\\'))
        trie = vocabulary.trie
        self._offset = trie.token_offset
        # Indexing these gives ints at a third of what indexing an array costs.
        self.byte, self.end = memoryview(trie.byte.data), memoryview(trie.end.data)
        self._quotes_before = _counted(self.quotes[trie.token_ids])
        self._visible_before = _counted(visible[trie.token_ids])
        self._no_digits_before = _counted(no_digits[trie.token_ids])
        self._no_letters_before = _counted(no_letters[trie.token_ids])
        self._with_comma = [
            (token, vocabulary.token_bytes(token) or b"") for token in np.flatnonzero(self._holding(b",")).tolist()
        ]
        self._lists: dict[tuple[frozenset[Reach], Place], _Tokens] = {}

    def reaching(self, reaches: frozenset[Reach], place: Place, row: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The tokens of a row that, beginning in a place, may reach so far; a few more may be among them."""
        key = (reaches, place)
        found = self._lists.get(key)
        if found is None:
            patterns = [_PATTERNS[reach, place] for reach in reaches]
            chosen = [token for token, data in self._with_comma if any(p.search(data) for p in patterns)]
            tokens = np.asarray(chosen, np.int64)
            found = self._lists[key] = _Tokens(tokens, tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32))
        hits = row[found.word] & found.bit
        return found.token[hits != 0] if hits.any() else NO_TOKENS

    def has_quote_below(self, node: int, end: int) -> bool:
        """Does some token below a node of the trie hold a quotation mark?"""
        return bool(self._quotes_before[self._offset[end]] > self._quotes_before[self._offset[node + 1]])

    def is_visible_below(self, node: int, end: int) -> bool:
        """Does some token below a node of the trie hold anything but white space?"""
        return bool(self._visible_before[self._offset[end]] > self._visible_before[self._offset[node + 1]])

    def is_digits_below(self, node: int, end: int) -> bool:
        """Are all tokens below a node of the trie digits to the end?  (They are, wherever one was read before.)"""
        return bool(self._no_digits_before[self._offset[end]] == self._no_digits_before[self._offset[node + 1]])

    def is_letters_below(self, node: int, end: int) -> bool:
        """Are all tokens below a node of the trie ASCII characters that a string holds as they are?"""
        return bool(self._no_letters_before[self._offset[end]] == self._no_letters_before[self._offset[node + 1]])

    def _holding(self, wanted: bytes, *, once: bool = False) -> NDArray[np.bool_]:
        """The tokens that hold one of some bytes; ``once``: and no second one."""
        table = np.zeros(256, np.int64)
        table[list(wanted)] = 1
        counts = _counted(table[self._data])
        number = counts[self._offsets[1:]] - counts[self._offsets[:-1]]
        held: NDArray[np.bool_] = number == 1 if once else number > 0
        return held


def _counted(flags: NDArray[np.generic]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(flags, dtype=np.int64)])
