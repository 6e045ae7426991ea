"""Tokens along lexemes, from nodes of a vocabulary's trie: by words and by runs of bytes, each found once and kept.

Nothing here depends on a grammar, so all constraints over a vocabulary share what is found.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.attributed.spelled import Spelled, SpelledRun
from guided.constraint.attributed.tables import Run
from guided.constraint.per_vocabulary import PerVocabulary
from guided.grammar.attributed.lexis import BLANKS, ascii_lower, is_word_byte
from guided.grammar.attributed.quotes import BRACKET, single
from guided.grammar.attributed.words import Words
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Crossing", "Starts", "Walked", "Walks"]

_KEPT = 4096
"""Results that are remembered: 64 MB of rows at 128,000 tokens."""
_CROSSINGS = 4096
"""Ends of lexemes within tokens that a walk has room for at first."""


_WORDS, _ENDS, _SIGNS = np.zeros((3, 256), np.bool_)
_WORDS[[byte for byte in range(256) if is_word_byte(byte)]] = True
_ENDS[list(b"'\"`]")] = True
_SIGNS[[byte for byte in range(256) if not _WORDS[byte] and byte not in b"'\"`" and byte not in BLANKS]] = True
_NAMING = _WORDS.copy()
_NAMING[list(b"'\"`")] = True
"""Bytes of names, and of what may be one."""


class Starts:
    """Nodes of the trie at which something begins; equal ones are one object (`Walks.starts`)."""

    def __init__(self, nodes: NDArray[np.int64], row: tokenset.Row) -> None:
        self.nodes = nodes
        """``int64[n]``."""
        self.row = row
        """The tokens that these spell."""


class Crossing(NamedTuple):
    """A lexeme that ends within tokens: its bytes from the start on, and the node behind it."""

    text: bytes
    node: int
    before_name: bool
    """May another name follow in a token?"""


class Lexemes(NamedTuple):
    """The most signs and other lexemes that may be over in tokens."""

    counts: NDArray[np.int64]
    """``int64[2, n]``: those of each kind of token."""
    of: NDArray[np.int64]
    """``int64[size]``: the kind of each token."""


@dataclass(frozen=True, eq=False)
class Walked:
    """The tokens that a lexeme in progress may be, and where it ends within others."""

    row: tokenset.Row
    crossings: tuple[Crossing, ...]

    @cached_property
    def by_name(self) -> dict[str, list[Crossing]]:
        """The crossings by what was read, in lower case."""
        found: dict[str, list[Crossing]] = {}
        for crossing in self.crossings:
            found.setdefault(ascii_lower(crossing.text.decode("utf-8", "replace")), []).append(crossing)
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """The keys of ``by_name``."""
        return frozenset(self.by_name)

    @cached_property
    def blank_ended(self) -> frozenset[str]:
        """Those names that end with a blank."""
        return frozenset(name for name in self.by_name if name.endswith(" "))

    @cached_property
    def before_names(self) -> frozenset[str]:
        """Those names behind which a token may hold another name: one that the first may have given a meaning."""
        return frozenset(name for name, some in self.by_name.items() if any(one.before_name for one in some))


class Walks(PerVocabulary):
    """Walks over one vocabulary; what they find is never written to."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        trie = vocabulary.trie
        self._trie = (trie.byte, trie.end, trie.token_offset, trie.token_ids)
        self._end = trie.end
        # Of brackets only those that hold something: behind the first alone it does not matter what it may be.
        is_opening = (trie.byte == BRACKET) & (trie.end > np.arange(1, trie.end.size + 1))
        self._naming = _NAMING[trie.byte] | is_opening
        self._data, self._offsets = vocabulary.data, vocabulary.offsets
        self._words = vocabulary.n_words
        self._children: dict[int, dict[int, int]] = {}
        self._starts: dict[bytes, Starts] = {}
        self._kept: OrderedDict[Hashable, Walked] = OrderedDict()
        self._arrays: OrderedDict[Words, tuple[NDArray[np.uint8], NDArray[np.int64]]] = OrderedDict()
        self._lengths = np.diff(vocabulary.offsets)
        # A node's ancestors are the nodes before it whose ranges have not ended.
        ended = np.cumsum(np.bincount(trie.end, minlength=trie.end.size + 1))[: trie.end.size]
        self._depths = np.arange(trie.end.size) - ended
        self.longest = int(self._lengths.max(initial=0))
        """The bytes of the longest token."""
        self._in_words = _longest_words(vocabulary)
        self._longest_word = int(self._in_words.max(initial=0))
        self._long: dict[int, tokenset.Row] = {}
        self.nothing = Walked(np.zeros(self._words, np.uint32), ())

    # Nodes ---------------------------------------------------------------------------------------------------------

    def children(self, node: int) -> dict[int, int]:
        """The children of a node by the byte on their edge."""
        found = self._children.get(node)
        if found is None:
            found = {}
            bytes_, end = self._trie[0], self._end
            at, stop = node + 1, int(end[node])
            while at < stop:
                found[int(bytes_[at])] = at
                at = int(end[at])
            self._children[node] = found
        return found

    def has_children(self, node: int) -> bool:
        """Do tokens go on behind a node?"""
        return int(self._end[node]) > node + 1

    def starts(self, nodes: Iterable[int]) -> Starts:
        """The one object of some nodes."""
        array = np.array(sorted(set(nodes)), np.int64)
        key = array.tobytes()
        found = self._starts.get(key)
        if found is None:
            found = self._starts[key] = Starts(array, self.tokens_at(array.tolist()))
        return found

    def tokens_at(self, nodes: Iterable[int]) -> tokenset.Row:
        """The tokens that some nodes spell."""
        _, _, offset, ids = self._trie
        found = [ids[offset[node] : offset[node + 1]] for node in nodes]
        return tokenset.of_ids(np.concatenate(found) if found else (), self._words)

    def longer_than(self, most: int) -> tokenset.Row | None:
        """The tokens of more than so many bytes; None without any."""
        if most >= self.longest:
            return None
        found = self._long.get(most)
        if found is None:
            found = self._long[most] = tokenset.of_flags(self._lengths > most)
        return found

    def by_length(self, tokens: NDArray[np.int64]) -> list[int]:
        """Some tokens, those of few bytes first."""
        found: list[int] = tokens[np.argsort(self._lengths[tokens], kind="stable")].tolist()
        return found

    @cached_property
    def lexemes(self) -> Lexemes:
        """How many lexemes may be over in each token."""
        signs, others = self._lexemes
        counts, of = np.unique(np.stack([signs, others]), axis=1, return_inverse=True)
        return Lexemes(counts, of.reshape(-1))

    @cached_property
    def _lexemes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The most signs and other lexemes that are over in each token, before its last byte is."""
        data, offsets = self._data, self._offsets
        size = len(offsets) - 1
        token = np.repeat(np.arange(size), np.diff(offsets))
        inside = np.ones(data.size, np.bool_)
        inside[offsets[1:][np.diff(offsets) > 0] - 1] = False
        is_word = _WORDS[data]
        # A word ends before a byte of another kind, a string or a quoted name with a quote or bracket.
        ends = is_word & inside & ~np.append(is_word[1:], False)
        others = np.bincount(token[ends | (_ENDS[data] & inside)], minlength=size)
        signs = np.bincount(token[_SIGNS[data] & inside], minlength=size)
        return signs, others

    # Walks ---------------------------------------------------------------------------------------------------------

    def words(self, starts: Starts, words: Words, prefix: bytes, folds: bool, onward: frozenset[int]) -> Walked:
        """Tokens that go on with words behind the prefix that was read of them; ``onward`` is what may come behind."""
        key = (starts, words, prefix, folds, onward)
        return self._kept.get(key) or self._keep(key, self._walk_words(starts, words, prefix, folds), onward)

    def run(self, starts: Starts, run: Run, state: int, onward: frozenset[int], quote: int | None) -> Walked:
        """Tokens that go on with a run of bytes, which is in a state; what a ``quote`` ends is given without it."""
        key = (starts, run, state, onward)
        return self._kept.get(key) or self._keep(key, self._walk_run(starts, run, state, quote), onward)

    def spelled(self, starts: Starts, run: SpelledRun, state: Spelled, onward: frozenset[int]) -> Walked:
        """Tokens that go on with a literal that is held to a spelling, of which a state was reached."""
        key = (starts, run, state, onward)
        return self._kept.get(key) or self._keep(key, self._walk_spelled(starts, run, state), onward)

    def word_run(self, starts: Starts, run: Run, state: int, onward: frozenset[int], most: int) -> Walked:
        """Tokens that go on with a word of at most so many bytes."""
        found = self.run(starts, run, state, onward, None)
        if most >= self._longest_word:
            return found
        key = (starts, run, state, onward, most)
        kept = self._kept.get(key)
        if kept is None:
            short = tuple(crossing for crossing in found.crossings if len(crossing.text) <= most)
            kept = self._keep(key, Walked(found.row & ~tokenset.of_flags(self._in_words > most), short), onward)
        return kept

    def _keep(self, key: Hashable, walked: Walked, onward: frozenset[int]) -> Walked:
        if len(self._kept) >= _KEPT:
            for _ in range(_KEPT // 2):
                self._kept.popitem(last=False)
        some = (
            crossing
            for crossing in walked.crossings
            # Anything may come behind the bracket of a function that is called by one.
            if crossing.text.endswith(b"(") or not onward.isdisjoint(self.children(crossing.node))
        )
        found = self._kept[key] = Walked(walked.row, tuple(some))
        return found

    def _walk_words(self, starts: Starts, words: Words, prefix: bytes, folds: bool) -> Walked:
        from guided.kernels.tokens.lexeme_walks import allow_words

        row = np.zeros(self._words, np.uint32)
        low, high = words.range_of(prefix)
        if low == high or not starts.nodes.size:
            return Walked(row, ())
        data, offsets = self._array(words)

        def walk(found: NDArray[np.int64]) -> int:
            count: int = allow_words(
                *self._trie, starts.nodes, data, offsets, low, high, len(prefix), folds, row, found
            )
            return count

        pairs = _with_room(walk, 2)
        size = len(prefix)
        return Walked(row, tuple(self._crossing(words.sorted[word][size:], node) for word, node in pairs.tolist()))

    def _array(self, words: Words) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        found = self._arrays.get(words)
        if found is None:
            sizes = np.fromiter(map(len, words.sorted), np.int64, len(words.sorted))
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
            found = self._arrays[words] = (np.frombuffer(b"".join(words.sorted) or b"\0", np.uint8), offsets)
            if len(self._arrays) > _KEPT:
                self._arrays.popitem(last=False)
        return found

    def _walk_run(self, starts: Starts, run: Run, state: int, quote: int | None) -> Walked:
        row, ended = self._run_ends(starts, run, state)
        return self._crossed(row, ended, quote)

    def _walk_spelled(self, starts: Starts, run: SpelledRun, state: Spelled) -> Walked:
        begun = run.begin(state)
        row, ended = self._run_ends(starts, run.run, begun)
        while run.make(begun, {text for text, _ in ended}):
            row, ended = self._run_ends(starts, run.run, begun)
        return self._crossed(row, ended, run.quote)

    def _run_ends(self, starts: Starts, run: Run, state: int) -> tuple[tokenset.Row, list[tuple[bytes, int]]]:
        """The tokens that go on with a run, and where it ends: what was read of it, and the node behind."""
        from guided.kernels.tokens.lexeme_walks import allow_run

        row = np.zeros(self._words, np.uint32)
        if not starts.nodes.size:
            return row, []

        def walk(found: NDArray[np.int64]) -> int:
            count: int = allow_run(*self._trie, starts.nodes, run.moves, run.kept, state, row, found)
            return count

        return row, [(self.last_bytes(node, size), node) for node, size in _with_room(walk, 2).tolist()]

    def _crossed(self, row: tokenset.Row, ended: list[tuple[bytes, int]], quote: int | None) -> Walked:
        """What a ``quote`` ends is given without it."""
        if quote is None:
            return Walked(row, tuple(self._crossing(text, node) for text, node in ended))
        return Walked(row, tuple(self._crossing(single(text[:-1], quote), node) for text, node in ended))

    def _crossing(self, text: bytes, node: int) -> Crossing:
        return Crossing(text, node, bool(self._naming[node + 1 : self._end[node]].any()))

    def last_bytes(self, node: int, size: int) -> bytes:
        """The last bytes on the way to a node."""
        _, _, offset, ids = self._trie
        # Any token that goes on from there begins so.
        begin = int(self._offsets[ids[offset[node]]]) + int(self._depths[node])
        return self._data[begin - size : begin].tobytes()


def _longest_words(vocabulary: Vocabulary) -> NDArray[np.int64]:
    """``int64[size]``: the most bytes of a word in a row that each token has."""
    data, offsets = vocabulary.data, vocabulary.offsets
    is_word = _WORDS[data]
    position = np.arange(data.size)
    token = np.repeat(np.arange(vocabulary.size), np.diff(offsets))
    # A run begins behind a byte of another kind, or at a token's first byte.
    begins = is_word & ((position == offsets[token]) | ~np.append(False, is_word[:-1]))
    last = np.maximum.accumulate(np.where(begins, position, -1))
    found = np.zeros(vocabulary.size, np.int64)
    np.maximum.at(found, token[is_word], (position - last + 1)[is_word])
    return found


def _with_room(walk: Callable[[NDArray[np.int64]], int], width: int) -> NDArray[np.int64]:
    """What a walk has written, with as much room as it needs."""
    found = np.empty((_CROSSINGS, width), np.int64)
    count = walk(found)
    if count > len(found):
        found = np.empty((count, width), np.int64)
        walk(found)
    return found[: min(count, len(found))]
