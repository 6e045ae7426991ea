"""The lexing modes' side of the parser: which lexer state begins at an LALR stack, and the tables as arrays.

A lexer state must never lead only to terminals that the parser will refuse, or a mask would allow a dead end; so the
start state of a stack is made for exactly the terminals that the parser accepts there.  The others of the context stay
in it as rivals: where Lark would cut one of them, the text is refused.
"""

from __future__ import annotations

from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer_state import LexerState
from guided.automata.ordered import FurtherExit, OrderedLexer, lexer_of
from guided.automata.states import StateTable
from guided.errors import UnsupportedError
from guided.grammar.ir import Grammar, Lexing
from guided.grammar.lexing import LalrTables
from guided.kernels.addresses import address_rows
from guided.kernels.layout import Lalr


def lexer_states(grammar: Grammar, states: StateTable) -> tuple[list[int], list[int]]:
    """Start states of every terminal and of the ignored ones (dynamic lexing); ignored terminals (contextual)."""
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
        targets = ((low, high, Restricted(target, self.live)) for low, high, target in self.state.edges())
        return tuple(edge for edge in targets if can_match(edge[2]))


def can_match(state: LexerState) -> bool:
    """Can a match end in this state or after more text?

    Nearly always the first match found is one; there are no more states than were looked at when compiling.
    """
    if not isinstance(state, Restricted):
        return state.tag >= 0 or bool(state.edges())
    before: dict[LexerState, LexerState | None] = {state.state: None}
    queue = [state.state]
    for item in queue:
        known = _matching.get(item, {}).get(state.live)
        if known or (known is None and Restricted(item, state.live).tag >= 0):
            walk: LexerState | None = item
            while walk is not None:
                _matching.setdefault(walk, {})[state.live] = True
                walk = before[walk]
            return True
        for _, _, target in item.edges() if known is None else ():
            if target not in before:
                before[target] = item
                queue.append(target)
    for item in queue:
        _matching.setdefault(item, {})[state.live] = False
    return False


_matching: WeakKeyDictionary[LexerState, dict[frozenset[int], bool]] = WeakKeyDictionary()
"""What `can_match` found, also of the states on its way: else each state of a long repeat looks at all behind it."""


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
        )  # fmt: skip

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
            state: LexerState = self._lexer.start(context)
            if len(live) < len(context):
                state = Restricted(state, live)
            found = self._states.add(state) if can_match(state) else 0
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
        bits = np.zeros(arrays.opening_live.shape[1], np.uint64)
        for terminal in live:
            bits[terminal >> 6] |= np.uint64(1 << (terminal & 63))
        arrays.opening_live[row] = bits.view(np.int64)
        self._enter(row)

    def _enter(self, row: int) -> None:
        slots = self.arrays.opening_slot
        # As `guided.kernels.lalr.open_stack` does it.
        hashed = int(self.arrays.opening_state[row])
        for word in self.arrays.opening_live[row].tolist():
            hashed = (hashed ^ word) * 1099511628211 & _MASK64
            hashed ^= hashed >> 29
        slot = hashed % slots.size
        while slots[slot] >= 0:
            slot = (slot + 1) % slots.size
        slots[slot] = row


_MASK64 = (1 << 64) - 1
_NOTHING = np.zeros((1, 1), np.int32)
NO_TABLES = Lalr(
    _NOTHING, _NOTHING, _NOTHING[0], _NOTHING[0], np.zeros(2, np.int32), np.zeros(2, np.int32), _NOTHING[0],
    np.zeros(1, np.uint8), np.full(1, -1, np.int32), _NOTHING[0], np.zeros((1, 1), np.int64), _NOTHING[0],
)  # fmt: skip
"""What kernels get where there is no LALR parser: nothing looks into it."""


@lru_cache(maxsize=1)
def no_tables() -> NDArray[np.int64]:
    """The addresses of the tables where there is no LALR parser."""
    return address_rows(NO_TABLES)
