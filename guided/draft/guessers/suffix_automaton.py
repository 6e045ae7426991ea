"""`SuffixAutomaton`: all substrings of some growing texts, how often each occurred, and what came after it.

The automaton of Blumer et al. (1985), grown token by token, for several texts at once: a state stands for the strings
that end at the same places, at most two states come with a token, and a token costs amortised O(1) steps.  Its states
carry exact counts for strings of at most ``longest`` tokens, which cost one step for each state that such a suffix of
the text is in: at most ``longest``, seldom more than a few.

Flat: five numbers a state, 40 bytes, and a dictionary only for states with several successors.  It knows no drafts;
`guided.draft.Suffixes` makes guesses of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["Match", "SuffixAutomaton", "TextEnd"]

_NONE = -1


class Match(NamedTuple):
    """A string in the automaton: the suffix of ``length`` tokens of what was read, and its state at that time."""

    state: int = 0
    length: int = 0


class TextEnd:
    """Where one text of the automaton ends, so that it can grow; texts may grow in turns."""

    __slots__ = ("counted", "whole")

    def __init__(self) -> None:
        self.whole = 0
        """The state of the whole text."""
        self.counted = Match()
        """Its longest suffix that is counted."""


class SuffixAutomaton:
    """Substrings of texts with their counts; ``longest`` is the most tokens of a string that is asked about.

    >>> automaton = SuffixAutomaton([[1, 2, 3], [2, 3, 4, 2, 3]], longest=4)
    >>> automaton.following(automaton.match([9, 2, 3]))
    (2, {4: 1})
    >>> automaton.count([2, 3]), len(automaton)
    (3, 9)
    """

    def __init__(self, texts: Iterable[Sequence[int]] = (), *, longest: int = 32) -> None:
        self.longest = longest
        self._length = array("q", [0])
        """Tokens of the longest string of each state."""
        self._link = array("q", [_NONE])
        """The state of the longest suffix that also ends elsewhere."""
        self._count = array("q", [0])
        self._token = array("q", [_NONE])
        """The first successor's token; the other successors are in `_others`."""
        self._target = array("q", [_NONE])
        self._others: dict[int, dict[int, int]] = {}
        for text in texts:
            end = TextEnd()
            for token in text:
                self.append(end, token)

    def __len__(self) -> int:
        """Number of states."""
        return len(self._length)

    def append(self, end: TextEnd, token: int) -> None:
        """Let a text grow by a token."""
        end.whole = self._grown(end.whole, token)
        # One more token than matches have: what came after the longest of them is counted too.
        state, length = self._step(end.counted, token, self.longest + 1)
        end.counted = Match(state, length)
        while state > 0:
            self._count[state] += 1
            state = self._link[state]

    def step(self, match: Match, token: int) -> Match:
        """The longest suffix of a matched string and one more token that occurs, of at most ``longest`` tokens."""
        return self._step(match, token, self.longest)

    def match(self, tokens: Sequence[int]) -> Match:
        """The longest suffix of some tokens that occurs, of at most ``longest``."""
        found = Match()
        for token in tokens[-self.longest :]:
            found = self.step(found, token)
        return found

    def count(self, tokens: Sequence[int]) -> int:
        """How often a string of at most ``longest`` tokens, and at least one, occurs."""
        found = self.match(tokens)
        return self._count[self._at(found).state] if found.length == len(tokens) else 0

    def following(self, match: Match) -> tuple[int, dict[int, int]]:
        """The length of a match's longest suffix that has a token after it, and how often each of those came."""
        state, length = self._at(match)
        while state > 0 and self._token[state] == _NONE:
            state = self._link[state]
            length = self._length[state]
        return length, {token: self._count[target] for token, target in self._successors(state)}

    def _at(self, match: Match) -> Match:
        """A match in its present state: strings move to another one when a state is divided."""
        state, length = match
        while state > 0 and self._length[self._link[state]] >= length:
            state = self._link[state]
        return Match(state, length)

    def _step(self, match: Match, token: int, longest: int) -> Match:
        state, length = self._at(match)
        while (target := self._after(state, token)) == _NONE and state > 0:
            state = self._link[state]
            length = self._length[state]
        if target == _NONE:
            return Match()
        return self._at(Match(target, min(length + 1, longest)))

    def _grown(self, last: int, token: int) -> int:
        """The state of a text's string with one more token; ``last`` is that of the text, its longest string."""
        known = self._after(last, token)
        if known != _NONE:  # Another text had the same beginning.
            return known if self._length[known] == self._length[last] + 1 else self._divided(last, token, known)
        new = self._new(self._length[last] + 1, 0)
        state = last
        while state != _NONE and (known := self._after(state, token)) == _NONE:
            self._set(state, token, new)
            state = self._link[state]
        if state != _NONE:
            whole = self._length[known] == self._length[state] + 1
            self._link[new] = known if whole else self._divided(state, token, known)
        return new

    def _divided(self, state: int, token: int, known: int) -> int:
        """Give the strings that will end at one more place a state of their own: those up to a state's, and a token."""
        clone = self._new(self._length[state] + 1, self._link[known])
        self._count[clone] = self._count[known]
        self._token[clone], self._target[clone] = self._token[known], self._target[known]
        if known in self._others:
            self._others[clone] = dict(self._others[known])
        self._link[known] = clone
        while state != _NONE and self._after(state, token) == known:
            self._set(state, token, clone)
            state = self._link[state]
        return clone

    def _new(self, length: int, link: int) -> int:
        self._length.append(length)
        self._link.append(link)
        self._count.append(0)
        self._token.append(_NONE)
        self._target.append(_NONE)
        return len(self._length) - 1

    def _after(self, state: int, token: int) -> int:
        if self._token[state] == token:
            return self._target[state]
        others = self._others.get(state)
        return _NONE if others is None else others.get(token, _NONE)

    def _set(self, state: int, token: int, target: int) -> None:
        if self._token[state] in (_NONE, token):
            self._token[state], self._target[state] = token, target
        else:
            self._others.setdefault(state, {})[token] = target

    def _successors(self, state: int) -> Iterator[tuple[int, int]]:
        if self._token[state] != _NONE:
            yield self._token[state], self._target[state]
        yield from self._others.get(state, {}).items()
