"""`Intersection`: commit a token if the canvas, with gaps of any length, still meets the grammar (Mündler et al.).

"Constrained Decoding of Diffusion LLMs with Context-Free Grammars", arXiv 2508.10111; the order of trials, what an end
does, the bound on refusals and the completion from a word of the intersection are those of the public code
(eth-sri/constrained-diffusion).  `Gaps` says what is decided otherwise there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.diffusion.baselines.gaps import Gaps
from guided.diffusion.baselines.ranking import Ranking, free_proposal
from guided.diffusion.denoiser import Canvas
from guided.diffusion.law import Commit, Proposal, Standing

__all__ = ["Intersection", "pattern_of"]


@dataclass(frozen=True, eq=False)
class Intersection:
    """One token after the other: that of the most confident position, and of the next where it is refused.

    After ``resamples`` refusals in a text, or where no token is left, it is given up.  ``completes``: a text that was
    given up, or whose canvas is full before its end, is the shortest of the grammar that has the canvas's tokens in
    their order; it may be longer than the canvas.  Otherwise it is what is known.
    """

    constraint: Constrains
    pad_id: int | None = None
    resamples: int = 100
    completes: bool = True

    @cached_property
    def gaps(self) -> Gaps:
        """What decides."""
        return Gaps(self.constraint)

    def proposal(self, at: Standing, scores: NDArray[np.float32], chance: np.random.Generator) -> Proposal:
        """The model's own law."""
        return free_proposal(at, scores, self._ends, self.pad_id)

    def commit(self, at: Standing, proposal: Proposal, end: int, n: int, chance: np.random.Generator) -> Commit:
        """Commit ``n`` tokens, each checked after those before it."""
        return self._one_by_one(at, proposal, end, n)

    def _one_by_one(self, at: Standing, proposal: Proposal, end: int, n: int) -> Commit:
        ranking, canvas = Ranking(proposal.probabilities), at.canvas
        pattern = [*at.written, *pattern_of(canvas)]
        first, refused = len(at.written), at.left or 0
        while n and not canvas.known[:end].all() and not self._is_over(pattern[first:]):
            tried = ranking.surest(np.flatnonzero(~canvas.known[:end]))
            if tried is None or refused >= self.resamples:
                return Commit(canvas, refused, self._given_up(at, pattern))
            place, token = tried
            pattern[first + place] = token
            if self.gaps.fits(pattern):
                places = range(place, len(canvas)) if token in self._ends else [place]
                canvas = canvas.filled(places, [token] * len(places))
                pattern[first:] = pattern_of(canvas)
                n -= 1
            else:
                pattern[first + place] = None
                refused += 1
                ranking.refuse(place)
        return self._left(at, Commit(canvas, refused), pattern)

    def _left(self, at: Standing, made: Commit, pattern: list[int | None]) -> Commit:
        """The commit, with the text completed where the last canvas is full and the text is not over."""
        full = None not in pattern and not at.room and not self._ends.intersection(pattern)
        return Commit(made.canvas, made.left, self._given_up(at, pattern)) if full and self.completes else made

    def _given_up(self, at: Standing, pattern: list[int | None]) -> tuple[int, ...]:
        """The tokens of the canvas's text, as it is or completed."""
        whole = self.gaps.shortest(pattern) if self.completes else None
        if whole is None:
            ends = [place for place, token in enumerate(pattern) if token in self._ends]
            whole = [token for token in pattern[: min(ends, default=None)] if token is not None]
        return tuple(whole[len(at.written) :])

    def _is_over(self, pattern: list[int | None]) -> bool:
        """Is there an end, and all before it known?"""
        ends = [place for place, token in enumerate(pattern) if token in self._ends]
        return bool(ends) and None not in pattern[: ends[0]]

    @property
    def _ends(self) -> frozenset[int]:
        return frozenset(self.constraint.vocabulary.eos_ids)


def pattern_of(canvas: Canvas) -> list[int | None]:
    """The canvas's tokens, None where none is known."""
    return [
        token if known else None for token, known in zip(canvas.tokens.tolist(), canvas.known.tolist(), strict=True)
    ]
