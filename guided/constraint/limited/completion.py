"""Ending in time with limited texts: the inner machine's shortest text in few enough tokens, else another."""

from __future__ import annotations

import heapq
import weakref

from guided import tokenset
from guided.constraint.engine.completion import Completions
from guided.constraint.limited.reading import LimitedReading
from guided.errors import LimitError
from guided.kernels.data.layout import DEAD

__all__ = ["LimitedCompletions"]


class LimitedCompletions(Completions):
    """Short completions of one machine's states."""

    def __init__(self, machine: LimitedReading) -> None:
        super().__init__(machine)  # type: ignore[arg-type]
        self._outer: LimitedReading = weakref.proxy(machine)

    def text(self, state: int) -> bytes:
        """The shortest text after which ``state`` may end."""
        found = self._texts.get(state)
        if found is None:
            found = self._texts[state] = self._text(state)
        return found

    def _text(self, state: int) -> bytes:
        machine = self._outer
        place = machine.place(state)
        if place.whole == DEAD:
            return self._within_token(state)
        natural = self._natural(state)
        return self._search_text(state) if natural is None else natural

    def _natural(self, state: int) -> bytes | None:
        """The inner machine's shortest text, where it keeps the limits."""
        machine = self._outer
        text = machine.inner.completions.text(machine.place(state).whole)
        return text if self._spelled(state, text) is not None else None

    def _within_token(self, state: int) -> bytes:
        """The shortest text of a state in which no token has ended."""
        machine = self._outer
        found: list[tuple[int, bytes]] = []
        for first, node, begun in machine.begun(state):
            for token in machine.ways(first, node).tolist():
                after = machine.advance_token(first, token)
                text = machine.spelled(token)[begun:] + self.text(after)
                found.append((len(text), text))
        return min(found)[1]

    def _search_text(self, state: int) -> bytes:
        """Token by token, the shortest text first, the first in byte order among equals.

        From where the inner machine's shortest text keeps the limits, nothing is shorter.
        """
        machine = self._outer
        queue: list[tuple[int, bytes, int, int]] = [(machine.cost(state), b"", state, 0)]
        seen: set[int] = set()
        while queue and len(seen) <= machine.limits.search_states:
            _, text, at, ended = heapq.heappop(queue)
            if ended:
                return text
            if at in seen:
                continue
            seen.add(at)
            rest = self._natural(at)
            if rest is not None:
                heapq.heappush(queue, (len(text) + len(rest), text + rest, at, 1))
                continue
            for token in tokenset.ids(machine.mask(at)).tolist():
                after = machine.advance_token(at, token)
                if after not in seen:
                    longer = text + machine.spelled(token)
                    heapq.heappush(queue, (len(longer) + machine.cost(after), longer, after, 0))
        raise LimitError(
            f"no end of the text was found within {machine.limits.search_states} states of this one",
            remedy="Generate without a token budget, or pass Limits(search_states=...).",
        )

    def _spelled(self, state: int, text: bytes) -> list[int] | None:
        """As `Completions._spelled`, in the fewest tokens that keep the limits."""
        machine = self._outer
        found = machine.spell(text)
        at = state
        for token in found:
            at = machine.advance_token(at, token)
            if at == DEAD:
                return machine.fewest(state, text)
        return found if machine.is_accepting(at) else machine.fewest(state, text)

    def tokens(self, state: int) -> list[int]:
        """The fewest tokens that spell `text`; where another end was found nearer, to that."""
        found = self._nearest.get(state)
        if found is None:
            if self._outer.place(state).whole == DEAD:
                return self._outer.spell(self.text(state))
            path = self._spelled(state, self.text(state))
            found = self._search_tokens(state) if path is None else self._kept(state, path)
        return found

    def _kept(self, state: int, path: list[int]) -> list[int]:
        """Remember a way to the end for all states on it; where there is a nearer end from one, the way to that."""
        states = [state]
        for token in path:
            states.append(self._outer.advance_token(states[-1], token))
        rest: list[int] = []
        for at in reversed(range(len(states))):
            known = self._nearest.get(states[at])
            if known is not None and len(known) <= len(rest):
                rest = known
            self._nearest[states[at]] = rest
            if at:
                rest = [path[at - 1], *rest]
        return self._nearest[state]
