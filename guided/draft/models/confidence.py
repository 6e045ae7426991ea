"""`Confidence`: the probability below which a draft model's own token is not worth going on from, fitted as it goes.

DISCO (Mamou et al., 2024, arXiv 2405.04304) in the form without a classifier: of the tokens drafted lately, each with
its probability under the draft and whether the target took it, that threshold is taken which errs at the least cost;
drafting in vain costs one part, stopping too early three.
"""

from __future__ import annotations

from collections import deque

import numpy as np

__all__ = ["Confidence"]


class Confidence:
    """A threshold in [0, 1] that follows the last ``memory`` tokens; 0.4 until there are six and both kinds came.

    >>> from guided.draft import Chain, Confidence
    >>> confidence = Confidence(threshold=0.4)
    >>> confidence.saw([(0.9, True), (0.8, True), (0.5, False), (0.4, False), (0.95, True), (0.3, False)])
    >>> 0.5 <= confidence.threshold <= 0.8, Chain(8, confidence).confidence is confidence  # given to a chain
    (True, True)
    """

    def __init__(self, threshold: float = 0.4, *, memory: int = 500, cost_of_stopping: float = 3.0) -> None:
        self.threshold = threshold
        self.cost_of_stopping = cost_of_stopping
        self._seen: deque[tuple[float, bool]] = deque(maxlen=memory)

    def saw(self, seen: list[tuple[float, bool]]) -> None:
        """Tokens that were verified: their probability under the draft, and whether they were accepted."""
        self._seen.extend(seen)
        if not seen or len(self._seen) < 6:
            return
        shares = np.array([share for share, _ in self._seen])
        accepted = np.array([taken for _, taken in self._seen])
        if accepted.all() or not accepted.any():
            return
        cuts = np.unique(np.append(shares, 1.0))
        # Going on at a share of at least the cut: in vain where it was refused, missed where accepted ones lie below.
        vain = (~accepted)[None] & (shares[None] >= cuts[:, None])
        missed = accepted[None] & (shares[None] < cuts[:, None])
        cost = vain.sum(1) / (~accepted).sum() + self.cost_of_stopping * missed.sum(1) / accepted.sum()
        self.threshold = float(cuts[int(cost.argmin())])
