"""The lexer states of a process as flat arrays, grown as kernels visit them.

A state stands for a language still to be read: an interned `Expr`, or an `OrderedState` of a lexer.  Because equal
languages are the same object, a JSON string's inside is one state for every schema, and what a vocabulary's tokens do
from it is computed once.  `StateTable.shared()` is the process-wide table; when it has grown past `MAX_EDGES`, later
constraints start a new one and the old one lives as long as the constraints that use it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from guided.automata.byte_classes import (
    EXAMINED,
    LINES,
    LINES_PHASES,
    TEXT,
    TEXT_PHASES,
    Phases,
    classes_within,
)
from guided.automata.joint import Both
from guided.automata.runs import run_less_words, run_of
from guided.errors import LimitError
from guided.grammar.regular.derivative import edges as expr_edges
from guided.grammar.regular.expr import EPSILON, Expr, Kind, is_listed, json_string, n_expressions
from guided.grammar.regular.json_text import RAW_BYTES
from guided.kernels.addresses import SharedAddresses
from guided.kernels.layout import CANONICAL, CLOSES, MATCHED, STRING, Automaton

MAX_EDGES = 8_000_000
"""Edges (7 bytes each) after which new constraints get a fresh table: about 60 MB."""

_WIDE = 8
"""Bytes that must lead on from a looping state before its effect is cached; below, a walk is as cheap as the copy."""


@runtime_checkable
class LexerState(Protocol):
    """A state of an ordered lexer, as `guided.automata.ordered` makes them."""

    @property
    def tag(self) -> int:
        """Terminal that may end here, or -1."""

    @property
    def pending(self) -> LexerState | None:
        """What would be preferred to the match that ends here."""

    @property
    def also(self) -> LexerState | None:
        """A state without edges whose tag says how else a match may end here."""

    def edges(self) -> tuple[tuple[int, int, LexerState], ...]:
        """Sorted, disjoint byte ranges and their targets."""


EXPLORED_EXPRESSIONS = 3000
"""New expressions after which exploring ahead stops; 32 states of a usual pattern make some 500."""


BRANCHES = 6
"""Different states after one from which on exploring ahead does not go on: of the digits of a number, which lead to
ten, most are never asked for."""


class StateTable:
    """Flat arrays of lexer states; ids are stable, arrays are replaced when they grow (old views stay right)."""

    _current: StateTable | None = None
    _swap = threading.Lock()

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 0
        """Changes whenever an array is replaced, so that holders of `arrays` know to fetch them again."""
        self.arrays = Automaton(
            low=np.zeros(4096, np.uint8),
            high=np.zeros(4096, np.uint8),
            target=np.zeros(4096, np.int32),
            partials=np.zeros(256, np.int32),
            **{name: _unset(name, 1024) for name in _PER_STATE},
        )
        self._views = _views(self.arrays)
        self.addresses = SharedAddresses()
        self.keys: list[object] = [None]
        """What each state stands for; None for states inside chains and escapes."""
        self.n_edges = 0
        self.arrays.first[0] = 0
        self._ids: dict[object, int] = {}
        self._owing: dict[tuple[int, int], int] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._n_partials = 0
        if self.add(EPSILON) != MATCHED:
            raise AssertionError("the state after a closing quote has a fixed id")

    @classmethod
    def shared(cls) -> StateTable:
        """The table that new constraints use."""
        with cls._swap:
            if cls._current is None or cls._current.n_edges > MAX_EDGES:
                cls._current = StateTable()
            return cls._current

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, key: Expr | LexerState) -> int:
        """The id of a non-empty language; its edges are found when first needed, those of literals at once."""
        found = self._ids.get(key)
        if found is not None:
            return found
        with self.lock:
            found = self._ids.get(key)
            return self._new(key) if found is None else found

    def target(self, key: Expr) -> int:
        """As `add`, for states that edges lead to: a run that must not be a word goes on as the run, owing that."""
        if key.kind is Kind.JSON_STRING and key not in self._ids:
            content, canonical = cast("tuple[Expr, bool]", key.parts)
            found = run_less_words(content)
            if found is not None:
                run, finite = (self.add(json_string(part, canonical=canonical)) for part in found)
                return self._less(key, run, finite)
        return self.add(key)

    def _less(self, key: Expr, run: int, finite: int) -> int:
        with self.lock:
            state = self._owing.get((run, finite))
            if state is None:
                state = self._owing[run, finite] = self._allocate(key)
                self.arrays.base[state] = run
                self.arrays.owes[state] = finite
            return state

    def _new(self, key: Expr | LexerState) -> int:
        state = self._ids[key] = self._allocate(key)
        if not isinstance(key, Expr):
            self.arrays.tag[state] = key.tag
            if key.pending is not None:
                pending = self.add(key.pending)
                self.arrays.pending[state] = pending
            if key.also is not None:
                also = self.add(key.also)
                self.arrays.also[state] = also
        elif key.kind is Kind.JSON_STRING:
            content, canonical = cast("tuple[Expr, bool]", key.parts)
            spelled = STRING | CANONICAL if canonical else STRING
            self.arrays.mode[state] = spelled | CLOSES if content.nullable else spelled
            head, tail = cast("tuple[Expr, Expr]", content.parts) if content.kind is Kind.CONCAT else (content, EPSILON)
            if head.kind is Kind.LITERAL:
                last = self.target(json_string(tail, canonical=canonical))
                self._chain(state, cast(bytes, head.parts[0]), last, spelled)
        else:
            if key.nullable:
                self.arrays.tag[state] = 0
            head, tail = cast("tuple[Expr, Expr]", key.parts) if key.kind is Kind.CONCAT else (key, EPSILON)
            if key is EPSILON:
                self.arrays.first[state] = 0
            elif head.kind is Kind.LITERAL:
                self._chain(state, cast(bytes, head.parts[0]), self.target(tail), 0)
        return state

    def _chain(self, state: int, data: bytes, last: int, mode: int) -> None:
        """Lay down a literal as consecutive states that end in ``last``: no derivatives, no expressions between."""
        length = len(data)
        after = self._allocate(None, length - 1)
        at = self._reserve(length)
        lows, highs, targets, firsts, counts, modes = self._views
        # Byte by byte through memory views: slices of arrays cost more up to a hundred bytes, and names are short.
        for byte in data[:-1]:
            lows[at] = highs[at] = byte
            targets[at] = after
            firsts[state] = at
            counts[state] = 1
            at += 1
            state = after
            modes[state] = mode
            after += 1
        lows[at] = highs[at] = data[-1]
        targets[at] = last
        firsts[state] = at
        counts[state] = 1

    def _write(self, state: int, row: Sequence[tuple[int, int, int]]) -> None:
        at = self._reserve(len(row))
        lows, highs, targets, firsts, counts, _ = self._views
        for i, edge in enumerate(row, at):
            lows[i], highs[i], targets[i] = edge
        counts[state] = len(row)
        firsts[state] = at

    def _allocate(self, key: object, n: int = 1) -> int:
        """The first of ``n`` new states with consecutive ids."""
        state = len(self.keys)
        if state + n > self.arrays.first.shape[0]:
            size = 2 * (state + n)
            grown = {name: _unset(name, size) for name in _PER_STATE}
            for name, array in grown.items():
                array[:state] = getattr(self.arrays, name)[:state]
            self.arrays = self.arrays._replace(**grown)
            self._views = _views(self.arrays)
            self.version += 1
        if n == 1:
            self.keys.append(key)
        else:
            self.keys.extend([key] * n)
        return state

    def _reserve(self, n: int) -> int:
        at = self.n_edges
        if at + n > self.arrays.low.shape[0]:
            size = max(2 * self.arrays.low.shape[0], at + n)
            old = self.arrays
            grown = {name: np.zeros(size, getattr(old, name).dtype) for name in ("low", "high", "target")}
            for name, array in grown.items():
                array[:at] = getattr(old, name)[:at]
            self.arrays = old._replace(**grown)
            self._views = _views(self.arrays)
            self.version += 1
        self.n_edges = at + n
        return at

    def expand(self, state: int) -> None:
        """Find the edges of a state."""
        with self.lock:
            if self.arrays.first[state] >= 0:
                return
            key = self.keys[state]
            if isinstance(key, Both):
                row, loops = key.edges(self), False
            elif not isinstance(key, Expr):
                row = [(low, high, self.add(target)) for low, high, target in cast(LexerState, key).edges()]
                loops = True
            elif key.kind is Kind.JSON_STRING:
                content, canonical = cast("tuple[Expr, bool]", key.parts)
                row = [(a, b, self.target(json_string(t, canonical=canonical))) for a, b, t in expr_edges(content)]
                loops = _loops(content) or run_of(key) is not None
            else:
                row = [(low, high, self.target(target)) for low, high, target in expr_edges(key)]
                loops = _loops(key)
            width = sum(high - low + 1 for low, high, _ in row) if loops else 0
            worth = width >= _WIDE or (loops and _repeats_at_head(key))
            self.arrays.loops[state] = 2 if worth and _is_common(key) else int(worth)
            self.arrays.closed[state] = self._closed(state, row)
            self._write(state, row)

    def _closed(self, state: int, row: Sequence[tuple[int, int, int]]) -> int:
        """The classes of ASCII bytes on which a state leads back to itself."""
        mask = 0
        for low, high, target in row:
            if target == state:
                mask |= (1 << (high + 1)) - (1 << low)
        if self.arrays.mode[state] & STRING:
            # Written as escapes, or the end: these never stand for themselves.
            mask &= _RAW_MASK
        return classes_within(mask)

    def _close_text(self, state: int) -> None:
        """Note whether a state that leads back to itself on some class does so on characters above ASCII."""
        closed = int(self.arrays.closed[state])
        if not closed or closed & EXAMINED:
            return
        closed |= EXAMINED
        if self._leads_back(state, TEXT_PHASES):
            closed |= TEXT
            if self._leads_back(state, LINES_PHASES):
                closed |= LINES
        self.arrays.closed[state] = closed

    def _leads_back(self, state: int, phases: Phases) -> bool:
        """Does every character whose bytes the phases say lead from a state back to it?"""
        order = [(state, 0)]
        for at, phase in order:
            row = self.edges(at)
            for low, high, following in phases[phase]:
                for first, last, target in row:
                    if first <= low <= last:
                        if following == 0 and target != state:
                            return False
                        if following and (target, following) not in order:
                            order.append((target, following))
                        low = last + 1
                        if low > high:
                            break
                if low <= high:
                    return False
        return True

    def explore(self, state: int, limit: int) -> None:
        """Expand what is reachable from a state, nearest first: ``limit`` states, fewer if costly."""
        with self.lock:
            seen = {state}
            queue = [state]
            work = n_expressions() + EXPLORED_EXPRESSIONS
            for item in queue:
                self.expand(item)
                if n_expressions() > work:
                    # Each state is a product of many: only those that are asked for are worth it.
                    break
                first = int(self.arrays.first[item])
                targets = set(self.arrays.target[first : first + int(self.arrays.count[item])].tolist())
                if len(targets) > BRANCHES:
                    continue
                for target in sorted(targets):
                    if target not in seen and len(seen) < limit and not self.arrays.owes[target]:
                        seen.add(target)
                        queue.append(target)
            for item in queue:
                self._close_text(item)

    def forbids_end(self, obligation: int) -> bool:
        """Would the text break this obligation by ending here?"""
        key = self.keys[obligation]
        if isinstance(key, Both):
            return self.forbids_end(key.first) or self.forbids_end(key.second)
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
        return self.add(cast(Expr, self.keys[state])) if self.arrays.owes[state] else state

    def row(self, state: int) -> list[tuple[int, int, int]]:
        """The bytes that lead on from a state, as they are written, and where to."""
        state = self.whole(state)
        if not self.arrays.mode[state] & STRING:
            return self.edges(state)
        place = self.place(state)
        row: list[tuple[int, int, int]] = []
        if place >> 32:
            candidates = _IN_ESCAPES
        else:
            candidates = b'"\\'
            row += [
                (max(low, a), min(high, b), target)
                for low, high, target in self.edges(state)
                for a, b in RAW_BYTES
                if max(low, a) <= min(high, b)
            ]
        for byte in candidates:
            after = self.move(place, byte)
            if after:
                row.append((byte, byte, self.partial(after) if after >> 32 else after))
        return sorted(row)

    def place(self, state: int) -> int:
        """``decode << 32 | state``: where a state is in the spelling of a string."""
        return int(self.arrays.decode[state]) << 32 | int(self.arrays.base[state])

    def move(self, place: int, byte: int) -> int:
        """The place after one byte, 0 when none."""
        from guided.kernels.strings import move

        while (after := int(move(self.arrays, place, byte))) < 0:
            self.expand(-after)
        return after

    def partial(self, place: int) -> int:
        """The state inside an escape at a place."""
        from guided.kernels.strings import partial

        with self.lock:
            found = int(partial(self.arrays, place))
            if found >= 0:
                return found
            state = self._allocate(None)
            base = place & 0xFFFFFFFF
            self.arrays.base[state] = base
            self.arrays.decode[state] = place >> 32
            self.arrays.mode[state] = int(self.arrays.mode[base]) & (STRING | CANONICAL)
            self._n_partials += 1
            if 2 * self._n_partials > self.arrays.partials.size:
                self.arrays = self.arrays._replace(partials=np.zeros(4 * self._n_partials, np.int32))
                self.version += 1
                for other in np.flatnonzero(self.arrays.decode[:state]).tolist():
                    self._enter(other)
            self._enter(state)
            return state

    def _enter(self, state: int) -> None:
        """Make a state inside an escape visible; the hash is that of `guided.kernels.strings.partial`."""
        partials = self.arrays.partials
        slot = ((self.place(state) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 32) % partials.size
        while partials[slot]:
            slot = (slot + 1) % partials.size
        partials[slot] = state

    def joined(self, one: int, other: int) -> int:
        """The state that matches when either of two does (0: neither can any more)."""
        if one == 0 or one == other:
            return other
        if other == 0:
            return one
        key = (min(one, other), max(one, other))
        with self.lock:
            found = self._joined.get(key)
            if found is None:
                if len(self._joined) > 100_000:
                    raise LimitError("too many combinations of overlapping terminals")
                both = Both(*key)
                found = self._joined[key] = self._allocate(both)
                self.arrays.tag[found] = both.tag(self)
            return found


_PER_STATE: dict[str, tuple[int, type[np.generic]]] = {
    "first": (-1, np.int32), "count": (0, np.int32), "tag": (-1, np.int32), "pending": (0, np.int32),
    "also": (0, np.int32), "loops": (0, np.uint8), "minimum": (-1, np.int32), "widest": (-1, np.int32),
    "mode": (0, np.uint8), "base": (0, np.int32), "decode": (0, np.int32), "owes": (0, np.int32),
    "closed": (0, np.int64),
}  # fmt: skip
"""The arrays of an `Automaton` with an entry per state, and the value of a new state; ``base`` is the state itself."""


def _unset(name: str, size: int) -> NDArray[Any]:
    unset, kind = _PER_STATE[name]
    return np.arange(size, dtype=kind) if name == "base" else np.full(size, unset, kind)


def _views(arrays: Automaton) -> tuple[memoryview, ...]:
    """The arrays that are written when edges are added."""
    written = (arrays.low, arrays.high, arrays.target, arrays.first, arrays.count, arrays.mode)
    return tuple(map(memoryview, written))  # type: ignore[arg-type]


_RAW_MASK = sum(1 << byte for low, high in RAW_BYTES for byte in range(low, high + 1))

_IN_ESCAPES = b'"\\/0123456789ABCDEFabcdefnrtu'


_looping: dict[Expr, bool] = {}


def _loops(expr: Expr) -> bool:
    """Does the language repeat without a small bound, so that its states are met again and effects worth keeping?"""
    found = _looping.get(expr)
    if found is None:
        match expr.kind:
            case Kind.REPEAT:
                body, _, high = expr.parts
                found = high is None or cast(int, high) >= 8 or _loops(cast(Expr, body))
            case Kind.COMPLEMENT | Kind.RECURSION:
                found = True
            case Kind.CONCAT | Kind.ALTERNATION | Kind.INTERSECTION:
                found = any(_loops(cast(Expr, part)) for part in expr.parts)
            case Kind.SWITCH if not is_listed(expr):
                found = any(_loops(target) for _, _, target in cast("tuple[tuple[int, int, Expr], ...]", expr.parts[0]))
            case _:
                found = False
        _looping[expr] = found
    return found


def _is_common(key: object) -> bool:
    """Is this the run of a class without a bound (white space, digits, any text), which every grammar has?"""
    if isinstance(key, Expr) and key.kind is Kind.JSON_STRING:
        key = key.parts[0]
    return isinstance(key, Expr) and key.kind is Kind.REPEAT and key.parts[2] is None


def _repeats_at_head(key: object) -> bool:
    if not isinstance(key, Expr):
        return False
    if key.kind is Kind.JSON_STRING:
        key = cast(Expr, key.parts[0])
    head = cast(Expr, key.parts[0]) if key.kind is Kind.CONCAT else key
    return head.kind is Kind.REPEAT and head.parts[2] is None
