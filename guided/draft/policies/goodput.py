"""`Goodput`: as many draft nodes as give the most tokens a second, by what passes and drafts were seen to cost.

What a number of nodes costs is measured where it is played: the median of its last rounds, since a machine that does
other things as well makes some rounds long; and more nodes never cost less.  What it gives is known better than that: a
round also says what fewer nodes would have given, namely those accepted nodes that come first in its tree, and where no
more nodes came to mind than were drafted, it says the same of larger numbers.  So numbers are compared on the same
rounds, and a number that was hardly played is tried only where it could be the best: if it cost no more than the next
smaller one, and gave what is known, or as much again as the last doubling did.

No drafting is one of the choices: where drafts are refused it wins, and drafting is tried again ever more rarely.
Passes are kept by the size of the batch: in large ones, where every position costs, rows draft less than alone.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from guided.draft.policies.policy import Round
from guided.errors import GuidedError

__all__ = ["Goodput"]

FADE = 0.93
"""The weight of what was known against one new round: some fourteen rounds are remembered."""
REMEMBERED = 15
"""Rounds of one number of nodes whose median is its cost."""
TRIED = 2
"""Rounds of a number before it is judged: one may be an outlier."""
FIRST_ROUNDS = 8
"""Rounds of the first number before others, unless its first ones accept nothing: what a few rounds accept says little
of how much more many nodes give."""
MARGIN = 1.03
"""How much better than the best known a number must promise to be to be tried."""
FIRST_PAUSE = 8
"""Rounds without drafts after the first refusal; each further one doubles it."""
LONGEST_PAUSE = 512
PROBE = 16
"""Rounds between trials of a number beside the best one: of the next larger, which says what all smaller ones would
have given, and every fourth time of the next smaller, whose cost may have changed."""


@dataclass
class _Arm:
    """What one number of nodes was seen to give and to cost."""

    known: float = 0.0
    """Rounds that said what it gives, those long ago counting less."""
    accepted: float = 0.0
    """Nodes of a row and round, of those about which the constraint left a choice."""
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """Of rounds that were played with it: drafting for all rows, and the pass."""

    def gives(self, accepted: float) -> float:
        """Enter what a round gave; by how much the mean has changed."""
        change = max(1 - FADE, 1 / (self.known + 1)) * (accepted - self.accepted)
        self.accepted += change
        self.known += 1
        return change


class Goodput:
    """Chooses among ``lengths`` for each size of batch by measured tokens a second; 0 is always among them.

    Raises `GuidedError` for lengths below 1, or none.

    >>> from guided.draft import Goodput, Round
    >>> policy = Goodput(lengths=(4,))
    >>> for _ in range(40):  # passes over four draft nodes take as long as others, and all drafts are right
    ...     n = policy.budget(0, 1)
    ...     round_ = Round(0, drafted=n, accepted=n, emitted=n + 1, batch=1, draft_seconds=0.0, model_seconds=0.1)
    ...     policy.saw([round_])
    >>> policy.budget(0, 1)
    4
    """

    def __init__(self, lengths: Sequence[int] = (4, 8, 16, 32)) -> None:
        if min(lengths, default=0) < 1:
            raise GuidedError(
                f"{list(lengths)} are no lengths to choose from", remedy="Give numbers of at least 1; 0 is added."
            )
        self.lengths = (0, *sorted(set(lengths)))
        self._sizes: dict[int, _Choice] = {}
        """By size of batch, in powers of two."""

    def budget(self, row: int, batch: int) -> int:
        """The present choice for batches of this size."""
        return self._choice(batch).now

    def saw(self, rounds: list[Round]) -> None:
        """Enter what the pass gave, and choose anew."""
        if rounds:
            self._choice(rounds[0].batch).saw(rounds)

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""

    def _choice(self, batch: int) -> _Choice:
        size = max(0, batch - 1).bit_length()
        if size not in self._sizes:
            self._sizes[size] = _Choice(self.lengths)
        return self._sizes[size]


class _Choice:
    """The number of nodes for batches of one size."""

    def __init__(self, lengths: tuple[int, ...]) -> None:
        self._arms = {n: _Arm() for n in lengths}
        self._lengths = lengths
        self.now = lengths[(len(lengths) + 1) // 2]
        self._since = 0
        """Rounds since the last pause began."""
        self._pause = FIRST_PAUSE

    def saw(self, rounds: Sequence[Round]) -> None:
        """Enter one pass that was made with the present number, and choose the next."""
        self._learn(rounds)
        self._since += 1
        self.now = self._next(self.now)

    def _learn(self, rounds: Sequence[Round]) -> None:
        played = self.now
        drafting = sum(one.draft_seconds for one in rounds)
        self._arms[played].seconds.append(rounds[0].model_seconds + drafting)
        exhausted = played > 0 and all(one.drafted < played for one in rounds)
        change = 0.0
        for n, arm in self._arms.items():
            arm.known *= FADE
            if n == played or (n > played and exhausted):
                change = arm.gives(sum(one.gained for one in rounds) / len(rounds))
            elif 0 < n < played:
                found = [one.first(n) for one in rounds]
                if None not in found:
                    arm.gives(sum(gained or 0 for gained in found) / len(found))
            elif n and arm.known:
                # What came of the first nodes also comes of these, and what they give beyond is as it was.
                arm.accepted += change

    def _next(self, played: int) -> int:
        rounds = len(self._arms[played].seconds)
        if played and rounds < TRIED:
            return played
        if not self._arms[0].seconds:
            return played if rounds < FIRST_ROUNDS and self._arms[played].accepted > 0 else 0
        gains, costs = self._gains(), self._costs()
        rates = {n: (1.0 + gains[n]) / cost if cost > 0 else 0.0 for n, cost in costs.items()}
        best = max(rates, key=lambda n: rates[n])
        promising = self._promising(gains, costs, rates[best])
        if promising is not None:
            return promising
        if not best:
            return self._rested(played)
        self._pause = FIRST_PAUSE
        trial, rest = divmod(self._since, PROBE)
        place = self._lengths.index(best) + (-1 if trial % 4 == 3 else 1)
        return self._lengths[place] if not rest and 0 < place < len(self._lengths) else best

    def _gains(self) -> dict[int, float]:
        """Accepted nodes for each number that something is known of; more nodes never give less."""
        found: dict[int, float] = {}
        most = 0.0
        for n, arm in self._arms.items():
            if arm.known:
                most = found[n] = max(most, arm.accepted)
        return found

    def _costs(self) -> dict[int, float]:
        """Seconds of a round for each number that was played: medians, pooled where more nodes seem to cost less."""
        pools: list[tuple[float, int, list[int]]] = []
        for n, arm in self._arms.items():
            if not arm.seconds:
                continue
            pool = (statistics.median(arm.seconds), len(arm.seconds), [n])
            while pools and pools[-1][0] >= pool[0]:
                below, count, lengths = pools.pop()
                total = count + pool[1]
                pool = ((below * count + pool[0] * pool[1]) / total, total, lengths + pool[2])
            pools.append(pool)
        return {n: cost for cost, _, lengths in pools for n in lengths}

    def _promising(self, gains: dict[int, float], costs: dict[int, float], best: float) -> int | None:
        """The number hardly played that would be best if it cost no more than the next smaller one that was."""
        found, rate = None, MARGIN * best
        known = list(gains)
        for n, arm in self._arms.items():
            cost = max((costs[k] for k in costs if k < n), default=0.0)
            if len(arm.seconds) >= TRIED or cost <= 0:
                continue
            if n in gains:
                gain = gains[n]
            elif len(known) > 1 and known[-1] < n:
                last, before = known[-1], known[-2]
                gain = gains[last] + (gains[last] - gains[before]) * min(1.0, (n - last) / (last - before))
            else:
                continue
            if (1.0 + gain) / cost > rate:
                found, rate = n, (1.0 + gain) / cost
        return found

    def _rested(self, played: int) -> int:
        """No drafting is best: try the shortest draft after a pause, which doubles each time it does not pay."""
        if played:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._since = 0
            return 0
        return self._lengths[1] if self._since >= self._pause else 0
