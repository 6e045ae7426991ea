"""The lexing modes' side of the parser: which lexer state begins at an LALR stack, and the tables as arrays.

A lexer state must never lead only to terminals that the parser will refuse, or a mask would allow a dead end; so the
start state of a stack is made for exactly the terminals that the parser accepts there.  The others of the context stay
in it as rivals: where Lark would cut one of them, the text is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property, lru_cache
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from guided.automata.lalr.closings import Closings, Rows
from guided.automata.lexer.joint import Under, parts_of
from guided.automata.lexer.lexer_state import LexerState
from guided.automata.lexer.ordered import FurtherExit, OrderedLexer, OrderedState, lexer_of
from guided.automata.lexer.states import StateTable
from guided.errors import UnsupportedError
from guided.grammar.ir import Grammar, Lexing
from guided.grammar.lexing import LalrTables
from guided.kernels.data.addresses import address_rows
from guided.kernels.data.layout import Lalr
from guided.kernels.data.requests import WANT_REST, WANT_START, WANT_UNDER, WANT_VERDICT


def lexer_states(grammar: Grammar, states: StateTable) -> tuple[list[int], list[int]]:
    """Start states of every terminal and of the ignored ones (dynamic lexing); ignored terminals (contextual).

    Raises `UnsupportedError` for a terminal that looks at text before its start.
    """
    if grammar.lexing is Lexing.NONE:
        return [], []
    lexer = lexer_of(grammar.terminals)
    if lexer.looking_back:
        raise UnsupportedError(
            "a terminal looks at the text before its own start, which belongs to the terminal before it",
            where=f"terminal {' and '.join(lexer.looking_back)}",
            remedy="Leave out the leading \\b, ^ or look-behind, or put what it looks for into the terminal itself.",
        )
    if grammar.lexing is Lexing.DYNAMIC:
        starts = [states.add(lexer.start((index,))) for index in range(len(grammar.terminals))]
        return starts, [starts[index] for index in grammar.ignore]
    return [], list(grammar.ignore)


class Restricted:
    """A lexer state in which only the terminals of ``live`` may be cut; the others stay as rivals that refuse text."""

    __slots__ = ("live", "state")

    def __init__(self, state: LexerState, live: frozenset[int]) -> None:
        self.state, self.live = state, live

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Restricted) and other.state is self.state and other.live == self.live

    def __hash__(self) -> int:
        return hash((self.state, self.live))

    def _exits(self) -> list[LexerState]:
        """How a match of a live terminal may end here."""
        found: list[LexerState] = []
        state: LexerState | None = self.state
        while state is not None:
            if state.tag in self.live:
                found.append(state)
            state = state.also
        return found

    @property
    def tag(self) -> int:
        """The first live terminal that may end here."""
        exits = self._exits()
        return exits[0].tag if exits else -1

    @property
    def pending(self) -> LexerState | None:
        """What would be preferred to that match."""
        exits = self._exits()
        return exits[0].pending if exits else None

    @property
    def also(self) -> LexerState | None:
        """The other live terminals that may end here."""
        chain: LexerState | None = None
        for state in reversed(self._exits()[1:]):
            chain = FurtherExit(state.tag, state.pending, chain)  # type: ignore[arg-type]
        return chain

    def edges(self) -> tuple[tuple[int, int, LexerState], ...]:
        """The edges from whose targets a live terminal can be reached."""
        targets = ((low, high, restricted(target, self.live)) for low, high, target in self.state.edges())
        return tuple((low, high, target) for low, high, target in targets if target is not None)


def reachable(state: LexerState) -> frozenset[int]:
    """The terminals whose match can end in a state or after more text.

    There are no more states behind it than were looked at when compiling; nearly always a few dozen are enough.
    """
    if isinstance(state, Restricted):
        return reachable(state.state) & state.live
    start = cast(OrderedState, state)
    if len(start.terminals) <= 1:
        return start.terminals
    if start not in _reached:
        _reach(start)
    return _reached[start]


_reached: WeakKeyDictionary[OrderedState, frozenset[int]] = WeakKeyDictionary()
"""What `reachable` found, also of all states behind: else each of a long repeat would look at all that follow."""


def _reach(start: OrderedState) -> None:
    """Find what can be reached from a state and all that it leads to: what one reaches, those before it do."""
    before: dict[OrderedState, list[OrderedState]] = {start: []}
    found: dict[OrderedState, set[int]] = {}
    queue = [start]
    for at in queue:
        found[at] = set(_reached.get(at, ()) if len(at.terminals) > 1 else at.terminals)
        if found[at]:
            continue
        found[at].update(exit_.tag for exit_ in at.exits)
        for _, _, target in at.edges():
            if target not in before:
                before[target] = []
                queue.append(target)
            before[target].append(at)
    while queue:
        at = queue.pop()
        for earlier in before[at]:
            if not found[at] <= found[earlier]:
                found[earlier] |= found[at]
                queue.append(earlier)
    _reached.update((at, frozenset(terminals)) for at, terminals in found.items())


def restricted(state: LexerState, live: frozenset[int]) -> LexerState | None:
    """A state in which only the terminals of ``live`` may be cut: itself where all it can match are; None: none is."""
    found = reachable(state)
    if found <= live:
        return state if found else None
    found &= live
    return Restricted(state, found) if found else None


FIRST_OPENINGS = 256
"""Lexers that a grammar begins with room for; Lark's grammar of itself has 30, one of C 200."""


class LalrStacks:
    """An LALR parser over stacks given as lists of states, bottom first."""

    def __init__(self, grammar: Grammar, states: StateTable) -> None:
        assert grammar.tables is not None
        self.tables: LalrTables = grammar.tables
        self.start = self.tables.start
        self._states = states
        self._lexer: OrderedLexer = lexer_of(grammar.terminals)
        self._ignore = frozenset(grammar.ignore)
        self._starts: dict[tuple[int, frozenset[int]], int] = {}
        self._under: dict[int, int] = {}
        self._pairs: dict[int, int] = {}
        self._rests, self._ways = Rows(), Rows()
        self._priced: dict[tuple[int, Hashable], int] = {}
        self._verdicts: dict[tuple[frozenset[int], frozenset[int]], int] = {}
        self.arrays = self._arrays()
        """The tables for kernels; replaced when there are more lexers than there was room for."""

    def _arrays(self) -> Lalr:
        tables = self.tables
        n_states = len(tables.shift)
        contexts = [terminal for context in tables.accepts for terminal in context]
        in_tables = (terminal for row in (*tables.shift, *tables.reduce) for terminal in row)
        n_terminals = 1 + max([tables.end, *self._ignore, *contexts, *in_tables])
        n_names = 1 + max((name for name, _ in tables.rules), default=0)
        action = np.zeros((n_states, n_terminals), np.int32)
        goto = np.zeros((n_states, n_names), np.int32)
        for state in range(n_states):
            for terminal, target in tables.shift[state].items():
                action[state, terminal] = target + 1
            for terminal, rule in tables.reduce[state].items():
                action[state, terminal] = -(rule + 1)
            for name, target in tables.goto[state].items():
                goto[state, name] = target
        names = np.asarray([name for name, _ in tables.rules] or [0], np.int32)
        lengths = np.asarray([length for _, length in tables.rules] or [0], np.int32)
        is_ignored = np.zeros(n_terminals, np.uint8)
        is_ignored[sorted(self._ignore)] = 1
        return Lalr(
            action, goto, names, lengths, np.asarray([tables.final, tables.end], np.int32),
            context_first=np.cumsum([0, *map(len, tables.accepts)], dtype=np.int32),
            context=np.asarray(contexts or [0], np.int32),
            is_ignored=is_ignored,
            opening_slot=np.full(4 * FIRST_OPENINGS, -1, np.int32),
            opening_state=np.zeros(FIRST_OPENINGS, np.int32),
            opening_live=np.zeros((FIRST_OPENINGS, -(-n_terminals // 64)), np.int64),
            opening_start=np.zeros(FIRST_OPENINGS, np.int32),
            start=np.full(n_states, -1, np.int32),
            under_key=np.zeros(4 * FIRST_OPENINGS, np.int64),
            under_state=np.zeros(4 * FIRST_OPENINGS, np.int32),
            verdict=np.full(1, -1, np.int32),
            frees=np.zeros((FIRST_OPENINGS, -(-n_terminals // 64)), np.int64),
            debts=np.zeros((FIRST_OPENINGS, -(-n_terminals // 64)), np.int64),
            rest_row=np.full(1, -1, np.int32),
            rest_first=self._rests.first,
            rests=self._rests.numbers,
            pair_key=np.zeros(4 * FIRST_OPENINGS, np.int64),
            pair_row=np.zeros(4 * FIRST_OPENINGS, np.int32),
            way_first=self._ways.first,
            ways=self._ways.numbers,
        )  # fmt: skip

    def provide(self, kind: int, what: int, second: int) -> None:
        """Make known what a mask asks for: see the kinds of requests in `guided.kernels.data.requests`.

        Requests of two fields have a ``second``.
        """
        if kind == WANT_START:
            state = self._lexer.start(self.tables.accepts[what])
            self.arrays.start[what] = self._states.add(state) if state.edges() else 0
        elif kind == WANT_UNDER:
            key = what << 28 | second
            self._under[key] = self._states.under(what, second)
            keys, states = _entered(self._under, key, self.arrays.under_key, self.arrays.under_state)
            self.arrays = self.arrays._replace(under_key=keys, under_state=states)
        elif kind == WANT_VERDICT:
            self.verdict(what)
        elif kind == WANT_REST:
            self._find_rest(what)
        else:
            self._find_ways(what, second)

    @cached_property
    def _closings(self) -> Closings:
        return Closings(self.tables, self._ignore, self._lexer)

    def _find_rest(self, state: int) -> None:
        """Make known how many bytes are enough to end terminals from a lexer state."""
        arrays = self.arrays
        rows = arrays.rest_row
        if state >= rows.size:
            rows = _by_state(rows, state, len(self._states))
        inside, owed, live = self._inside(state)
        rest = self._closings.rest(inside, owed)
        rows[state] = self._rests.add(tuple(t << 32 | cost for t, cost in rest if live is None or t in live))
        self.arrays = arrays._replace(rest_row=rows, rest_first=self._rests.first, rests=self._rests.numbers)

    def priced_as(self, state: int) -> int:
        """A number for all that a verdict and a price look at where a token ends in a lexer state."""
        inside, owed, _ = self._inside(state)
        asked = (self.verdict(state), self._closings.exits(inside, owed))
        return self._priced.setdefault(asked, len(self._priced))

    def _inside(self, state: int) -> tuple[OrderedState, list[OrderedState], frozenset[int] | None]:
        """What is read in a lexer state, what is owed meanwhile, and the terminals that count; None: all."""
        key, obligation = self._states.key(state), 0
        if isinstance(key, Under):
            obligation, key = key.obligation, self._states.key(key.state)
        owed = parts_of(self._states, obligation) if obligation else ()
        live = key.live if isinstance(key, Restricted) else None
        inside = cast(OrderedState, key.state if isinstance(key, Restricted) else key)
        return inside, [cast(OrderedState, self._states.key(part)) for part in owed], live

    def _find_ways(self, below: int, above: int) -> None:
        """Make known how a state above another, both plus one, can be left, and how many bytes are enough."""
        pair = below << 28 | above
        ways = self._closings.options(below - 1, above - 1)
        self._pairs[pair] = self._ways.add(tuple((name + 1) << 48 | read << 32 | cost for name, read, cost in ways))
        keys, rows = _entered(self._pairs, pair, self.arrays.pair_key, self.arrays.pair_row)
        self.arrays = self.arrays._replace(
            pair_key=keys, pair_row=rows, way_first=self._ways.first, ways=self._ways.numbers
        )

    def verdict(self, state: int) -> int:
        """The row that says of which terminals one must be accepted so that a token may end in a lexer state."""
        arrays = self.arrays
        if state >= arrays.verdict.size:
            arrays = self.arrays = arrays._replace(verdict=_by_state(arrays.verdict, state, len(self._states)))
        if arrays.verdict[state] < 0:
            sets = self._ends_in(state)
            row = self._verdicts.get(sets)
            if row is None:
                row = self._verdicts[sets] = len(self._verdicts)
                if row == len(arrays.frees):
                    more = {name: np.concatenate([old, np.zeros_like(old)])
                            for name in ("frees", "debts") for old in [getattr(arrays, name)]}  # fmt: skip
                    arrays = self.arrays = arrays._replace(**more)
                for bits, terminals in zip((arrays.frees, arrays.debts), sets, strict=True):
                    bits[row] = _packed(terminals, bits.shape[1])
            arrays.verdict[state] = row
        return int(arrays.verdict[state])

    def _ends_in(self, state: int) -> tuple[frozenset[int], frozenset[int]]:
        """The terminals of which one must be accepted behind a token that ends in a state: owing nothing, or more."""
        key = self._states.key(state)
        if isinstance(key, Under):
            return frozenset(), reachable(cast(LexerState, self._states.key(key.state)))
        lexer = cast(LexerState, key)
        owing = reachable(lexer)
        ends: LexerState | None = lexer
        free = set()
        while ends is not None:
            if ends.tag >= 0 and ends.pending is None:
                free.add(ends.tag)
            ends = ends.also
        for _, _, target in lexer.edges():
            if owing <= free:
                break
            free |= reachable(target)
        return frozenset(free), owing - free

    def accepts(self, stack: list[int], terminal: int) -> bool:
        """Would the parser, after its reductions, shift ``terminal`` (or, for the end, be done)?"""
        tables = self.tables
        stack = list(stack)
        while True:
            if terminal == tables.end and stack[-1] == tables.final:
                return True
            if terminal in tables.shift[stack[-1]]:
                return True
            rule = tables.reduce[stack[-1]].get(terminal)
            if rule is None:
                return False
            name, length = tables.rules[rule]
            if length:
                del stack[-length:]
            stack.append(tables.goto[stack[-1]][name])

    def ends(self, stack: list[int]) -> bool:
        """May the text end at this stack?"""
        return self.accepts(stack, self.tables.end)

    def lexer_start(self, stack: list[int]) -> int:
        """The lexer state that begins at this stack, 0 when no terminal can come."""
        context = self.tables.accepts[stack[-1]]
        live = frozenset(t for t in context if t in self._ignore or self.accepts(stack, t))
        key = (stack[-1], live)
        found = self._starts.get(key)
        if found is None:
            start = self._lexer.start(context)
            state = restricted(start, live) if start.terminals else None
            found = self._states.add(state) if state is not None else 0
            self._keep(stack[-1], live, found)
            self._starts[key] = found
        return found

    def _keep(self, state: int, live: frozenset[int], start: int) -> None:
        """Have kernels find the lexer of an LALR state and the terminals that are accepted."""
        row = len(self._starts)
        arrays = self.arrays
        if row == arrays.opening_state.size:
            grown = {
                name: np.concatenate([old, np.zeros_like(old)])
                for name in ("opening_state", "opening_live", "opening_start")
                for old in [getattr(arrays, name)]
            }
            arrays = self.arrays = arrays._replace(**grown, opening_slot=np.full(8 * row, -1, np.int32))
            for each in range(row):
                self._enter(each)
        arrays.opening_state[row], arrays.opening_start[row] = state, start
        arrays.opening_live[row] = _packed(live, arrays.opening_live.shape[1])
        self._enter(row)

    def _enter(self, row: int) -> None:
        slots = self.arrays.opening_slot
        # As `guided.kernels.parsing.lalr.open_stack` does it.
        hashed = int(self.arrays.opening_state[row])
        for word in self.arrays.opening_live[row].tolist():
            hashed = (hashed ^ word) * 1099511628211 & _MASK64
            hashed ^= hashed >> 29
        slot = hashed % slots.size
        while slots[slot] >= 0:
            slot = (slot + 1) % slots.size
        slots[slot] = row


def _entered(
    known: dict[int, int], key: int, keys: NDArray[np.int64], values: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """A hash for kernels with one key more, or a larger one with all of them; keys are not 0."""
    entered = {key: known[key]}
    if 2 * len(known) > keys.size:
        keys, values = np.zeros(4 * keys.size, np.int64), np.zeros(4 * keys.size, np.int32)
        entered = known
    for each, value in entered.items():
        mixed = each * 0x9E3779B97F4A7C15 & _MASK64
        slot = (mixed ^ (mixed >> 29)) % keys.size
        while keys[slot] not in (0, each):
            slot = (slot + 1) % keys.size
        keys[slot], values[slot] = each, value
    return keys, values


def _by_state(old: NDArray[np.int32], state: int, n_states: int) -> NDArray[np.int32]:
    """A copy with room for a lexer state and those to come, -1 where new."""
    new = np.full(2 * max(state, n_states), -1, np.int32)
    new[: old.size] = old
    return new


def _packed(terminals: Iterable[int], n_words: int) -> NDArray[np.int64]:
    """Some terminals as bits, 64 a word."""
    bits = np.zeros(n_words, np.uint64)
    for terminal in terminals:
        bits[terminal >> 6] |= np.uint64(1 << (terminal & 63))
    return bits.view(np.int64)


_MASK64 = (1 << 64) - 1
_NOTHING = np.zeros((1, 1), np.int32)
NO_TABLES = Lalr(
    _NOTHING, _NOTHING, _NOTHING[0], _NOTHING[0], np.zeros(2, np.int32), np.zeros(2, np.int32), _NOTHING[0],
    np.zeros(1, np.uint8), np.full(1, -1, np.int32), _NOTHING[0], np.zeros((1, 1), np.int64), _NOTHING[0],
    _NOTHING[0], np.zeros(1, np.int64), _NOTHING[0], _NOTHING[0], np.zeros((1, 1), np.int64),
    np.zeros((1, 1), np.int64), _NOTHING[0], _NOTHING[0], np.zeros(1, np.int64), np.zeros(1, np.int64), _NOTHING[0],
    _NOTHING[0], np.zeros(1, np.int64),
)  # fmt: skip
"""What kernels get where there is no LALR parser: nothing looks into it."""


@lru_cache(maxsize=1)
def no_tables() -> NDArray[np.int64]:
    """The addresses of the tables where there is no LALR parser."""
    return address_rows(NO_TABLES)
