"""`Gaps`: is there a text of a constraint that has some tokens in order, and any number of others in its gaps?

The question of "Constrained Decoding of Diffusion LLMs with Context-Free Grammars" (Mündler et al., arXiv 2508.10111):
whether the grammar intersects the regular language of a partial output, in which a gap is any text of any length.
There it is answered by lexing the known pieces and by the productive triples of grammar and automaton.  Here sets of
states of the constraint are moved along the canvas, and a gap closes them under all tokens: the same answer, without a
lexer, wherever the states are finitely many.  Where a grammar recurs they are not, and `LimitError` says so.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from guided.constraint.protocol import Constrains
from guided.diffusion.lattice import Successors
from guided.errors import LimitError

__all__ = ["Gaps", "Pattern"]

Pattern = Sequence[int | None]
"""A canvas: tokens, and None where none is known.  An end-of-text id ends it; without one the text goes on behind."""

States = frozenset[int]
Trace = tuple[int, "Trace | None"]
"""Tokens or positions so far, the last first."""

_MOST_SETS = 1 << 16
"""Sets of states that are remembered before all are forgotten."""


class Gaps:
    """The answers for one constraint; they are remembered.  For one thread at a time."""

    def __init__(self, constraint: Constrains, most_states: int = 1 << 14) -> None:
        """``most_states`` are those that one gap may reach; `LimitError` where they are more."""
        self.constraint = constraint
        self._successors = Successors.of(constraint)
        self._most_states = most_states
        self._moved: dict[tuple[States, int | None], States] = {}

    def fits(self, pattern: Pattern) -> bool:
        """Has the constraint a text of the pattern?"""
        states: States = frozenset([self.constraint.start])
        for token in pattern:
            if token in self._ends:
                return self._accepts(states)
            states = self._after(states, token)
            if not states:
                return False
        return True

    def shortest(self, pattern: Pattern) -> list[int] | None:
        """The tokens of a shortest text of the pattern, without an end; None where there is none."""
        reached: dict[int, tuple[int, Trace | None]] = {self.constraint.start: (0, None)}
        ended = False
        for token in pattern:
            if token in self._ends:
                ended = True
                break
            if token is None:
                reached = self._flooded(reached)
                continue
            after: dict[int, tuple[int, Trace | None]] = {}
            for state, (n, trace) in reached.items():
                behind = self._advance(state, token)
                if behind and (behind not in after or n + 1 < after[behind][0]):
                    after[behind] = (n + 1, (token, trace))
            reached = after
        if not ended:
            reached = self._flooded(reached)
        whole = [(n, at) for at, (n, _) in reached.items() if self.constraint.is_accepting(at)]
        return _written(reached[min(whole)[1]][1]) if whole else None

    def heaviest(self, pattern: Pattern, candidates: Mapping[int, tuple[int, float]]) -> list[int]:
        """The positions of those ``candidates``, tokens with weights above 0, that fit together and weigh most.

        Exact: sets of states go along the canvas with the candidates taken so far, and a state that several sets hold
        stays in the heaviest.  An end-of-text candidate ends the text whatever is known behind it.
        """
        best: tuple[float, Trace | None] = (-1.0, None)
        layer: list[tuple[float, Trace | None, States]] = [(0.0, None, frozenset([self.constraint.start]))]
        for place, token in enumerate(pattern):
            if token in self._ends:
                return _written(max([best, *((w, t) for w, t, s in layer if self._accepts(s))], key=_weight)[1])
            moved = [(weight, trace, self._after(states, token)) for weight, trace, states in layer]
            if token is None and place in candidates:
                written, more = candidates[place]
                for weight, trace, states in layer:
                    if written not in self._ends:
                        moved.append((weight + more, (place, trace), self._after(states, written)))
                    elif self._accepts(states):
                        best = max(best, (weight + more, (place, trace)), key=_weight)
            layer, seen = [], set[int]()
            for weight, trace, states in sorted(moved, key=_weight, reverse=True):
                if not states <= seen:
                    layer.append((weight, trace, states - seen))
                    seen |= states
        return _written(max([best, *((weight, trace) for weight, trace, _ in layer)], key=_weight)[1])

    @property
    def _ends(self) -> frozenset[int]:
        return frozenset(self.constraint.vocabulary.eos_ids)

    def _accepts(self, states: States) -> bool:
        return any(self.constraint.is_accepting(state) for state in states)

    def _advance(self, state: int, token: int) -> int:
        return self.constraint.advance(state, token) if token < self.constraint.vocabulary.size else 0

    def _after(self, states: States, token: int | None) -> States:
        """The states behind a token, or behind a gap."""
        found = self._moved.get((states, token))
        if found is None:
            if len(self._moved) >= _MOST_SETS:
                self._moved.clear()
            if token is None:
                found = frozenset(self._flooded(dict.fromkeys(states, (0, None))))
            else:
                found = frozenset(self._advance(state, token) for state in states) - {0}
            self._moved[states, token] = found
        return found

    def _flooded(self, reached: Mapping[int, tuple[int, Trace | None]]) -> dict[int, tuple[int, Trace | None]]:
        """All states that tokens lead to from some, each with the fewest; the end of the text is none of them."""
        found = dict(reached)
        ahead = [(n, state) for state, (n, _) in found.items()]
        heapq.heapify(ahead)
        while ahead:
            n, state = heapq.heappop(ahead)
            if n > found[state][0]:
                continue
            edges = self._successors.edges(state)
            for group, behind in zip(edges.groups.tolist(), edges.after.tolist(), strict=True):
                if behind != self.constraint.end and (behind not in found or n + 1 < found[behind][0]):
                    found[behind] = (n + 1, (int(self._successors.tokens(group)[0]), found[state][1]))
                    heapq.heappush(ahead, (n + 1, behind))
            if len(found) > self._most_states:
                raise LimitError(
                    f"a gap reaches more than {self._most_states} states",
                    where="a canvas with gaps of any length",
                    remedy="Use a grammar that does not recur, or guided.diffusion.Constrained.",
                )
        return found


def _weight(entry: tuple[float, Trace | None] | tuple[float, Trace | None, States]) -> float:
    return entry[0]


def _written(trace: Trace | None) -> list[int]:
    found = []
    while trace is not None:
        found.append(trace[0])
        trace = trace[1]
    found.reverse()
    return found
