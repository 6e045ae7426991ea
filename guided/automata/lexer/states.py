"""The lexer states of a process as flat arrays, grown as kernels visit them.

A state stands for a language still to be read: a set of parts (`guided.automata.lexer.parts`), or an `OrderedState` of
a lexer.  A part is an interned `Expr` and a set of one is its state, so a JSON string's inside is one state for every
schema, and what a vocabulary's tokens do from it is computed once.  `StateTable.shared()` is the process-wide table;
when it has grown past `MAX_EDGES`, later constraints start a new one and the old one lives as long as the constraints
that use it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.joint import Both, Under, parts_of
from guided.automata.lexer.lexer_state import LexerState
from guided.automata.lexer.other_texts import OtherTexts
from guided.automata.lexer.parts import MOST_QUEUED, PartTable
from guided.automata.lexer.runs import may_owe, run_less_words
from guided.automata.lexer.traits import begins, is_read_whole, is_word_list, loops, reading, terminal
from guided.grammar.ranged import Ranges
from guided.grammar.regular.any_text import text_excluding
from guided.grammar.regular.derivative import edges as expr_edges
from guided.grammar.regular.expr import (
    EPSILON,
    Expr,
    Kind,
    concat,
    is_listed,
    json_string,
    listed_words,
    literal,
    made_json_string,
)
from guided.kernels.data.addresses import REPLACED, SharedAddresses, address, address_rows
from guided.kernels.data.layout import CANONICAL, CLOSES, EXAMINED, MATCHED, Automaton
from guided.kernels.data.records import grown_records, records
from guided.kernels.data.views import N_ROWS
from guided.kernels.jit import direct
from guided.kernels.lexing.byte_classes import (
    LINES,
    LINES_PHASES,
    TEXT,
    TEXT_PHASES,
    flat_phases,
)
from guided.kernels.lexing.determinise import (
    EDGES,
    MISSING,
    NEEDED,
    POOL,
    ROOM,
    SETS,
    STATES,
    WIDE,
    describe,
    determinise,
    leads_back,
    publish,
    rehash,
    write_words,
)
from guided.kernels.lexing.part_pairs import NO_ROOM, WANTED

LONG = 256
"""Bytes of a literal that are written at once; nearly all names and constants have fewer, and few texts come far."""
LONG_LIST = 1024
"""Bytes of a list of words, all in all, that are written at once; ninety-nine in a hundred have below 450."""
MAX_STATES = 1 << 20
"""States of a shared table beyond which new constraints begin another: half of `MOST_STATES`, the states that have
prices.  Behind those no budget is known to be far, so every mask under one is made as if it were near."""

MAX_EDGES = 8_000_000
"""Edges (8 bytes each) after which new constraints get a fresh table: 64 MB."""

MOST_STATES = 1 << 21
MOST_FIRST_EDGES = 1 << 21
"""States and edges that there is room for at first: of states twice those of eight thousand schemas, some 180 MB of
addresses.  Memory that is not written to is not taken, and to copy a million states took 0.2 s in the middle of a
mask."""

MOST_PARTIALS = 1 << 16
"""Room at first for twice as many states inside escapes as eight thousand schemas come to; to enter those there are
anew took 1.3 us each, in the middle of a mask."""

AT_ONCE = 512
"""States that are made ready to be used together: the first touch of the memory of 4,096 takes 0.1 to 0.2 ms."""

MOST_EDGES = 256
"""Of one state: room that the kernel wants before it begins one."""

NEAR = 96
"""States expanded when one is asked for: half a microsecond each, where every request costs twenty to fifty.  A
character of a bounded run takes eight of them, and a token some four characters."""

NEAR_PARTS = 6
"""Parts whose edges are found then beyond those that are needed: 20 us each."""


class StateTable:
    """Flat arrays of lexer states; ids are stable, arrays are replaced when they grow (old views stay right)."""

    _current: StateTable | None = None
    _swap = threading.Lock()

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.arrays = Automaton(
            **records(Automaton, "low", MOST_FIRST_EDGES),
            partials=np.zeros(MOST_PARTIALS, np.int32),
            **records(Automaton, "first", MOST_STATES),
        )
        self._room = 0
        """States that are ready to be used."""
        self._look()
        self.addresses = SharedAddresses()
        self.keys: list[object] = [None]
        """What each state stands for; None inside chains and escapes, and where only the parts are known (`key`)."""
        self.n_edges = 0
        self._ids: dict[object, int] = {}
        self.names: tuple[dict[bytes, int], dict[bytes, int]] = {}, {}
        self.lists: dict[tuple[tuple[bytes, ...], bool], int] = {}
        self.excluding: dict[OtherTexts, int] = {}
        """Of `guided.automata.lexer.names`; names in every spelling and in the canonical one."""
        self.written: dict[int, OtherTexts | tuple[tuple[bytes, ...], bool]] = {}
        """What the last two lists say, by state."""
        self.ranges: dict[Ranges, int] = {}
        """Of `guided.automata.lexer.numbers`."""
        self._owing: dict[tuple[int, int], int] = {}
        self._joined: dict[tuple[int, ...], int] = {}
        self.compared: dict[tuple[int, int], bool] = {}
        """Of `guided.automata.lexer.joint`."""
        self._under: dict[tuple[int, int], int] = {}
        self.at_least: dict[int, int] = {}
        """Bytes that a state is from the end of a match, or fewer; of `guided.automata.lexer.distances`."""
        self.n_partials = 0
        """Of `guided.automata.lexer.spelling`."""
        self.parts = PartTable(self._state_of_part, self.table_address, MOST_STATES)
        self._counts, self._queue = self.parts.arrays.counts.data, self.parts.arrays.queue.data
        self._missing = self.parts.arrays.missing.data
        self._table = np.zeros((N_ROWS + len(self.parts.arrays), 3), np.int64)
        """What the kernels get: rows of addresses, of the automaton first and of the parts last."""
        self._table_address = address(self._table)
        self._held: tuple[Any, Any] = ((), ())
        self.reserve_states(1)
        self.arrays.first[0] = 0
        if self.add(EPSILON) != MATCHED:
            raise AssertionError("the state after a closing quote has a fixed id")

    @classmethod
    def shared(cls) -> StateTable:
        """The table that new constraints use."""
        with cls._swap:
            if cls._current is None or cls._current.n_edges > MAX_EDGES or len(cls._current) > MAX_STATES:
                cls._current = StateTable()
            return cls._current

    def __len__(self) -> int:
        return len(self.keys)

    def key(self, state: int) -> object:
        """What a state stands for; None where that is no expression made yet: inside chains and escapes, unions."""
        key = self.keys[state]
        if key is None:
            members = self.parts.members(state)
            if len(members) == 1:
                key = self.keys[state] = terminal(*members[0])
        elif type(key) is OtherTexts:
            key = self.keys[state] = json_string(text_excluding(key.texts), canonical=key.canonical)
        return key

    def is_derived(self, state: int) -> bool:
        """Are a state's edges worked out, and not written with a literal?"""
        return self.keys[state] is not None or int(self.parts.arrays.set_first[state]) >= 0

    def add(self, key: Expr | LexerState) -> int:
        """The id of a non-empty language; its edges are found when first needed, those of short literals at once."""
        found = self._ids.get(key)
        if found is not None:
            return found
        with self.lock:
            found = self._ids.get(key)
            return self._new(key) if found is None else found

    def target(self, key: Expr) -> int:
        """As `add`, for states that edges lead to: a run that must not be a word goes on as the run, owing that."""
        known = self._ids.get(key)
        if known is not None:
            return known
        if key.kind is Kind.JSON_STRING:
            content, canonical = cast("tuple[Expr, bool]", key.parts)
            found = run_less_words(content)
            if found is not None:
                run, finite = (self.add(json_string(part, canonical=canonical)) for part in found)
                return self._less(key, run, finite)
        return self.add(key)

    def _less(self, key: Expr | OtherTexts, run: int, finite: int) -> int:
        with self.lock:
            state = self._owing.get((run, finite))
            if state is None:
                state = self._owing[run, finite] = self.allocate(key)
                self.arrays.base[state] = run
                self.arrays.owes[state] = finite
            return state

    def _state_of_part(self, content: Expr, mode: int) -> int:
        """The state that is known for a part by itself, 0 for none."""
        if content.kind is (Kind.INTERSECTION if mode else Kind.JSON_STRING) and may_owe(content):
            return self.target(terminal(content, mode))
        key = made_json_string(content, canonical=bool(mode & CANONICAL)) if mode else content
        return self._ids.get(key, 0)

    def _new(self, key: Expr | LexerState) -> int:
        if not isinstance(key, Expr):
            state = self._ids[key] = self.allocate(key)
            self.arrays.tag[state] = key.tag
            if key.pending is not None:
                pending = self.add(key.pending)
                self.arrays.pending[state] = pending
            if key.also is not None:
                also = self.add(key.also)
                self.arrays.also[state] = also
            return state
        content, mode = reading(key)
        head, tail = begins(content)
        is_literal = head.kind is Kind.LITERAL
        if is_literal and len(data := cast(bytes, head.parts[0])) <= LONG:
            state = self._ids[key] = self.allocate(key)
            self._write_texts(state, (data,), self.target(terminal(tail, mode)), mode)
            return state
        known = 0 if is_literal else self.parts.find((content, mode))
        if known and not self.arrays.owes[known]:
            self._ids[key] = known
            return known
        state = self._ids[key] = self.allocate(key)
        if mode:
            self.arrays.mode[state] = mode | CLOSES if content.nullable else mode
        elif content.nullable:
            self.arrays.tag[state] = 0
        if content is EPSILON:
            self.arrays.first[state] = 0
        if key is not EPSILON and not known and not is_literal:
            self.parts.stands_for((content, mode), state)
            words = listed_words(content)
            if words and sum(map(len, words)) <= LONG_LIST:
                self._write_texts(state, words, self.target(terminal(EPSILON, mode)), mode)
        return state

    def _write_words(self, state: int, key: Expr) -> bool:
        """Write the literal that a state begins with, or the next letters of a list of words, if it does."""
        content, mode = reading(key)
        head, tail = begins(content)
        if head.kind is Kind.LITERAL:
            data = cast(bytes, head.parts[0])
            if len(data) > LONG:
                data, tail = data[:LONG], concat(literal(data[LONG:]), tail)
            self._write_texts(state, (data,), self.target(terminal(tail, mode)), mode)
        elif is_word_list(content):
            row = [(low, high, self.target(terminal(concat(to, tail), mode))) for low, high, to in expr_edges(head)]
            self._give_edges(state, row, loops(tail))
        else:
            return False
        return True

    def _give_edges(self, state: int, row: Sequence[tuple[int, int, int]], loops: bool) -> None:
        width = sum(high - low + 1 for low, high, _ in row)
        self.arrays.loops[state] = int(loops and width >= WIDE)
        self._write(state, row)
        describe(self.table_address(), state, int(self.arrays.first[state]))

    def _write_texts(self, state: int, words: tuple[bytes, ...], last: int, mode: int) -> None:
        """Write words as states that end in ``last``: no derivatives, no expressions between."""
        data = words[0] if len(words) == 1 else b"".join(words)
        if len(data) == len(words) == 1:
            # A quote, nearly always; the kernel takes three times as long.
            self.arrays.mode[state] = mode
            self._write(state, ((data[0], data[0], last),))
            return
        n_states = len(self.keys)
        self.reserve_states(len(data))
        self.make_edge_room(len(data))
        self._counts[STATES], self._counts[EDGES] = n_states, self.n_edges
        ends = np.array((len(data),) if len(words) == 1 else list(accumulate(map(len, words))), np.int32)
        nodes = np.empty((len(data) + 1, 3), np.int32)
        first: int = direct(write_words)(
            self.table_address(), np.frombuffer(data, np.uint8), ends, nodes, state, last, mode
        )
        self.n_edges = self._counts[EDGES]
        self.keys.extend([None] * (self._counts[STATES] - n_states))
        # Last, since kernels of other threads may be at this state.
        self.arrays.first[state] = first

    def _write(self, state: int, row: Sequence[tuple[int, int, int]]) -> None:
        at = self.reserve_edges(len(row))
        lows, highs, targets, counts = self._views
        for i, edge in enumerate(row, at):
            lows[i], highs[i], targets[i] = edge
        counts[state] = len(row)
        self._firsts[state] = at

    def allocate(self, key: object) -> int:
        """A new state, which stands for ``key``."""
        state = len(self.keys)
        self.reserve_states(1)
        self.keys.append(key)
        return state

    def reserve_states(self, n: int) -> None:
        """Room for ``n`` more states."""
        state = len(self.keys)
        if state + n > self._room:
            ready = self._room
            self._room = self._counts[ROOM] = room = state + n + AT_ONCE
            if room > self.arrays.first.shape[0]:
                self.arrays = self.arrays._replace(**grown_records(self.arrays, "first", 2 * room, ready))
                self._look()
                REPLACED.note()
            self.parts.reserve_states(ready, room)
            for name, unset in _UNSET.items():
                getattr(self.arrays, name)[ready:room] = unset
            self.arrays.base[ready:room] = np.arange(ready, room, dtype=np.int32)

    def _look(self) -> None:
        """Look at the arrays that are read and written entry by entry."""
        arrays = self.arrays
        self._views = arrays.low.data, arrays.high.data, arrays.target.data, arrays.count.data
        self._firsts = arrays.first.data

    def reserve_edges(self, n: int) -> int:
        """The first of ``n`` new edges."""
        at = self.n_edges
        self.make_edge_room(n)
        self.n_edges = at + n
        return at

    def make_edge_room(self, n: int) -> None:
        """Room for ``n`` more edges."""
        at = self.n_edges
        if at + n > self.arrays.low.shape[0]:
            size = max(2 * self.arrays.low.shape[0], at + n)
            old = self.arrays
            self.arrays = old._replace(**grown_records(old, "low", size, at))
            self._look()
            REPLACED.note()

    def expand(self, state: int) -> None:
        """Find the edges of a state, and of some that it leads to."""
        if self.arrays.first[state] < 0:
            self.expand_all([state])

    def expand_all(self, states: Sequence[int]) -> None:
        """Find the edges of several states, and of some that they lead to."""
        with self.lock:
            left = [state for state in states if self._firsts[state] < 0 and not self._write_if_words(state)]
            if left:
                self.explore(left, NEAR + len(left), NEAR_PARTS)

    def _write_if_words(self, state: int) -> bool:
        """Say what a state is made of, if that is not known; was it words, which are written without the kernel?"""
        return self.parts.made_of(state) is None and self._give_parts(state)

    def explore(self, states: Sequence[int], limit: int, parts: int, expensive: int = 0) -> None:
        """Expand states and what is reachable from them, nearest first: ``limit`` states, fewer if that is much work.

        What is ahead is left when the edges of so many ``parts`` were found, ``expensive`` of those that are read as a
        whole, at the price of a derivative of all that they combine.
        """
        with self.lock:
            # Where the kernel would ask at once.
            inside = parts > NEAR_PARTS
            asked = sum([self._find_parts(state, parts, inside, True) for state in states if self._firsts[state] < 0])
            while True:
                closing = self._determinise(states, limit, inside)
                if closing is None:
                    self.make_room()
                    continue
                n_missing, needed = self._counts[MISSING], self._counts[NEEDED]
                for state in self._missing[:needed].tolist():
                    asked += self._find_parts(state, parts - asked, inside)
                found = needed > 0
                for state in self._missing[needed:n_missing].tolist():
                    if asked >= parts:
                        break
                    if self._is_expensive(state):
                        if expensive <= 0:
                            continue
                        expensive -= 1
                    if inside or not self._is_inside(state):
                        asked += self._find_parts(state, parts - asked, inside)
                        found = True
                if not found:
                    break
            for state in closing:
                self._close_text(state)

    def _find_parts(self, state: int, most: int, inside: bool, before: bool = False) -> int:
        """Say what a state is made of, or find the edges of its parts, and of ``most`` in all; of how many.

        ``before`` the kernel has asked only of those that it does not tell by their numbers.
        """
        made_of = self.parts.made_of(state)
        if made_of is None:
            self._give_parts(state)
            made_of = [part for part in self.parts.made_of(state) or () if not self.parts.is_expensive(part)]
        found = 0
        for part in made_of:
            if before and self.parts.is_derived(part):
                continue
            found += self.parts.find_edges(part, most - found, inside)
        return found

    def _is_inside(self, state: int) -> bool:
        """Is this a state of pairs inside a character, which few texts reach?"""
        return any(map(self.parts.is_inside, self.parts.made_of(state) or ()))

    def _is_expensive(self, state: int) -> bool:
        made_of = self.parts.made_of(state)
        if made_of is not None:
            return any(map(self.parts.is_expensive, made_of))
        key = self.key(state)
        if not isinstance(key, Expr):
            return True
        content, _ = reading(key)
        return is_listed(begins(content)[0]) or is_read_whole(content)

    def _determinise(self, begin: Sequence[int], limit: int, inside: bool) -> list[int] | None:
        """Run the kernel on some states; those that lead back to themselves, as is not fully known.  None: no room."""
        counts, queue = self._counts, self._queue
        for i, state in enumerate(begin):
            queue[i] = state
        n_states = len(self.keys)
        counts[STATES], counts[EDGES] = n_states, self.n_edges
        table = self.table_address()
        code: int = direct(determinise)(table, len(begin), min(max(len(begin), limit), MOST_QUEUED), inside)
        self.n_edges = counts[EDGES]
        if counts[STATES] > n_states:
            self.keys.extend([None] * (counts[STATES] - n_states))
        n_closing: int = direct(publish)(table)
        return queue[:n_closing].tolist() if code >= 0 else None

    def table_address(self) -> int:
        """Where the table of addresses is that kernels get: of the automaton's arrays first, of the parts' last."""
        automaton, parts = self._held
        if automaton is not self.arrays or parts is not self.parts.arrays:
            self._table[: len(self.arrays)] = self.addresses.of(self.arrays)
            self._table[N_ROWS:] = address_rows(self.parts.arrays)
            self._held = self.arrays, self.parts.arrays
        return self._table_address

    def make_room(self) -> None:
        """Room for the kernel to go on: twice of what is used up."""
        if len(self.keys) == self._room:
            self.reserve_states(1)
        elif self.n_edges + MOST_EDGES > self.arrays.low.size:
            self.make_edge_room(MOST_EDGES)
        elif self._counts[WANTED] == NO_ROOM:
            self.parts.grow()
        else:
            self.parts.make_room()
            self._counts[SETS] = rehash(self.table_address(), len(self.keys))

    def _give_parts(self, state: int) -> bool:
        """Say what a state is made of: parts; or its edges, where it is not.  Does it begin with words?"""
        key = self.key(state)
        if isinstance(key, Expr):
            if self._write_words(state, key):
                return True
            of = reading(key)
            first, count = self.parts.set_of(of, self._counts[POOL])
            self._counts[POOL] = first + count
            self.parts.arrays.set_count[state] = count
            self.parts.arrays.set_first[state] = first
            if count == 1:
                self._note_bound(state, int(self.parts.arrays.pool[first]))
                only = self.parts.members(state)[0]
                if not self.parts.find(only):
                    self.parts.stands_for(only, state)
                return only != of and self._write_words(state, terminal(*only))
        elif isinstance(key, Both | Under):
            self._give_edges(state, key.edges(self), loops=isinstance(key, Under))
        else:
            ways = cast(LexerState, key).edges()
            self._give_edges(state, [(low, high, self.add(target)) for low, high, target in ways], loops=True)
        return False

    def _note_bound(self, state: int, part: int) -> None:
        """Note of which state a state's effects are where its bound is far (`determinise` does of those it makes)."""
        found = self.parts.boundless(part)
        if found is not None:
            (content, mode), bound = found
            self.arrays.boundless[state] = self.target(terminal(content, mode))
            self.arrays.bound[state] = bound

    def _close_text(self, state: int) -> None:
        """Note whether a state that leads back to itself on some class does so on characters above ASCII."""
        closed = int(self.arrays.closed[state]) | EXAMINED
        if self._leads_back(state, *_TEXT):
            closed |= TEXT
            if self._leads_back(state, *_LINES):
                closed |= LINES
        self.arrays.closed[state] = closed

    def _leads_back(self, state: int, *phases: NDArray[Any]) -> bool:
        while (found := int(leads_back(self.table_address(), state, *phases))) < 0:
            # That one alone: what is ahead of it may lead back to itself as well, and so on.
            self.explore([-found], 1, 0)
        return found == 1

    def forbids_end(self, obligation: int) -> bool:
        """Would the text break this obligation by ending here?"""
        key = self.keys[obligation]
        if isinstance(key, Both):
            return any(map(self.forbids_end, key.parts))
        return bool(getattr(key, "violated_at_end", False))

    def edges(self, state: int) -> list[tuple[int, int, int]]:
        """The edges of a state, found if need be; none for state 0.  Inside a JSON string they read its text."""
        if state == 0:
            return []
        self.expand(state)
        first = int(self.arrays.first[state])
        stop = first + int(self.arrays.count[state])
        columns = (self.arrays.low, self.arrays.high, self.arrays.target)
        return list(zip(*(column[first:stop].tolist() for column in columns), strict=True))

    def whole(self, state: int) -> int:
        """The state that stands for a state with what it owes."""
        return self.add(cast(Expr, self.key(state))) if self.arrays.owes[state] else state

    def joined(self, *states: int) -> int:
        """The state that matches when any of some does (0: none can any more).

        Whatever they were made of, and in which order, the same obligations are one state: there are finitely many.
        """
        key = tuple(sorted({part for state in states if state for part in parts_of(self, state)}))
        if len(key) < 2:
            return key[0] if key else 0
        with self.lock:
            found = self._joined.get(key)
            if found is None:
                both = Both(key)
                found = self._joined[key] = self.allocate(both)
                self.arrays.tag[found] = both.tag(self)
            return found

    def under(self, state: int, obligation: int) -> int:
        """The lexer state that goes on from ``state``, and none of whose matches or texts violate an obligation."""
        if not obligation:
            return state
        with self.lock:
            found = self._under.get((state, obligation))
            if found is None:
                found = self._under[state, obligation] = self.allocate(Under(state, obligation))
                self._owe(found, state, obligation)
            return found

    def _owe(self, new: int, state: int, obligation: int) -> None:
        """Have the matches that may end in a state end in another, each owing an obligation as well."""
        arrays = self.arrays
        if arrays.tag[state] < 0:
            return
        pending = self.joined(int(arrays.pending[state]), obligation)
        also = int(arrays.also[state])
        further = 0
        if also:
            further = self.allocate(None)
            self.arrays.first[further] = 0
            self._owe(further, also, obligation)
        self.arrays.tag[new], self.arrays.pending[new], self.arrays.also[new] = arrays.tag[state], pending, further


_UNSET = {"first": -1, "tag": -1, "minimum": -1, "widest": -1}
"""What the arrays with an entry per state hold for a new one, where not 0; ``base`` is the state itself."""


_TEXT, _LINES = flat_phases(TEXT_PHASES), flat_phases(LINES_PHASES)
