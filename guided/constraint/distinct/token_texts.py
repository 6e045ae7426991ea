"""What the checker wants to know of a vocabulary's tokens as pieces of JSON text; made once per vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import COLON, QUOTE, Mode, Reader
from guided.constraint.per_vocabulary import PerVocabulary
from guided.kernels.data.addresses import address
from guided.kernels.masking.tracks import LONE, MORE, OPENS, text_key
from guided.vocab.vocabulary import Vocabulary


class Place(IntEnum):
    """Where in a JSON text a token begins, as far as the checker knows."""

    IDLE = 0
    """Anywhere; nothing is remembered of the text before."""
    BETWEEN = 1
    """Between names and strings, or in a number."""
    STRING = 2
    """In a name or string, and not in an escape."""


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
    NEXT_ITEM = "next item"
    """From inside a container that is an item: behind its end, to the place of another."""


_BEGUN = rb',\s*(?:"|$)'
_ENDED = rb',\s*"[\s\S]*"'
# Where nothing is remembered no undeclared name has begun: the first of two begins and ends in the token.
_TWO_NAMES = rb'"[\s\S]*"\s*:[\s\S]*'
_CLOSED = rb'"[\s\S]*'
_SPANNING = re.compile(rb'"\s*:[\s\S]*,\s*"[\s\S]*"')
_BEGINS = re.compile(rb',\s*"([^"]*)\Z')
_NEXT = rb"[\]}][\s\S]*,"
# Two items may be equal only behind an array's bracket with which the first of them begins.
_ARRAY = re.compile(rb"""\[\s*["\-0-9tfn\[{][\s\S]*,""")
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
    (Reach.NEXT_ITEM, Place.BETWEEN): re.compile(_NEXT),
    (Reach.NEXT_ITEM, Place.STRING): re.compile(_CLOSED + _NEXT),
}
"""Every token that reaches so far matches; others may match too.  A next name or item comes after a comma."""


NO_TOKENS = np.zeros(0, np.int64)


_Begun: TypeAlias = dict[bytes, list[tuple[int, bytes]]]
_ESCAPED = b'"\\'
_HALF = re.compile(rb"\\ud[c-f]")
_VALID = re.compile(rb'(?:[^\\]|\\(?:["\\/bfnrt]|u(?:[0-9a-fA-F]{4}|[0-9a-fA-F]{0,3}\Z)))*\\?')
"""Text in which every backslash begins an escape of JSON; nothing else repeats a string."""


def is_text(data: bytes) -> bool:
    """Is it UTF-8, no half of a character?"""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class Closing(NamedTuple):
    """The tokens that spell a string, or what is left of one, in one way, and end it."""

    spelling: bytes
    """What they begin with, up to the quotation mark that ends the string."""
    tokens: NDArray[np.int64]

    def within(self, row: NDArray[np.uint32]) -> list[int]:
        """Those of its tokens that are in a row."""
        found: list[int] = self.tokens[tokenset.are_in(row, self.tokens)].tolist()
        return found


_Closings: TypeAlias = Mapping[bytes, tuple[Closing, ...]]


def _closings(found: dict[bytes, dict[bytes, list[int]]]) -> _Closings:
    return {
        text: tuple(Closing(spelling, np.asarray(some, np.int64)) for spelling, some in ways.items())
        for text, ways in found.items()
    }


def _halves(begun: _Begun) -> _Begun:
    halves = {text: [pair for pair in some if _HALF.match(pair[1])] for text, some in begun.items()}
    return {text: some for text, some in halves.items() if some}


class _Tokens(NamedTuple):
    """Tokens, and where each stands in a row."""

    token: NDArray[np.int64]
    word: NDArray[np.int64]
    bit: NDArray[np.uint32]


class TokenTexts(PerVocabulary):
    """Facts about the tokens of one vocabulary; ``bytes`` are by token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._data = vocabulary.spelling.data
        self._offsets = vocabulary.spelling.offsets
        self._bytes = self._data.tobytes()
        self._places = memoryview(self._offsets.data)
        quotes, brackets = self._number_of(b'"'), self._number_of(b"[")
        self.events = np.minimum(quotes, 2).astype(np.uint8).tobytes()
        """0 for a token without quotation marks, 1 for one, 2 for more."""
        self.events_or_arrays = np.where(brackets > 0, 2, np.minimum(quotes, 2)).astype(np.uint8).tobytes()
        """The same, and 2 for a token with an opening bracket."""
        self.structural = (self._number_of(b'"\\[]{},:') > 0).tobytes()
        """1 for a token that is more than a part of what is being read."""
        self.lone = ((quotes == 1) & (self._number_of(b"\\") == 0)).tobytes()
        """1 for a token with one quotation mark and no backslash."""
        self._quotes = np.minimum(quotes, MORE).astype(np.uint8)
        self._quotes[np.frombuffer(self.lone, np.bool_)] = LONE
        self.quotes_at = address(self._quotes)
        """Where kernels find what there is to say of a token's quotation marks."""
        self._openings = np.where(brackets > 0, OPENS, self._quotes).astype(np.uint8)
        self.openings_at = address(self._openings)
        """The same where items of arrays are compared."""
        visible = self._number_of(bytes(byte for byte in range(256) if byte not in b" \t\n\r")) > 0
        no_digits = self._number_of(bytes(byte for byte in range(256) if byte not in b"0123456789")) > 0
        in_escape = bytes(byte for byte in range(256) if byte < 0x20 or byte >= 0x7F or byte in b'"\\')
        no_letters = self._number_of(in_escape) > 0
        trie = vocabulary.trie
        # Indexing these gives ints at a third of what indexing an array costs.
        self.byte, self.end = memoryview(trie.byte.data), memoryview(trie.end.data)
        self._quotes_before = memoryview(_counted(quotes[trie.token_ids] > 0).data)
        self._visible_before = memoryview(_counted(visible[trie.token_ids]).data)
        self._no_digits_before = memoryview(_counted(no_digits[trie.token_ids]).data)
        self._no_letters_before = memoryview(_counted(no_letters[trie.token_ids]).data)
        self._with_comma = [(token, self.spelled(token)) for token in np.flatnonzero(self._number_of(b",")).tolist()]
        self.with_commas = [token for token, _ in self._with_comma]
        # All at once, since one takes 3 ms, which would be in the middle of a text.
        self._reaching = {
            key: np.asarray([token for token, data in self._with_comma if pattern.search(data)], np.int64)
            for key, pattern in _PATTERNS.items()
        }
        self._lists: dict[tuple[frozenset[Reach], Place], _Tokens] = {}
        self.closing, self.leading, self.wholes = self._strings(np.flatnonzero(quotes).tolist())
        """By what is left of a name, the tokens that spell it and end it; by a string, the tokens that hold it as the
        first that they hold, and those that hold it anywhere."""
        ending = {text: [token for way in ways for token in way.tokens.tolist()] for text, ways in self.closing.items()}
        self._held = _hash_map(ending, self.wholes)
        self.held_at = address(self._held), self._held.size
        """Where kernels find which tokens end a text, and which hold it as a whole."""
        self.opening, self.escaping = self._begun(np.flatnonzero(quotes + self._number_of(b"\\")).tolist())
        """By the beginning of a string, the tokens that are only that and what is before it, and by what comes next in
        a string the tokens that spell it with escapes; each with the escape in which it ends."""
        self.escaping_halves = _halves(self.escaping)
        """Those that end in the escape of a low surrogate, which without a high one is no character."""
        self.longest_opening = max(map(len, self.opening), default=0)
        self.longest_escaping = max(map(len, self.escaping), default=0)
        self._ids, self.first = memoryview(trie.token_ids.data), memoryview(trie.token_offset.data)
        self._children: dict[int, dict[int, int]] = {}
        self.spanning = tuple(token for token, data in self._with_comma if _SPANNING.search(data))
        """The tokens that may end a name and, behind its value, another one."""
        self.following: dict[bytes, list[int]] = {}
        """The tokens that begin a name behind a comma, by what they say of it."""
        for token, data in self._with_comma:
            if begins := _BEGINS.search(data):
                self.following.setdefault(begins[1], []).append(token)
        self.short = {self.spelled(token): token for token in np.flatnonzero(np.diff(self._offsets) == 1).tolist()}
        """The tokens of one byte, and those that begin with a colon, by their bytes."""
        self.of_byte = tuple([self.short.get(bytes((byte,))) for byte in range(256)])
        """The token of each byte, None where there is none."""
        colons = self._data[self._offsets[:-1].clip(max=max(self._data.size - 1, 0))] == COLON
        self.short.update((self.spelled(token), token) for token in np.flatnonzero(colons).tolist())

    def spelled(self, token: int) -> bytes:
        """The bytes of a token, as automata read it."""
        return self._bytes[self._places[token] : self._places[token + 1]]

    def _strings(self, tokens: list[int]) -> tuple[_Closings, _Closings, Mapping[bytes, tuple[int, ...]]]:
        """What the tokens with quotation marks close, the strings that they begin with, and those between any two."""
        reader = Reader()
        inside = reader.text(None, Mode.NAME)
        assert inside is not None
        closing: dict[bytes, dict[bytes, list[int]]] = {}
        leading: dict[bytes, dict[bytes, list[int]]] = {}
        wholes: dict[bytes, list[int]] = {}
        for token in tokens:
            data = self.spelled(token)
            text, at = reader.spelled(inside, data, 0)
            if at < len(data):
                closing.setdefault(text.text, {}).setdefault(data[: at + 1], []).append(token)
            start = data.find(QUOTE) + 1
            while start:
                text, at = reader.spelled(inside, data, start)
                if at < len(data):
                    wholes.setdefault(text.text, []).append(token)
                    if data[: start - 1].isspace() or start == 1:
                        leading.setdefault(text.text, {}).setdefault(data[: at + 1], []).append(token)
                start = data.find(QUOTE, start) + 1
        return (
            _closings(closing),
            _closings(leading),
            {text: tuple(sorted(set(some))) for text, some in wholes.items()},
        )

    def _begun(self, tokens: list[int]) -> tuple[_Begun, _Begun]:
        """What the tokens begin of a string, and what they spell within one without ending it."""
        reader = Reader()
        inside = reader.text(None, Mode.NAME)
        assert inside is not None
        found: tuple[_Begun, _Begun] = ({}, {})
        for token in tokens:
            data = self.spelled(token)
            if not _VALID.fullmatch(data):
                continue
            quote = len(data) - len(data.lstrip(b" \t\n\r"))
            for start, begun in zip((quote + 1, 0), found, strict=True):
                if start and data[quote : quote + 1] != b'"':
                    continue
                text, at = reader.spelled(inside, data, start)
                if at == len(data):
                    begun.setdefault(text.text, []).append((token, text.pending))
        return found

    def beginning(self, text: bytes, beyond: int = 0) -> list[int]:
        """The tokens with which a text begins that a string holds without escapes: as far as it does.

        Of these only such as have more than some bytes.
        """
        found: list[int] = []
        node, first = 0, self.first
        for at, byte in enumerate(text):
            node = self.children(node).get(byte, 0)
            if not node or byte in _ESCAPED:
                break
            if at >= beyond:
                found += self._ids[first[node] : first[node + 1]]
        return found

    def children(self, node: int) -> dict[int, int]:
        """The children of a node of the trie, by byte."""
        found = self._children.get(node)
        if found is None:
            found = self._children[node] = {}
            child, stop = node + 1, self.end[node]
            while child < stop:
                found[self.byte[child]] = child
                child = self.end[child]
        return found

    def reaching(self, reaches: frozenset[Reach], place: Place, row: NDArray[np.uint32]) -> list[int]:
        """The tokens of a row that, beginning in a place, may reach so far; a few more may be among them."""
        found = self._listed(reaches, place)
        if not found.token.size:
            return []
        hits = row[found.word] & found.bit
        reached: list[int] = found.token[hits != 0].tolist() if hits.any() else []
        return reached

    def that_reach(self, reaches: frozenset[Reach], place: Place) -> NDArray[np.int64]:
        """All tokens that, beginning in a place, may reach so far; a few more may be among them."""
        return self._listed(reaches, place).token

    def _listed(self, reaches: frozenset[Reach], place: Place) -> _Tokens:
        key = (reaches, place)
        found = self._lists.get(key)
        if found is None:
            tokens = tokenset.union(*(self._reaching[reach, place] for reach in reaches))
            found = self._lists[key] = _Tokens(tokens, *tokenset.places(tokens))
        return found

    def has_quote_below(self, node: int, end: int) -> bool:
        """Does some token below a node of the trie hold a quotation mark?"""
        return self._quotes_before[self.first[end]] > self._quotes_before[self.first[node + 1]]

    def is_visible_below(self, node: int, end: int) -> bool:
        """Does some token below a node of the trie hold anything but white space?"""
        return self._visible_before[self.first[end]] > self._visible_before[self.first[node + 1]]

    def is_digits_below(self, node: int, end: int) -> bool:
        """Are all tokens below a node of the trie digits to the end?  (They are, wherever one was read before.)"""
        return self._no_digits_before[self.first[end]] == self._no_digits_before[self.first[node + 1]]

    def is_letters_below(self, node: int, end: int) -> bool:
        """Are all tokens below a node of the trie ASCII characters that a string holds as they are?"""
        return self._no_letters_before[self.first[end]] == self._no_letters_before[self.first[node + 1]]

    def _number_of(self, wanted: bytes) -> NDArray[np.int64]:
        """How many of some bytes each token holds."""
        table = np.zeros(256, np.int64)
        table[list(wanted)] = 1
        counts = _counted(table[self._data])
        return counts[self._offsets[1:]] - counts[self._offsets[:-1]]


def _hash_map(ending: Mapping[bytes, Sequence[int]], wholes: Mapping[bytes, Sequence[int]]) -> NDArray[np.int64]:
    """The tokens of texts as `guided.kernels.masking.tracks` looks them up by `text_key`.

    The number of slots; for each its key, 0 in an empty one, and ``first << 32 | n`` of its tokens; the tokens.
    """
    keyed: dict[int, list[int]] = {}
    for kind, tokens_of in enumerate((ending, wholes)):
        for text, tokens in tokens_of.items():
            keyed.setdefault(text_key(text, kind), []).extend(tokens)
    size = 1 << (2 * len(keyed)).bit_length()
    found = [size, *[0] * (2 * size)]
    for key, tokens in keyed.items():
        slot = key >> 20 & size - 1
        while found[1 + 2 * slot]:
            slot = slot + 1 & size - 1
        found[1 + 2 * slot : 3 + 2 * slot] = key, len(found) << 32 | len(tokens)
        found += tokens
    return np.array(found, np.uint64).view(np.int64)


def _counted(flags: NDArray[np.generic]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(flags, dtype=np.int64)])
