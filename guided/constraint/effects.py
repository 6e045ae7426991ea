"""What all tokens of a vocabulary do from one lexer state, computed once and shared by every grammar.

An effect is a row of tokens that stay inside the terminal, and the tries of what is left of those that leave it.
Most are walked, once per vocabulary and language.  Two kinds are told from walks that others share:

* a bounded run of a character class (``maxLength``) is the unbounded run less the tokens that are too long, since a
  token's length in characters does not depend on the bound;
* where a string may go on with any text for ever (most patterns are searched for, so anything may come before and
  after), tokens that stay inside are those of any string, and only where it may close is looked at.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from guided.automata.byte_classes import UTF8_PHASES, class_of_byte, phase_after
from guided.automata.distances import spelled, utf8_blocks
from guided.automata.joint import segments
from guided.automata.runs import Run, run_of, run_with_pattern
from guided.automata.states import StateTable
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.expr import Expr, json_string
from guided.kernels.addresses import SharedAddresses
from guided.kernels.effects import OWING, closings, index_trie, merge, survey
from guided.kernels.layout import (
    CANONICAL,
    CLOSES,
    EXPAND_STATE,
    N_COUNTERS,
    REQUEST,
    REQUEST_A,
    STRING,
    Effects,
    Scratch,
    Tokens,
)
from guided.vocab.vocabulary import Vocabulary

DENSE = 512
"""Tokens from which an effect is kept as a bitmask row rather than a list; a guess at where the costs meet."""

AHEAD = 48
"""States expanded around each one that a survey asks for: 40 us each, and every round walks its range again, 3 ms."""

MANY_CHILDREN = 16
"""Children from which a node gets a table of them (1 KB), rather than their being looked through one by one: a miss of
the cache each.  Llama-3's trie has 623 such nodes, 16,000 fewer have three children or more."""

EXPLORED = 32
"""States expanded before a survey starts, enough for a character class; a survey asks for others as it meets them."""


@dataclass(frozen=True)
class _Survey:
    """What a walk noted: per token kept, and per node where a match ends, the number of whole characters before."""

    kept: NDArray[np.int32]
    count: NDArray[np.int32]
    at: NDArray[np.int32]
    exits: NDArray[np.int32]


class TokenEffects:
    """The effects of one vocabulary over one state table; grows, never forgets what a constraint may refer to."""

    _all: ClassVar[weakref.WeakKeyDictionary[Vocabulary, TokenEffects]] = weakref.WeakKeyDictionary()
    _swap: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> TokenEffects:
        """The effects of a vocabulary, over the current shared state table."""
        with cls._swap:
            found = cls._all.get(vocabulary)
            states = StateTable.shared()
            if found is None or found.states is not states:
                found = cls._all[vocabulary] = TokenEffects(vocabulary, states)
            return found

    def __init__(self, vocabulary: Vocabulary, states: StateTable) -> None:
        trie = vocabulary.trie
        self.lock = threading.RLock()
        self.states = states
        self.version = 0
        """Changes whenever an array is replaced."""
        self.root = trie.n_nodes
        self.n_words = vocabulary.n_words
        self.longest = max(vocabulary.spelling.longest, 1)
        n_nodes, n_ids = trie.n_nodes, trie.token_ids.size
        room = n_nodes // 2 + 1024
        self.tokens = Tokens(
            byte=_grown(trie.byte, n_nodes + room),
            end=_grown(trie.end, n_nodes + room),
            token_offset=_grown(trie.token_offset, n_nodes + room + 1),
            token_ids=_grown(trie.token_ids, n_ids + room),
            fan=np.zeros(n_nodes + room, np.int32),
            children=np.zeros((1024, 256), np.int32),
            below=np.zeros(n_nodes + room, np.int64),
        )
        self.token_addresses, self.effect_addresses = SharedAddresses(), SharedAddresses()
        self._n_fans = 0
        self._nodes_used = n_nodes
        self._n_tokens = n_ids
        self._index(1, n_nodes)
        self.effects = Effects(
            hash_slot=np.full(1024, -1, np.int32),
            **{name: np.zeros(512, np.int32) for name in _PER_EFFECT},
            masks=np.zeros((8, self.n_words), np.uint32),
            listed=np.zeros(4096, np.int32),
            **{name: np.zeros(1024, np.int32) for name in _PER_EXIT},
        )
        self._n_effects = self._n_masks = self._n_listed = self._n_exits = 0
        self._counters = np.zeros(N_COUNTERS, np.int64)
        self._scratch = small_scratch(self.longest)
        self._kept = np.zeros(n_ids + 1, np.int32)
        self._count = np.zeros(n_ids + 1, np.int32)
        self._at = np.zeros((n_ids + 1, 3), np.int32)
        self._exit_rows = np.zeros((4096, 4), np.int32)
        self._unknown = np.zeros(256, np.int32)
        self._cursors = np.zeros((2, 1 << 16), np.int32)
        self._surveys: dict[tuple[int, int, int, int, int], _Survey] = {}
        self._merged: dict[bytes, tuple[int, int]] = {}
        self._derived: dict[tuple[int, int, int, int, int, int], int] = {}
        self._to_end: dict[tuple[int, int, int], int] = {}
        self._totals: dict[int, bool] = {}
        self._any_strings: dict[tuple[int, int], tuple[int, NDArray[np.int32]]] = {}

    @property
    def n_bytes(self) -> int:
        """Memory held, beyond the vocabulary's own."""
        arrays = (*self.tokens, *self.effects)
        return sum(array.nbytes for array in arrays) - 5 * self.root

    def need(self, low: int, high: int, state: int) -> None:
        """Make the effect of a trie range and state known to the kernels."""
        with self.lock:
            key = self.states.keys[state]
            patterned = run_with_pattern(key) if isinstance(key, Expr) else None
            if patterned is not None:
                self._bounded(low, high, state, *patterned)
                return
            run = run_of(key) if isinstance(key, Expr) else None
            if run is not None and (run.low or run.high is not None):
                self._bounded(low, high, state, run)
                return
            if self._is_total(state) and key is not _ANY_STRING:
                self._total(low, high, state)
                return
            found = self._survey(low, high, state, 0)
            if found is None:
                # Its tokens come to owe something: they are walked with the parser.
                self.states.arrays.loops[state] = 0
            else:
                self._store(low, high, state, found.kept, self._exit_ranges(found.exits, None))

    def _is_total(self, start: int) -> bool:
        """Inside a string, may any text come, for ever?  Decided on all that may follow, by the phases of UTF-8."""
        known = self._totals.get(start)
        if known is not None:
            return known
        states = self.states
        total = states.arrays.mode[start] & STRING != 0 and not states.arrays.mode[start] & CANONICAL
        total = total and not states.arrays.decode[start]
        order = [(start, 0)]
        seen = set(order)
        for state, phase in order if total else ():
            row = states.edges(state)
            for low, high, following in UTF8_PHASES[phase]:
                at = low
                for first, last, target in row:
                    if first <= at <= last:
                        if states.arrays.owes[target]:
                            break
                        at = last + 1
                        if (target, following) not in seen:
                            seen.add((target, following))
                            order.append((target, following))
                        if at > high:
                            break
                if at <= high:
                    total = False
                    break
            if not total or len(order) > TOTAL_STATES:
                total = False
                break
        if total:
            self._totals.update((state, True) for state, phase in order if phase == 0)
        self._totals[start] = total
        return total

    def _total(self, low: int, high: int, state: int) -> None:
        """The effect of a string's state after which any text may come."""
        inside, exits = self._any_string(low, high)
        closes = np.zeros(exits.shape[0], np.uint8)
        self._explore(state, EXPLORED)
        while closings(
            self.states.arrays, self._counters, self._scratch, self.tokens, low, high, state, exits[:, 0].copy(),
            closes, self._unknown,
        ) < 0:  # fmt: skip
            for unknown in self._unknown[: int(self._counters[REQUEST_A])].tolist():
                self._explore(unknown, AHEAD)
        kept = exits[closes != 0]
        offset = self.tokens.token_offset
        ended = [self.tokens.token_ids[offset[node] : offset[node + 1]] for node in kept[:, 0].tolist()]
        index = self._store(
            low, high, state, np.concatenate([_NONE, *ended]), self._exit_ranges(kept, None), mask=inside
        )
        assert index >= 0

    def _any_string(self, low: int, high: int) -> tuple[int, NDArray[np.int32]]:
        """Of any string: the row of tokens that stay inside, and the nodes where it closes."""
        found = self._any_strings.get((low, high))
        if found is None:
            survey_ = self._survey(low, high, self.states.add(_ANY_STRING), 0)
            assert survey_ is not None
            found = self._mask(survey_.kept[survey_.count >= 0]), survey_.exits
            self._any_strings[low, high] = found
        return found

    def _bounded(self, low: int, high: int, state: int, run: Run, pattern: Expr | None = None) -> None:
        most = -1 if run.high is None or run.high > self.longest else run.high
        least = min(run.low, self.longest + 1)
        unbounded = self.states.add(run.unbounded)
        also = 0 if pattern is None else self.states.add(pattern)
        # With a pattern a far bound matters too: what is left must be enough for the pattern's end.
        bound = run.high if also and run.high is not None else most
        key = (low, high, unbounded, also, least, bound)
        same = self._derived.get(key)
        if same is not None:
            self._alias(low, high, state, same)
            return
        found = self._survey(low, high, unbounded, self.states.add(run.home), also)
        assert found is not None
        begun = 0 if run.prefix is None else 1
        inside = found.count >= 0
        needed = np.maximum(found.count - begun, 0)
        if also and bound >= 0:
            needed = needed + self._still_needed(found, inside, self.states.add(run.home))
        whole = -1 - found.count - begun
        fits = inside if bound < 0 else inside & (needed <= bound)
        ended = ~inside & (whole >= least)
        if most >= 0:
            ended &= whole <= most
        length = found.exits[:, 3] - begun
        keep = length >= least
        if most >= 0:
            keep &= length <= most
        by_length = [
            self._exit_ranges(found.exits[keep & (length == n)], None) for n in np.unique(length[keep]).tolist()
        ]
        self._derived[key] = self._store(
            low, high, state, found.kept[fits | ended], [item for group in by_length for item in group]
        )

    def _still_needed(self, found: _Survey, inside: NDArray[np.bool_], home: int) -> NDArray[np.int32]:
        """For tokens that stay inside, the fewest whole characters after which the pattern can end."""
        # Neighbours in the trie mostly end in the same places, so few are left to sort.
        first = np.concatenate([[True], (found.at[1:] != found.at[:-1]).any(axis=1)])
        runs = np.flatnonzero(first)
        live = np.logical_or.reduceat(inside, runs) if runs.size else inside
        one, other, decode = found.at[runs].astype(np.int64).T
        # State ids have below 24 bits (`MAX_EDGES`), and few places are inside an escape: one sort of plain numbers.
        escape = np.searchsorted(np.unique(decode), decode)
        _, example, number = np.unique(one << 40 | other << 16 | escape, return_index=True, return_inverse=True)
        places = found.at[runs[example]]
        wanted = np.zeros(places.shape[0], np.bool_)
        wanted[number[live]] = True
        characters = np.zeros(places.shape[0], np.int32)
        for i in np.flatnonzero(wanted).tolist():
            pair = places[i].tolist()
            characters[i] = self._characters_to_end((pair[0], pair[1]), pair[2], home)
        return np.repeat(characters[number], np.diff(np.append(runs, found.count.size)))

    def _characters_to_end(self, start: tuple[int, int], decode: int, home: int) -> int:
        """Breadth first, a level per character, over pairs of a run's state and a pattern's."""
        key = (*start, decode)
        known = self._to_end.get(key)
        if known is not None:
            return known
        # A character already begun was counted with the token.
        length = 0 if start[0] == home else -1
        level = [start]
        if decode:
            level = [
                pair
                for _, low, high in spelled(decode)
                for first, last in utf8_blocks(low, high)
                for pair in self._after_character(start, first, last)
            ]
        seen = set(level)
        while level:
            following: list[tuple[int, int]] = []
            for pair in level:
                mode = self.states.arrays.mode
                if mode[pair[0]] & mode[pair[1]] & CLOSES:
                    self._to_end[key] = max(length, 0)
                    return max(length, 0)
                for _, _, *after in segments(self.states.edges(pair[0]), self.states.edges(pair[1])):
                    target = (after[0], after[1])
                    if all(target) and target not in seen:
                        seen.add(target)
                        (following if target[0] == home else level).append(target)
            level = following
            length += 1
        raise AssertionError("a live state of a pattern has a way to its end")

    def _after_character(self, pair: tuple[int, int], first: bytes, last: bytes) -> Iterator[tuple[int, int]]:
        """The pairs after one character between two of equal length."""
        if not first:
            yield pair
            return
        for low, high, one, other in segments(self.states.edges(pair[0]), self.states.edges(pair[1])):
            rest = len(first) - 1
            # Bytes between the bounds lead the same way: one of them is enough.
            inner = max(low, first[0] + 1)
            for byte in {first[0], last[0], inner}:
                if one and other and low <= byte <= high and first[0] <= byte <= last[0]:
                    yield from self._after_character(
                        (one, other),
                        first[1:] if byte == first[0] else b"\x80" * rest,
                        last[1:] if byte == last[0] else b"\xbf" * rest,
                    )

    def _survey(self, low: int, high: int, state: int, home: int, also: int = 0) -> _Survey | None:
        key = (low, high, state, home, also)
        found = self._surveys.get(key) if home else None
        if found is not None:
            return found
        self._explore(state, EXPLORED)
        while True:
            code = survey(
                self.states.arrays, self._counters, self._scratch, self.tokens, low, high, state, also,
                home or -1, self._kept, self._count, self._at, self._exit_rows,
                self._unknown,
            )  # fmt: skip
            if code >= 0:
                break
            if code == OWING:
                return None
            if self._counters[REQUEST] == EXPAND_STATE:
                for unknown in self._unknown[: int(self._counters[REQUEST_A])].tolist():
                    self._explore(unknown, AHEAD)
            else:
                self._exit_rows = np.zeros((4 * self._exit_rows.shape[0], 4), np.int32)
        n_kept, n_exits = int(code) >> 32, int(code) & 0xFFFFFFFF
        found = _Survey(
            self._kept[:n_kept], self._count[:n_kept], self._at[:n_kept] if also else _NOWHERE,
            self._exit_rows[:n_exits].copy(),
        )  # fmt: skip
        if home:
            found = self._surveys[key] = _Survey(*(np.array(part) for part in astuple(found)))
        return found

    def _explore(self, state: int, limit: int) -> None:
        """Expand a state and, where finding edges is the work, what is near."""
        self.states.explore(state, limit if isinstance(self.states.keys[state], Expr) else 1)

    def _exit_ranges(self, exits: NDArray[np.int32], tag: int | None) -> list[tuple[int, int, int, int]]:
        """One trie range per terminal and obligation, merged where matches end at several nodes."""
        # Where a text may end anywhere there are as many exits as nodes, so none is looked at by itself.
        exits = exits[self.tokens.end[exits[:, 0]] > exits[:, 0] + 1]
        ranges: list[tuple[int, int, int, int]] = []
        while exits.size:
            ends_as, pending = int(exits[0, 1]), int(exits[0, 2])
            same = (exits[:, 1] == ends_as) & (exits[:, 2] == pending)
            ranges.append((*self._merge(np.ascontiguousarray(exits[same, 0])), ends_as, pending))
            exits = exits[~same]
        return ranges

    def _merge(self, starts: NDArray[np.int32]) -> tuple[int, int]:
        if starts.size == 1:
            return int(starts[0]) + 1, int(self.tokens.end[starts[0]])
        key = starts.tobytes()
        found = self._merged.get(key)
        if found is not None:
            return found
        while True:
            if self._cursors.shape[1] < 4 * starts.size:
                self._cursors = np.zeros((2, 8 * starts.size), np.int32)
            depth = self.longest + 2
            stop = merge(
                self.tokens, self._counters, starts, starts.size, self._nodes_used, self._n_tokens,
                self._cursors[0], self._cursors[1], np.zeros(depth, np.int32), np.zeros(depth, np.int32),
            )  # fmt: skip
            if stop >= 0:
                break
            self._cursors = np.zeros((2, 2 * self._cursors.shape[1]), np.int32)
            tokens = self.tokens
            self.tokens = Tokens(
                _grown(tokens.byte, 2 * tokens.byte.size),
                _grown(tokens.end, 2 * tokens.end.size),
                _grown(tokens.token_offset, 2 * tokens.token_offset.size),
                _grown(tokens.token_ids, 2 * tokens.token_ids.size),
                _grown(tokens.fan, 2 * tokens.fan.size),
                tokens.children,
                _grown(tokens.below, 2 * tokens.below.size),
            )
            self.version += 1
        found = self._merged[key] = (self._nodes_used, int(stop))
        self._index(self._nodes_used, int(stop))
        self._nodes_used = int(stop)
        self._n_tokens = int(self.tokens.token_offset[stop])
        return found

    def _index(self, low: int, high: int) -> None:
        """Note what is below the nodes of a new trie, and give those with many children tables of them."""
        readable = np.zeros(high - low, np.uint8)
        while (
            used := int(
                index_trie(self.tokens, low, high, self._n_fans, MANY_CHILDREN, _CLASS_OF_BYTE, _PHASE_AFTER, readable)
            )
        ) < 0:
            children = np.zeros((2 * len(self.tokens.children), 256), np.int32)
            children[: self._n_fans] = self.tokens.children[: self._n_fans]
            self.tokens = self.tokens._replace(children=children)
            self.version += 1
        self._n_fans = used

    def _find(self, low: int, high: int, state: int) -> int:
        from guided.kernels.masks import find_effect

        return int(find_effect(self.effects, low, high, state))

    def _new(self, low: int, high: int, state: int) -> int:
        index = self._n_effects
        effects = self.effects
        if 2 * index + 2 > effects.hash_slot.size or index == effects.key_low.size:
            fields: dict[str, Any] = {
                name: _grown_ints(effects, name, 2 * effects.key_low.size) for name in _PER_EFFECT
            }
            effects = self.effects = effects._replace(
                hash_slot=np.full(2 * effects.hash_slot.size, -1, np.int32), **fields
            )
            self.version += 1
            for old in range(index):
                self._enter(old)
        effects.key_low[index], effects.key_high[index], effects.key_state[index] = low, high, state
        self._n_effects = index + 1
        return index

    def _enter(self, index: int) -> None:
        """Put an effect into the hash, the last step of making it visible."""
        effects = self.effects
        mixed = (int(effects.key_low[index]) * 0x9E3779B97F4A7C15 & _MASK64) ^ (
            int(effects.key_state[index]) * 0xC2B2AE3D27D4EB4F & _MASK64
        )
        size = effects.hash_slot.size
        slot = (mixed ^ (mixed >> 32)) % size
        while effects.hash_slot[slot] >= 0:
            slot = (slot + 1) % size
        effects.hash_slot[slot] = index

    def _store(
        self,
        low: int,
        high: int,
        state: int,
        kept: NDArray[np.int32],
        exits: list[tuple[int, int, int, int]],
        mask: int = -1,
    ) -> int:
        index = self._new(low, high, state)
        effects = self.effects
        effects.mask[index] = mask
        if mask < 0 and kept.size > DENSE:
            effects.mask[index] = self._mask(kept)
        else:
            first = self._list(kept)
            self.effects.list_first[index], self.effects.list_count[index] = first, kept.size
        if self._n_exits + len(exits) > self.effects.exit_low.size:
            room = 2 * self.effects.exit_low.size + len(exits)
            self.effects = self.effects._replace(**{n: _grown_ints(self.effects, n, room) for n in _PER_EXIT})
            self.version += 1
        effects = self.effects
        effects.exit_first[index], effects.exit_count[index] = self._n_exits, len(exits)
        for i, (exit_low, exit_high, tag, pending) in enumerate(exits, self._n_exits):
            effects.exit_low[i], effects.exit_high[i] = exit_low, exit_high
            effects.exit_tag[i], effects.exit_pending[i] = tag, pending
        self._n_exits += len(exits)
        self._enter(index)
        return index

    def _alias(self, low: int, high: int, state: int, other: int) -> int:
        index = self._new(low, high, state)
        for name in _PER_EFFECT:
            if not name.startswith("key"):
                array = getattr(self.effects, name)
                array[index] = array[other]
        self._enter(index)
        return index

    def _mask(self, kept: NDArray[np.int32]) -> int:
        if self._n_masks == self.effects.masks.shape[0]:
            masks = np.zeros((2 * self._n_masks, self.n_words), np.uint32)
            masks[: self._n_masks] = self.effects.masks
            self.effects = self.effects._replace(masks=masks)
            self.version += 1
        self.effects.masks[self._n_masks] = pack_bits(kept, self.n_words)
        self._n_masks += 1
        return self._n_masks - 1

    def _list(self, kept: NDArray[np.int32]) -> int:
        first = self._n_listed
        if first + kept.size > self.effects.listed.size:
            self.effects = self.effects._replace(
                listed=_grown(self.effects.listed, 2 * self.effects.listed.size + kept.size)
            )
            self.version += 1
        self.effects.listed[first : first + kept.size] = kept
        self._n_listed += int(kept.size)
        return first


TOTAL_STATES = 400
"""Pairs of state and phase looked at to see that a string may go on with any text; most patterns have below 100."""

_CLASS_OF_BYTE = class_of_byte()
_PHASE_AFTER = phase_after()
_ANY_STRING = json_string(Utf8().text)
_NONE = np.zeros(0, np.int32)
_NOWHERE = np.zeros((0, 3), np.int32)
_MASK64 = (1 << 64) - 1
_PER_EFFECT = (
    "key_low", "key_high", "key_state", "mask", "list_first", "list_count",
    "exit_first", "exit_count",
)  # fmt: skip
_PER_EXIT = ("exit_low", "exit_high", "exit_tag", "exit_pending")


def pack_bits(kept: NDArray[np.int32], n_words: int) -> NDArray[np.uint32]:
    """A bitmask row, bit ``t & 31`` of word ``t >> 5`` for each token ``t``."""
    flags = np.zeros(32 * n_words, np.bool_)
    flags[kept] = True
    return np.packbits(flags, bitorder="little").view(np.uint32)


def small_scratch(longest: int, size: int = 1 << 10) -> Scratch:
    """Working memory for walks and steps; ``longest`` is the longest token in bytes."""
    depth = longest + 8
    longs = dict.fromkeys(("longs", "more", "calls", "emits", "thread_a", "thread_c"), size)
    longs.update(tasks=3 * size, visited=3 * size, walk_state=depth)
    ints = dict.fromkeys(("call_rules", "emit_states", "emit_labels", "thread_b", "thread_d"), size)
    ints.update(dict.fromkeys(("walk_obligation", "walk_end", "walk_other", "walk_fan", "walk_way"), depth))
    # From two blocks of memory: constraints are made often, and each array by itself costs a microsecond.
    arrays: dict[str, Any] = {}
    for sizes, kind in ((longs, np.int64), (ints, np.int32)):
        block, at = np.zeros(sum(sizes.values()), kind), 0
        for name, length in sizes.items():
            arrays[name] = block[at : at + length]
            at += length
    return Scratch(**arrays)


_Scalar = TypeVar("_Scalar", bound=np.generic)


def _grown_ints(effects: Effects, name: str, size: int) -> Any:
    return _grown(getattr(effects, name), size)


def _grown(array: NDArray[_Scalar], size: int) -> NDArray[_Scalar]:
    bigger = np.zeros(max(size, array.size), array.dtype)
    bigger[: array.size] = array
    return bigger
