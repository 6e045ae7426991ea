"""`Goodput`: as many draft nodes as give the most tokens a second, by what passes and drafts were seen to cost.

The time of a pass is kept by the positions that it computes over all rows, so that large batches, where every position
costs, draft less than single rows, where they are nearly free.  What drafts give is kept by their number of nodes.  No
drafting is one of the choices: where drafts are refused it wins, and drafting is tried again ever more rarely.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from guided.draft.policy import Round
from guided.errors import GuidedError

__all__ = ["Goodput"]

FADE = 0.9
"""The weight of what was known against one new round: some ten rounds are remembered."""
FIRST_PAUSE = 8
"""Rounds without drafts after the first refusal; each further one doubles it."""
LONGEST_PAUSE = 512
PROBE = 16
"""Rounds between trials of a length beside the best one."""
LEAST_ROUNDS = 3
"""Rounds of one choice before it is judged: one may be an outlier."""


@dataclass
class _Choice:
    """What one number of nodes was seen to give and to cost."""

    rounds: int = 0
    accepted: float = 0.0
    seconds: float = 0.0
    """Of one round: drafting for all rows, and the pass."""

    def add(self, accepted: float, seconds: float) -> None:
        if not self.rounds:
            self.accepted, self.seconds = accepted, seconds
        else:
            keep = min(FADE, self.rounds / (self.rounds + 1))
            self.accepted = keep * self.accepted + (1 - keep) * accepted
            # A pass that was interrupted says nothing of the next: outliers count as thrice the usual.
            self.seconds = keep * self.seconds + (1 - keep) * min(seconds, 3 * self.seconds)
        self.rounds += 1

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return (1.0 + self.accepted) / self.seconds if self.seconds > 0 else 0.0


class Goodput:
    """Chooses among ``lengths`` for each size of batch by measured tokens a second; 0 is always among them.

    A round counts for the length that was allowed, also where fewer nodes came to mind.
    """

    def __init__(self, lengths: Sequence[int] = (4, 8, 16, 32)) -> None:
        if min(lengths, default=0) < 1:
            raise GuidedError(
                f"{list(lengths)} are no lengths to choose from", remedy="Give numbers of at least 1; 0 is added."
            )
        self.lengths = (0, *sorted(set(lengths)))
        self._choices: dict[int, dict[int, _Choice]] = defaultdict(lambda: {n: _Choice() for n in self.lengths})
        """By size of batch, in powers of two, and number of nodes."""
        self._now: dict[int, int] = {}
        """The choice for each size."""
        self._pause: dict[int, int] = defaultdict(lambda: FIRST_PAUSE)
        self._since: dict[int, int] = defaultdict(int)

    def budget(self, row: int, batch: int) -> int:
        """The present choice for batches of this size."""
        return self._now.setdefault(_size(batch), self.lengths[len(self.lengths) // 2])

    def saw(self, rounds: list[Round]) -> None:
        """Enter what the pass gave, and choose anew."""
        if not rounds:
            return
        size = _size(rounds[0].batch)
        now = self._now.setdefault(size, self.lengths[len(self.lengths) // 2])
        n = len(rounds)
        drafting = sum(one.draft_seconds for one in rounds)
        self._choices[size][now].add(sum(one.accepted for one in rounds) / n, rounds[0].model_seconds + drafting)
        self._now[size] = self._next(size, now)

    def _next(self, size: int, played: int) -> int:
        choices = self._choices[size]
        self._since[size] += 1
        if played and choices[played].rounds < LEAST_ROUNDS:
            return played
        if not choices[0].rounds:
            return 0
        known = {n: choice.rate for n, choice in choices.items() if choice.rounds}
        best = max(known, key=lambda n: known[n])
        if not best:
            return self._rested(size, played)
        self._pause[size] = FIRST_PAUSE
        # What texts are like changes, and what was never tried has no rate.
        place = self.lengths.index(best)
        around = [n for n in self.lengths[max(1, place - 1) : place + 2] if n != best]
        if around and self._since[size] % PROBE == 0:
            return around[(self._since[size] // PROBE) % len(around)]
        return best

    def _rested(self, size: int, played: int) -> int:
        """No drafting is best: try the shortest draft after a pause, which doubles each time it does not pay."""
        if played:
            self._pause[size] = min(2 * self._pause[size], LONGEST_PAUSE)
            self._since[size] = 0
            return 0
        return self.lengths[1] if self._since[size] >= self._pause[size] else 0

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""


def _size(batch: int) -> int:
    return max(0, batch - 1).bit_length()
