"""`JointCommits`: commit together as many proposed tokens as are compatible (EPIC).

"EPIC: Efficient and Parallel Inference under CFG Constraints for Diffusion Language Models", arXiv 2606.00722.
Reconstructed from the paper's abstract and its repository's description, since the code at hand lacks the decoder: the
same criterion as of `Intersection`, a subset of the step's candidates that is compatible by a regular cover of the
grammar, then an exact check.  Here the cover is the constraint itself (`Gaps`), so the subset is exact and of the
greatest sum of probabilities, and the check is passed already.  That the candidates left out count as refused is
reconstructed from `Intersection`, with which each of them would be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from guided.diffusion.baselines.intersection import Intersection, pattern_of
from guided.diffusion.baselines.ranking import Ranking
from guided.diffusion.law import Commit, Proposal, Standing

__all__ = ["JointCommits"]


@dataclass(frozen=True, eq=False)
class JointCommits(Intersection):
    """The compatible ones of the ``n`` most confident tokens at once; the others are refused, and the next tried."""

    def commit(self, at: Standing, proposal: Proposal, end: int, n: int, chance: np.random.Generator) -> Commit:
        """Commit ``n`` tokens, those together that fit together."""
        ranking, canvas = Ranking(proposal.probabilities), at.canvas
        pattern = [*at.written, *pattern_of(canvas)]
        first, refused = len(at.written), at.left or 0
        while n and not canvas.known[:end].all() and not self._is_over(pattern[first:]):
            tried = ranking.surest_of(np.flatnonzero(~canvas.known[:end]), n)
            if not tried or refused >= self.resamples:
                return Commit(canvas, refused, self._given_up(at, pattern))
            candidates = {first + place: (token, weight) for place, token, weight in tried}
            taken = self.gaps.heaviest(pattern, candidates)
            for place in taken:
                token = candidates[place][0]
                places = range(place - first, len(canvas)) if token in self._ends else [place - first]
                canvas = canvas.filled(places, [token] * len(places))
            pattern[first:] = pattern_of(canvas)
            n -= len(taken)
            for place in candidates:
                if pattern[place] is None:
                    refused += 1
                    ranking.refuse(place - first)
        return self._left(at, Commit(canvas, refused), pattern)
