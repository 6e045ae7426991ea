"""Which tokens of an unbounded run fit within bounds on its length, taken from the survey of the run.

Every character of a text leaves other bounds, so tokens are sorted by length once, and those that fit are a slice of
that order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.constraint.effects.effect_store import EffectStore
from guided.constraint.effects.surveys import Survey
from guided.constraint.effects.token_tries import TokenTries
from guided.kernels.masking.effects import DENSE

__all__ = ["RunLengths"]

Exits = list[tuple[int, int, int, int]]


class RunLengths:
    """The tokens of one survey by the number of characters that they take."""

    def __init__(
        self,
        survey: Survey,
        begun: int,
        left: NDArray[np.int32] | None,
        store: EffectStore,
        tries: TokenTries,
    ) -> None:
        """``begun``: 1 where the run begins inside a character, which is not counted.

        ``left`` are the characters that each token inside must leave room for besides its own.
        """
        self._store = store
        self._tries = tries
        inside = survey.count >= 0
        needed = np.maximum(survey.count - begun, 0)
        if left is not None:
            needed += left
        self._inside, self._up_to = _by_length(survey.kept[inside], needed[inside])
        self._ended, self._ended_up_to = _by_length(survey.kept[~inside], -1 - survey.count[~inside] - begun)
        self._exits = survey.exits
        self._length = survey.exits[:, 3] - begun
        self._lengths: list[int] = (np.flatnonzero(np.bincount(self._length + 1)) - 1).tolist()
        self._ranges: dict[int, Exits] = {}
        self._rows: dict[int, int] = {}

    def add(self, low: int, high: int, state: int, least: int, most: int, bound: int) -> int:
        """Keep the effect of a run of ``least`` to ``most`` characters, of which a token inside may need ``bound``.

        -1: without a bound.
        """
        n = _count(self._up_to, bound)
        first = _count(self._ended_up_to, least - 1) if least else 0
        listed = self._ended[first : max(first, _count(self._ended_up_to, most))]
        mask = -1
        if n > DENSE:
            mask = self._row(n)
        else:
            listed = np.concatenate([self._inside[:n], listed])
        fitting = [length for length in self._lengths if length >= least and (most < 0 or length <= most)]
        exits = [part for length in fitting for part in self._exits_of(length)]
        return self._store.add(low, high, state, listed, exits, mask)

    def _row(self, n: int) -> int:
        """The row of the first so many tokens; it differs little from that of the next bound."""
        found = self._rows.get(n)
        if found is None:
            near = min((0, *self._rows), key=lambda m: abs(m - n))
            differs = self._inside[min(near, n) : max(near, n)]
            found = self._rows[n] = self._store.row(differs, self._rows.get(near, -1))
        return found

    def _exits_of(self, length: int) -> Exits:
        found = self._ranges.get(length)
        if found is None:
            found = self._ranges[length] = self._tries.exit_ranges(self._exits[self._length == length])
        return found


def _by_length(tokens: NDArray[np.int32], length: NDArray[np.int32]) -> tuple[NDArray[np.int32], list[int]]:
    """Tokens by length, and how many of them have at most none, one, two and so on."""
    if length.size and int(length.max()) < 1 << 15:
        # Numbers of 16 bits are sorted by counting them.
        length = length.astype(np.int16)
    return tokens[np.argsort(length, kind="stable")], np.cumsum(np.bincount(length)).tolist()


def _count(up_to: list[int], length: int) -> int:
    """How many have at most a length; -1: any."""
    if not up_to:
        return 0
    return up_to[length] if 0 <= length < len(up_to) else up_to[-1]
