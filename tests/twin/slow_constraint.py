"""The slow, obvious twin of a compiled constraint: masks by trying every token on the Earley twin, budgets by search.

States are interned by what the recogniser can still do, so that equal futures are one int and the search for the
nearest end is finite; everything else is brute force.  Keep vocabularies and counted repetitions small.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.errors import LimitError
from guided.grammar.ir import Grammar
from guided.vocab import Vocabulary
from tests.twin.earley import Recogniser


class SlowConstraint:
    """Implements `guided.constraint.protocol.Constrains` for a grammar without a lexer."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self.grammar = grammar
        self.vocabulary = vocabulary
        first = Recogniser(grammar)
        self._table, self._root = first.table, first.start
        self._keys: dict[object, int] = {}
        self._columns: list[tuple[frozenset, ...]] = [(), ()]
        self._flight: list[frozenset] = [frozenset(), frozenset()]
        self._accepting = [False, True]
        self._byte_steps: dict[tuple[int, int], int] = {}
        self._masks: dict[int, NDArray[np.bool_]] = {}
        self._shortest: dict[int, int] = {}
        self.end = 1
        self.start = self._intern(first)
        assert self.start, "the language is empty"

    def _intern(self, recogniser: Recogniser) -> int:
        """The int for what this recogniser can still do: only columns that something in flight can return to count."""
        if not recogniser.alive:
            return 0
        waiting = {
            at: [item for item in column if item[2] < len(item[1]) and isinstance(item[1][item[2]], int)]
            for at, column in enumerate(recogniser.columns)
        }
        needed: set[int] = {0}
        work = [item[3] for _, item in recogniser.flight]
        while work:
            origin = work.pop()
            if origin not in needed:
                needed.add(origin)
                work.extend(item[3] for item in waiting[origin])
        number = {origin: i for i, origin in enumerate(sorted(needed))}

        def moved(item: tuple) -> tuple:
            return (*item[:3], number[item[3]])

        columns = tuple(frozenset(moved(item) for item in waiting[at]) for at in sorted(needed))
        flight = frozenset((expr, moved(item)) for expr, item in recogniser.flight)
        key = (columns, flight, recogniser.accepting)
        state = self._keys.get(key)
        if state is None:
            state = self._keys[key] = len(self._columns)
            self._columns.append(columns)
            self._flight.append(flight)
            self._accepting.append(recogniser.accepting)
        return state

    def _step(self, state: int, byte: int) -> int:
        if state <= 1:
            return 0
        key = (state, byte)
        if key not in self._byte_steps:
            recogniser = object.__new__(Recogniser)
            recogniser.table, recogniser.start = self._table, self._root
            recogniser.columns = [set(column) for column in self._columns[state]]
            recogniser.flight = set(self._flight[state])
            self._byte_steps[key] = self._intern(recogniser.feed(bytes([byte])))
        return self._byte_steps[key]

    def advance_bytes(self, state: int, data: bytes) -> int:
        for byte in data:
            state = self._step(state, byte)
            if not state:
                return 0
        return state

    def advance(self, state: int, token: int) -> int:
        if token in self.vocabulary.eos_ids:
            return self.end if self.is_accepting(state) else 0
        data = self.vocabulary.token_bytes(token)
        return self.advance_bytes(state, data) if data and state != self.end else 0

    def allowed(self, state: int) -> NDArray[np.bool_]:
        """``bool[vocabulary.size]``: every token tried."""
        if state not in self._masks:
            self._masks[state] = np.array([self.advance(state, t) != 0 for t in range(self.vocabulary.size)])
        return self._masks[state]

    def fill_mask(self, state: int, row: NDArray[np.uint32]) -> None:
        self._pack(self.allowed(state), row)

    def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        allowed = self.allowed(state).copy()
        for token in np.flatnonzero(allowed).tolist():
            after = self.advance(state, token)
            needs = 1 if after == self.end else 2 + self.shortest_completion(after)
            allowed[token] = needs <= budget
        if not allowed.any():
            raise LimitError(f"the shortest completion does not fit in {budget} tokens")
        self._pack(allowed, row)

    def _pack(self, allowed: NDArray[np.bool_], row: NDArray[np.uint32]) -> None:
        row[:] = 0
        packed = np.packbits(allowed, bitorder="little")
        row.view(np.uint8)[: packed.size] = packed

    def is_accepting(self, state: int) -> bool:
        return self._accepting[state]

    def forced(self, state: int) -> bytes:
        found = bytearray()
        while state > 1 and not self._accepting[state]:
            nexts = [byte for byte in range(256) if self._step(state, byte)]
            if len(nexts) != 1:
                break
            found.append(nexts[0])
            state = self._step(state, nexts[0])
        return bytes(found)

    def shortest_completion(self, state: int) -> int:
        assert state, "dead"
        if state in self._shortest:
            return self._shortest[state]
        seen, layer, distance = {state}, [state], 0
        while not any(self._accepting[s] for s in layer):
            following = set()
            for s in layer:
                for token in np.flatnonzero(self.allowed(s)).tolist():
                    following.add(self.advance(s, token))
            layer = sorted(following - seen)
            assert layer, "a dead end: the vocabulary cannot spell any completion"
            seen |= following
            distance += 1
        self._shortest[state] = distance
        return distance


def reference_generate(constraint, next_scores, budget: int | None = None, limit: int = 200) -> list[int]:
    """Greedy decoding as the definition says it: score, forbid, take the best; until an end-of-text id or ``limit``.

    ``next_scores(generated: list[int]) -> float[width]``; ids at or above ``vocabulary.size`` are forbidden.
    """
    vocabulary = constraint.vocabulary
    state, generated = constraint.start, []
    while len(generated) < limit:
        row = np.zeros(vocabulary.n_words, np.uint32)
        if budget is None:
            constraint.fill_mask(state, row)
        else:
            constraint.fill_budget_mask(state, row, budget - len(generated))
        scores = np.array(next_scores(generated), dtype=np.float64)
        for token in range(len(scores)):
            if token >= vocabulary.size or not int(row[token >> 5]) >> (token & 31) & 1:
                scores[token] = -np.inf
        token = int(scores.argmax())
        generated.append(token)
        state = constraint.advance(state, token)
        assert state, "the mask allowed what advance refuses"
        if state == constraint.end:
            break
    return generated
