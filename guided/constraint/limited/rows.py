"""The masks of states with limited texts.

Far from every limit a mask is the inner machine's: whatever token comes, the bytes that are left of its span, each a
token at most, are few enough.  Near one, threads with as many tokens left are looked at apart from others.  The tokens
that lead to the same state are alike, and those states are few.  Each token is looked at only where all threads of such
a state are in spans, and the bytes to an end are more than the tokens left.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.automata.lexer.distances import minimum
from guided.constraint.limited.reading import ANY, LimitedReading, Place
from guided.constraint.limited.spans import Groups, Thread
from guided.kernels.data.layout import DEAD, FAR

__all__ = ["Rows"]

_KEPT = 512
"""Parts of masks that are remembered: neighbouring texts mostly share them, and each has a row."""
_MOVES = 1 << 15
"""Tokens behind states that are remembered, a few hundred bytes each."""
_OUTSIDE = -1
"""What stands for the tokens left of threads in no span."""


class _Part(NamedTuple):
    """What the tokens do from threads of which all have as many tokens left, or are in no span."""

    row: NDArray[np.uint32]
    """Those that live."""
    priced_apart: tuple[tuple[NDArray[np.int64], tuple[Thread, ...]], ...]
    """Tokens of the row that lead to a state with threads which may lack tokens, and the others of its threads."""
    tried: tuple[int, ...]
    """Tokens of the row that lead to no other threads than such."""


class Rows:
    """The masks of one machine, whose lock must be held."""

    def __init__(self, machine: LimitedReading, are_priced: bool, are_far: bool) -> None:
        """``are_priced``: see `KeptLimits`; ``are_far``: can no span be entered so that its limit has a say at once?"""
        self._machine: LimitedReading = weakref.proxy(machine)
        self._inner, self._base, self._spans = machine.inner, machine.base, machine.spans
        self._are_priced = are_priced and machine.inner.plain
        self._are_far = are_far
        self._parts: dict[tuple[int, int], _Part] = {}
        self._moves: dict[tuple[int, int], tuple[int, int, list[tuple[int, int]]]] = {}
        self._lives: dict[tuple[int, int], bool] = {}

    def is_far(self, place: Place) -> bool:
        """Has no limit a say in which token comes next?"""
        return self._are_far and all(left > self._spans.widest(group) for group, left in place.groups)

    def capped(self, groups: Groups) -> Groups:
        """The groups with no more tokens left than have a say."""
        return tuple((group, min(left, self._spans.widest(group) + 1)) for group, left in groups)

    def mask(self, place: Place, limit: int) -> NDArray[np.uint32]:
        """The tokens after which the text goes on; with ``limit`` >= 0 those after which so many are enough."""
        if place.whole == DEAD:
            return np.zeros(self._machine.vocabulary.n_words, np.uint32)
        if self.is_far(place) and (limit < 0 or self._are_priced):
            return self._inner.mask(place.whole, limit)
        row = np.zeros(self._machine.vocabulary.n_words, np.uint32)
        for state, left in self._kinds(place):
            if left == _OUTSIDE and self._are_far and (limit < 0 or self._are_priced):
                row |= self._inner.mask(state, limit)
                continue
            part = self._part(state, left)
            row |= part.row if limit < 0 else self._near(state, left, part, limit)
        return row

    def need(self, place: Place, limit: int) -> int:
        """So many tokens are enough to end the text, whichever comes next; `FAR` if not known."""
        if not self._are_priced:
            return FAR
        if self.is_far(place):
            return self._inner.need(place.whole, limit)
        found = 0
        for state, left in self._kinds(place):
            found = max(found, self._inner.need(state, limit))
            if left == _OUTSIDE and self._are_far:
                continue
            part = self._part(state, left)
            for _, threads in part.priced_apart:
                found = max(found, self._price(threads))
            for token in part.tried:
                found = max(found, len(self._machine.completions.tokens(self._after(state, left, token))))
        return found

    def ready(self, place: Place) -> list[Thread]:
        """The threads of a place that are in no span, or have tokens left for all bytes to its end."""
        spans, states = self._spans, self._base.states
        found = set(spans.threads(place.outside) if place.outside != DEAD else ())
        for thread, left in spans.most_left(place.groups).items():
            if minimum(states, thread[0]) <= left:
                found.add(thread)
        return sorted(found)

    def _kinds(self, place: Place) -> list[tuple[int, int]]:
        """The states of which a place is made, each with the tokens left."""
        apart = [] if place.outside == DEAD else [(place.outside, _OUTSIDE)]
        return [*apart, *self.capped(place.groups)]

    def _near(self, state: int, left: int, part: _Part, limit: int) -> NDArray[np.uint32]:
        """The tokens of a part after which so many are enough."""
        machine = self._machine
        if not self._are_priced:
            near = [t for t in tokenset.ids(part.row).tolist() if self._is_near(state, left, t, limit)]
            return tokenset.of_ids(near, machine.vocabulary.n_words)
        row = self._inner.mask(state, limit) & part.row
        for tokens, threads in part.priced_apart:
            tokenset.remove_all(row, tokens)
            if self._price(threads) <= limit:
                tokenset.add_all(row, tokens)
        for token in part.tried:
            tokenset.remove(row, token)
            if self._is_near(state, left, token, limit):
                tokenset.add(row, token)
        return row

    def _is_near(self, state: int, left: int, token: int, limit: int) -> bool:
        return self._machine.completions.is_near(self._after(state, left, token), limit)

    def _price(self, threads: tuple[Thread, ...]) -> int:
        """Tokens that are enough to end the text from some threads."""
        costs, states = self._base.token_costs, self._base.states
        return min(costs.of(after) + (minimum(states, inside) if inside else 0) for inside, after, _ in threads)

    def _after(self, state: int, left: int, token: int) -> int:
        """The machine's state behind a token, for the threads of a part alone."""
        machine = self._machine
        whole, outside, groups = self._moved(state, left, token)
        return DEAD if whole == DEAD else machine.state_of(machine.joined(whole, outside, groups))

    def _moved(self, state: int, left: int, token: int) -> tuple[int, int, list[tuple[int, int]]]:
        """As `LimitedReading.moved`, for the threads of a part alone; what is kept knows of no number of tokens."""
        machine = self._machine
        if left == _OUTSIDE:
            return machine.moved(self._place(state, left), machine.spelled(token))
        found = self._moves.get((state, token))
        if found is None:
            if len(self._moves) >= _MOVES:
                self._moves.clear()
            found = self._moves[state, token] = machine.moved(self._place(state, ANY), machine.spelled(token))
        whole, outside, groups = found
        return whole, outside, [(group, left - 1 if most == ANY - 1 else most) for group, most in groups]

    def _place(self, state: int, left: int) -> Place:
        place = self._machine.place(state)
        return place if left == _OUTSIDE else place._replace(outside=DEAD, groups=((state, left),))

    def _part(self, state: int, left: int) -> _Part:
        found = self._parts.get((state, left))
        if found is None:
            if len(self._parts) >= _KEPT:
                self._parts.clear()
            found = self._parts[state, left] = self._make(state, left)
        return found

    def _each_after(self, state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens that the inner machine allows in a state, and its state after each."""
        if self._inner is self._base:
            return self._base.advance_all(state)
        tokens = tokenset.ids(self._inner.mask(state))
        return tokens, np.array([self._inner.advance_token(state, token) for token in tokens.tolist()], np.int64)

    def _make(self, state: int, left: int) -> _Part:
        tokens, states = self._each_after(state)
        lives = np.ones(tokens.size, np.bool_)
        apart: list[tuple[NDArray[np.int64], tuple[Thread, ...]]] = []
        tried: list[int] = []
        for after in np.unique(states).tolist():
            ready, lacking = self._told_apart(after, left)
            if not lacking:
                continue
            of = states == after
            if ready:
                apart.append((tokens[of], ready))
                continue
            for at in np.flatnonzero(of).tolist():
                _, outside, groups = self._moved(state, left, int(tokens[at]))
                if outside != DEAD or any(self.lives(*group) for group in groups):
                    tried.append(int(tokens[at]))
                else:
                    lives[at] = False
        flags = np.zeros(self._machine.vocabulary.size, np.bool_)
        flags[tokens[lives]] = True
        return _Part(tokenset.of_flags(flags), tuple(apart), tuple(tried))

    def _told_apart(self, after: int, left: int) -> tuple[tuple[Thread, ...], bool]:
        """The threads of a state, behind a token, that end their spans in time or are in none; and are there others?

        A thread that has stayed in its span has one token less, one that has entered it one less than the whole, or all
        of them; so it has the least of these, or more.
        """
        states, spans = self._base.states, self._spans
        ready: list[Thread] = []
        lacking = False
        for thread in spans.threads(after):
            most = spans.limit(thread[0])
            if most is not None:
                surely = most - 1 if left == _OUTSIDE else min(left - 1, most)
                if minimum(states, thread[0]) > surely:
                    lacking = True
                    continue
            ready.append(thread)
        return tuple(ready), lacking

    # Can spans be ended in time?

    def lives(self, group: int, left: int) -> bool:
        """Can some thread of a state, all in spans, be out of them within so many tokens, or enter another?"""
        if left <= 0:
            return False
        if self._spans.least(group) <= left:
            return True
        key = (group, left)
        if key not in self._lives:
            self._decide(key)
        return self._lives[key]

    def _decide(self, first: tuple[int, int]) -> None:
        """Decide it for all that is asked: what leads to no end is what is left when all else has been found."""
        leads: dict[tuple[int, int], set[tuple[int, int]]] = {}
        work = [first]
        while work:
            key = work.pop()
            if key in leads or key in self._lives:
                continue
            ways = self._ways(*key)
            if ways is None:
                self._lives[key] = True
            else:
                leads[key] = ways
                work.extend(ways)
        changed = True
        while changed:
            found = [key for key, ways in leads.items() if any(self._lives.get(way) for way in ways)]
            for key in found:
                self._lives[key] = True
                del leads[key]
            changed = bool(found)
        for key in leads:
            self._lives[key] = False

    def _ways(self, group: int, left: int) -> set[tuple[int, int]] | None:
        """Where tokens lead from threads in spans, within spans and in time if at all; None where one leads out."""
        tokens, states = self._each_after(group)
        found: set[tuple[int, int]] = set()
        for after in np.unique(states).tolist():
            if self._spans.parted(after).outside != DEAD or self._told_apart(after, left)[0]:
                return None
            for token in tokens[states == after].tolist():
                _, outside, groups = self._moved(group, left, token)
                if outside != DEAD:
                    return None
                for way in groups:
                    if self._spans.least(way[0]) <= way[1]:
                        return None
                    if way[1] > 0:
                        found.add(way)
        return found
