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

from guided.automata.native import Both, Escapes, Less, Spelling, Then, escape_row
from guided.automata.runs import run_less_words
from guided.errors import LimitError
from guided.grammar.regular.characters import JsonString
from guided.grammar.regular.derivative import edges as expr_edges
from guided.grammar.regular.expr import EPSILON, Expr, Kind
from guided.kernels.layout import Automaton

MAX_EDGES = 8_000_000
"""Edges (7 bytes each) after which new constraints get a fresh table: about 60 MB."""

MEASURED = 512
"""States explored to bound how far the end of a match can be; beyond, token effects are not used under a budget."""

_FAR = 1 << 28
"""Farther than any budget."""

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


class NativeState(Protocol):
    """A state whose edges lead to table ids; see `guided.automata.native`."""

    @property
    def loops(self) -> bool:
        """Will the state be met again and again inside one terminal?"""

    def tag(self, table: StateTable) -> int:
        """Terminal that may end here, or -1."""

    def edges(self, table: StateTable) -> list[tuple[int, int, int]]:
        """Sorted, disjoint byte ranges and their target ids."""


class StateTable:
    """Flat arrays of lexer states; ids are stable, arrays are replaced when they grow (old views stay right)."""

    _current: StateTable | None = None
    _swap = threading.Lock()

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 0
        """Changes whenever an array is replaced, so that holders of `arrays` know to fetch them again."""
        self.arrays = Automaton(
            first=np.full(1024, -1, np.int32),
            count=np.zeros(1024, np.int32),
            low=np.zeros(4096, np.uint8),
            high=np.zeros(4096, np.uint8),
            target=np.zeros(4096, np.int32),
            tag=np.full(1024, -1, np.int32),
            pending=np.zeros(1024, np.int32),
            also=np.zeros(1024, np.int32),
            loops=np.zeros(1024, np.uint8),
            minimum=np.full(1024, -1, np.int32),
            widest=np.full(1024, -1, np.int32),
        )
        self.keys: list[object] = [None]
        self.n_edges = 0
        self.arrays.first[0] = 0
        self._ids: dict[object, int] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._less: dict[tuple[int, int], int] = {}

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

    def _new(self, key: Expr | LexerState) -> int:
        state = self._ids[key] = self._allocate(key)
        if isinstance(key, Expr):
            if key.nullable:
                self.arrays.tag[state] = 0
            if key is EPSILON:
                self.arrays.first[state] = 0
            else:
                self._lay(state, key)
        else:
            self.arrays.tag[state] = key.tag
            if key.pending is not None:
                pending = self.add(key.pending)
                self.arrays.pending[state] = pending
            if key.also is not None:
                also = self.add(key.also)
                self.arrays.also[state] = also
        return state

    def _lay(self, state: int, key: Expr) -> None:
        """Give shapes that need no derivatives their native form."""
        head, tail = cast("tuple[Expr, Expr]", key.parts) if key.kind is Kind.CONCAT else (key, EPSILON)
        if head.kind is Kind.LITERAL:
            self._chain(state, cast(bytes, head.parts[0]), tail)
        elif head.kind is Kind.SPELLING:
            encoding, texts = cast("tuple[JsonString, tuple[str, ...]]", head.parts)
            after = self.row(self.add(tail))
            if tail is EPSILON:
                self.keys[state] = Spelling(encoding, texts, 0, len(texts), 0, -1, self.add(EPSILON))
            elif len(after) == 1 and after[0][0] == after[0][1] == ord('"') and not tail.nullable:
                self.keys[state] = Spelling(encoding, texts, 0, len(texts), 0, ord('"'), after[0][2])
        elif head.kind is Kind.INTERSECTION and (found := run_less_words(key)) is not None:
            run, finite = found
            self.keys[state] = pair = Less(self.add(run.expr), self.add(finite))
            self.arrays.tag[state] = pair.tag(self)
            self._less[pair.base, pair.words] = state

    def new(self, key: NativeState | tuple[str, int]) -> int:
        """A native state; a tuple ``(character, state)`` is an escape of one character, then that state."""
        state = self._allocate(key)
        if not isinstance(key, tuple):
            self.arrays.tag[state] = key.tag(self)
        return state

    def new_row(self, row: list[tuple[int, int, int]]) -> int:
        """A state with known edges in which no match ends."""
        state = self._allocate(None)
        self._write(state, row)
        return state

    def _write(self, state: int, row: Sequence[tuple[int, int, int]]) -> None:
        at = self._reserve(len(row))
        arrays = self.arrays
        for i, (low, high, target) in enumerate(row, at):
            arrays.low[i] = low
            arrays.high[i] = high
            arrays.target[i] = target
        arrays.count[state] = len(row)
        arrays.first[state] = at

    def _allocate(self, key: object) -> int:
        state = len(self.keys)
        if state + 1 > self.arrays.first.shape[0]:
            size = 2 * state
            old = self.arrays
            grown: dict[str, NDArray[Any]] = {
                "first": np.full(size, -1, np.int32),
                "count": np.zeros(size, np.int32),
                "tag": np.full(size, -1, np.int32),
                "pending": np.zeros(size, np.int32),
                "also": np.zeros(size, np.int32),
                "loops": np.zeros(size, np.uint8),
                "minimum": np.full(size, -1, np.int32),
                "widest": np.full(size, -1, np.int32),
            }
            for name, array in grown.items():
                array[:state] = getattr(old, name)[:state]
            self.arrays = old._replace(**grown)
            self.version += 1
        self.keys.append(key)
        return state

    def _chain(self, state: int, data: bytes, last: Expr) -> None:
        """Lay down a literal as consecutive states that end in ``last``: no derivatives, no expressions between."""
        length = len(data)
        path = [state, *(self._allocate(None) for _ in range(length - 1)), self.add(last)]
        at = self._reserve(length)
        arrays = self.arrays
        arrays.low[at : at + length] = arrays.high[at : at + length] = np.frombuffer(data, np.uint8)
        arrays.target[at : at + length] = path[1:]
        places = np.asarray(path[:-1])
        arrays.first[places] = np.arange(at, at + length)
        arrays.count[places] = 1

    def _reserve(self, n: int) -> int:
        at = self.n_edges
        if at + n > self.arrays.low.shape[0]:
            size = max(2 * self.arrays.low.shape[0], at + n)
            old = self.arrays
            grown = {name: np.zeros(size, getattr(old, name).dtype) for name in ("low", "high", "target")}
            for name, array in grown.items():
                array[:at] = getattr(old, name)[:at]
            self.arrays = old._replace(**grown)
            self.version += 1
        self.n_edges = at + n
        return at

    def expand(self, state: int) -> None:
        """Find the edges of a state."""
        with self.lock:
            if self.arrays.first[state] >= 0:
                return
            key = self.keys[state]
            if isinstance(key, Expr):
                row = [(low, high, self.add(target)) for low, high, target in expr_edges(key)]
                loops = _loops(key)
            elif isinstance(key, tuple):
                row = escape_row(self, *key)
                loops = False
            elif isinstance(key, (Both, Less, Spelling, Escapes, Then)):
                row = key.edges(self)
                loops = key.loops
            else:
                row = [(low, high, self.add(target)) for low, high, target in cast(LexerState, key).edges()]
                loops = True
            width = sum(high - low + 1 for low, high, _ in row) if loops else 0
            self.arrays.loops[state] = width >= _WIDE or (loops and _repeats_at_head(key))
            self._write(state, row)

    def explore(self, state: int, limit: int) -> None:
        """Expand what is reachable from a state, nearest first, until ``limit`` states are known."""
        with self.lock:
            seen = {state}
            queue = [state]
            for item in queue:
                self.expand(item)
                first = int(self.arrays.first[item])
                for target in self.arrays.target[first : first + int(self.arrays.count[item])].tolist():
                    if target not in seen and len(seen) < limit:
                        seen.add(target)
                        queue.append(target)

    def forbids_end(self, obligation: int) -> bool:
        """Would the text break this obligation by ending here?"""
        key = self.keys[obligation]
        if isinstance(key, Both):
            return self.forbids_end(key.first) or self.forbids_end(key.second)
        return bool(getattr(key, "violated_at_end", False))

    def row(self, state: int) -> list[tuple[int, int, int]]:
        """The edges of a state, found if need be; none for state 0."""
        if state == 0:
            return []
        self.expand(state)
        first = int(self.arrays.first[state])
        stop = first + int(self.arrays.count[state])
        columns = (self.arrays.low, self.arrays.high, self.arrays.target)
        return list(zip(*(column[first:stop].tolist() for column in columns), strict=True))

    def less(self, base: int, words: int) -> int:
        """The state that reads what ``base`` (a run) does and ``words`` does not (0: nothing is left)."""
        if words == 0 or base == 0:
            return base
        if self.arrays.tag[base] >= 0 and not self.row(base):
            # The run has closed; a word that closed with it takes the match away.
            return 0 if self.arrays.tag[words] >= 0 else base
        found = self._less.get((base, words))
        if found is None:
            found = self._less[base, words] = self.new(Less(base, words))
        return found

    def measure(self, state: int) -> None:
        """Set ``minimum`` and ``widest`` of a state: by exploring what is reachable, up to `MEASURED` states."""
        with self.lock:
            order = [state]
            sources: dict[int, list[int]] = {state: []}
            for item in order:
                if len(order) <= MEASURED:
                    for _, _, target in self.row(item):
                        if target not in sources:
                            sources[target] = []
                            order.append(target)
                        sources[target].append(item)
            arrays = self.arrays
            ends = [item for item in order if arrays.tag[item] >= 0]
            least = dict.fromkeys(ends, 0)
            for item in ends:
                for source in sources[item]:
                    if source not in least:
                        least[source] = least[item] + 1
                        ends.append(source)
            whole = len(order) <= MEASURED
            nearest = least[state] if state in least else self._reach(state)
            self.arrays.minimum[state] = nearest
            self.arrays.widest[state] = max(least.values()) if whole else _FAR

    def minimum(self, state: int) -> int:
        """Fewest bytes from a state to the end of a match; at a start state of a terminal, at least one."""
        if self.arrays.minimum[state] < 0:
            self.measure(state)
        return int(self.arrays.minimum[state])

    def shortest(self, state: int) -> bytes:
        """A shortest text from a state to the end of a match, the first in byte order."""
        text = bytearray()
        left = self.minimum(state)
        while left:
            left -= 1
            byte, state = next((low, target) for low, _, target in self.row(state) if self.minimum(target) == left)
            text.append(byte)
        return bytes(text)

    def _reach(self, state: int) -> int:
        """Bytes on the way from a state to the nearest end of a match, by search without a bound."""
        seen = {state}
        level = [state]
        for distance in range(1 << 30):
            if any(self.arrays.tag[item] >= 0 for item in level):
                return distance
            level = [t for item in level for _, _, t in self.row(item) if t not in seen and not seen.add(t)]  # type: ignore[func-returns-value]
            if not level:
                break
        return _FAR

    def tags(self, state: int) -> list[int]:
        """The terminals in whose match a state may end, found within `MEASURED` states, in ascending order."""
        order = [state]
        seen = {state}
        for item in order:
            if len(order) > MEASURED:
                break
            for _, _, target in self.row(item):
                if target not in seen:
                    seen.add(target)
                    order.append(target)
        return sorted({int(self.arrays.tag[item]) for item in order} - {-1})

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
                found = self._joined[key] = self.new(Both(*key))
            return found


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
            case Kind.SWITCH:
                found = any(_loops(target) for _, _, target in cast("tuple[tuple[int, int, Expr], ...]", expr.parts[0]))
            case _:
                found = False
        _looping[expr] = found
    return found


def _repeats_at_head(key: object) -> bool:
    if not isinstance(key, Expr):
        return False
    head = cast(Expr, key.parts[0]) if key.kind is Kind.CONCAT else key
    return head.kind is Kind.REPEAT and head.parts[2] is None
