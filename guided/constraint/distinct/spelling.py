"""Can the rest of a text be spelled?  For vocabularies that lack single bytes, where a way out by bytes is none.

The machine answers for itself; with a checker beside it the texts that are left may be others.  So the way to an end is
searched token by token: the automaton's own shortest text first, then best first by the automaton's prices.
"""

from __future__ import annotations

import heapq

from guided import tokenset
from guided.constraint.distinct.json_text import Text
from guided.constraint.distinct.steps import Steps
from guided.constraint.limits import Limits
from guided.errors import LimitError
from guided.kernels.data.layout import DEAD, FINISHED


class Spelling:
    """Answers for the pairs of one machine."""

    def __init__(self, steps: Steps, limits: Limits) -> None:
        self._steps = steps
        self._most = limits.search_states
        self._alive: dict[tuple[int, Text | None], bool] = {}

    def alive(self, state: int, text: Text | None) -> bool:
        """Do some tokens lead from here to an end of the text?"""
        if state <= FINISHED:
            return state != DEAD
        found = self._alive.get((state, text))
        if found is None:
            found = self._straight(state, text) or self._search(state, text)
            self._alive[state, text] = found
        return found

    def _ends(self, state: int) -> bool:
        return self._steps.may_end(state)

    def _straight(self, state: int, text: Text | None) -> bool:
        automaton = self._steps.automaton
        whole = automaton.completions.text(state)
        return bool(not whole or automaton.spell(whole)) and self._ends(self._steps.read(state, text, whole)[0])

    def _search(self, state: int, text: Text | None) -> bool:
        automaton = self._steps.automaton
        spelled = automaton.vocabulary.spelled
        first = (state, text)
        parents: dict[tuple[int, Text | None], tuple[int, Text | None] | None] = {first: None}
        queue: list[tuple[int, int, int, Text | None]] = [(0, 0, state, text)]
        while queue:
            _, _, at, now = heapq.heappop(queue)
            if self._alive.get((at, now)) is False:
                continue
            if self._alive.get((at, now)) or self._ends(at):
                pair: tuple[int, Text | None] | None = (at, now)
                while pair is not None:
                    self._alive[pair] = True
                    pair = parents[pair]
                return True
            for token in tokenset.ids(automaton.mask(at)).tolist():
                after = self._steps.read(at, now, spelled(token) or b"")
                if after[0] != DEAD and after not in parents:
                    parents[after] = (at, now)
                    heapq.heappush(queue, (automaton.cost(after[0]), len(parents), *after))
            if len(parents) > self._most:
                raise LimitError(
                    f"whether the vocabulary can spell a text was not decided in {len(parents)} states",
                    remedy="Use a tokenizer that knows every byte, or pass Limits(search_states=...).",
                )
        self._alive.update(dict.fromkeys(parents, False))
        return False
