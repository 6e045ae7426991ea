"""Tokens refused where what is being read may become a duplicate: a walk over the trie as long as it may."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import Mode, Text
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.steps import Steps
from guided.kernels.data.layout import DEAD

__all__ = ["TrieWalk"]


class TrieWalk:
    """Follows the trie as long as the text stays consistent with something seen; adds tokens to the lists."""

    def __init__(
        self,
        steps: Steps,
        liveness: Liveness,
        row: NDArray[np.uint32],
        refused: list[int],
        undecided: list[int],
        doubts: bool,
    ) -> None:
        self._steps = steps
        self._liveness = liveness
        self._row = row
        self._texts = steps.tokens
        self._ids = steps.automaton.vocabulary.trie.token_ids
        self._refused = refused
        self._undecided = undecided
        self._doubts = doubts
        self._possible: dict[tuple[int, Text], Collection[int]] = {}
        self._taken: dict[tuple[int, Text, int], tuple[int, Text | None, bool]] = {}
        self._alive: dict[tuple[int, Text], bool] = {}

    def run(self, state: int, text: Text) -> None:
        """Fill the lists with the tokens that begin in a pair."""
        self._begun = (state, text)
        end, first, ids = self._texts.end, self._texts.first, self._ids
        stack = [(0, state, text)]
        while stack:
            parent, at, now = stack.pop()
            children = self._texts.children(parent)
            possible = self._ways(at, now)
            for value in possible if len(possible) < len(children) else children.keys() & possible:
                node = children.get(value)
                if node is None:
                    continue
                after, then, whole = self._step(at, now, value)
                last = end[node]
                if not whole:
                    # Some threads, or all, were dropped, of which the automaton's mask knows nothing.
                    below = self._in_row(ids[first[node] : first[last]])
                    self._refused.extend(below if after == DEAD else self._dead(below))
                elif then is not None:
                    self._judge(stack, node, last, after, then)

    def _ways(self, at: int, now: Text) -> Collection[int]:
        """Bytes that may come, among them all behind which the text is consistent; remembered, as white space loops."""
        found = self._possible.get((at, now))
        if found is None:
            ways = self._steps.collisions.ways_on(now)
            found = self._possible[at, now] = self._steps.next_byte_set(at) if ways is None else ways
        return found

    def _step(self, at: int, now: Text, value: int) -> tuple[int, Text | None, bool]:
        """The pair after a byte, None for a text that is not consistent or not possible; are these all threads?"""
        key = (at, now, value)
        found = self._taken.get(key)
        if found is None:
            steps = self._steps
            # Inside a name, string or number no automaton is needed to see that a byte leads away.
            inside = None if now.mode is Mode.BETWEEN else steps.reader.inside(now, value)
            if inside is not None and not steps.collisions.may_collide(inside):
                found = (at, None, True)
            else:
                after, then = steps.step(at, now, value)
                consistent = after != DEAD and steps.collisions.may_collide(then)
                found = (after, then if consistent else None, after == steps.byte_step(at, value))
            self._taken[key] = found
        return found

    def _judge(self, stack: list[tuple[int, int, Text]], node: int, last: int, after: int, then: Text) -> None:
        """The tokens at a node, behind which the text is consistent, and perhaps those below it."""
        first, ids = self._texts.first, self._ids
        if first[node] < first[node + 1]:
            alive = self._alive.get((after, then))
            if alive is None:
                alive = self._alive[after, then] = self._liveness.alive(after, then)
            if not alive:
                self._refused.extend(self._in_row(ids[first[node] : first[last]]))
                return
            if self._doubts:
                self._undecided.extend(ids[first[node] : first[node + 1]].tolist())
        if last > node + 1:
            if self._matters(after, then, node, last):
                stack.append((node, after, then))
            elif self._doubts:
                self._undecided.extend(ids[first[node] : first[last]].tolist())

    def _in_row(self, tokens: NDArray[np.int32]) -> list[int]:
        """Those that the automaton allows: below an opened container a few of tens of thousands."""
        found: list[int] = tokens[tokenset.are_in(self._row, tokens)].tolist()
        return found

    def _dead(self, tokens: list[int]) -> list[int]:
        return [token for token in tokens if not self._liveness.lives(*self._begun, self._texts.spelled(token))]

    def _matters(self, state: int, text: Text, node: int, last: int) -> bool:
        """Can a token below a node do more than go on in what is open, or in white space between names and items?"""
        texts = self._texts
        if text.mode is Mode.BETWEEN:
            if text.level is not None and text.level.gathers:
                return texts.is_visible_below(node, last)
            return texts.has_quote_below(node, last)
        only = texts.is_digits_below if text.mode is Mode.SCALAR else texts.is_letters_below
        return not (self._liveness.is_uniform(state, text) and only(node, last))
