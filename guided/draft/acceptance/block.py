"""Block verification: a whole line of drafted tokens is accepted or cut at once, which keeps more of it.

Sun et al. (2024, arXiv 2403.10444), algorithm 2; reconstructed from the paper's text.  Verified one by one, a token
that is refused ends the draft, although what comes after it could have made up for it.  Here the probability of coming
to each place, ``reach``, is carried on over the line, capped at 1; each place has a chance to be the end of what is
kept, and the last one that takes it is.  The output's law is the target's, and in expectation no verification of such a
line keeps more tokens (the paper's theorem 2); for one token it is the usual rule.

Only for lines: how trees are verified is in `guided.draft.acceptance.verify`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.draft.proposal import Drawn, Group
from guided.infer.chance import Chance
from guided.infer.distribution import TokenDistribution

__all__ = ["Kept", "verify_block"]


@dataclass(frozen=True)
class Kept:
    """What is kept of a line."""

    n: int
    """Tokens."""
    rest: TokenDistribution | None
    """What the token after them is drawn from; None: the target's own law there, since all was kept."""


def verify_block(chance: Chance, groups: Sequence[Group], targets: Sequence[TokenDistribution]) -> Kept:
    """How much of a line is kept; ``groups`` are its tokens, one each, and ``targets`` the laws before each of them."""
    reaches, stops = [1.0], []
    for place, (group, target) in enumerate(zip(groups, targets, strict=True)):
        law, drawn = _both(group, target)
        if place:
            spare = float(np.maximum(reaches[-1] * law - drawn, 0.0).sum())
            room = spare + 1.0 - reaches[-1]
            # 0 / 0 is where the target's law is the draft's: then nothing later is refused.
            stops.append(spare / room if room > 0 else 0.0)
        (token,) = group.tokens
        reaches.append(min(reaches[-1] * float(law[token]) / float(drawn[token]), 1.0))
    stops.append(reaches[-1])
    for n in range(len(groups), 0, -1):
        share = stops[n - 1]
        if share >= 1.0 or (share > 0.0 and chance.index([1.0 - share, share]) == 1):
            break
    else:
        n = 0
    if n == len(groups):
        return Kept(n, None)
    law, drawn = _both(groups[n], targets[n])
    left = np.maximum(reaches[n] * law - drawn, 0.0)
    if not left.any():  # The laws are equal but for rounding, and what was refused was so by rounding.
        return Kept(n, targets[n])
    with np.errstate(divide="ignore"):
        return Kept(n, TokenDistribution(np.log(left)))


def _both(group: Group, target: TokenDistribution) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The target's law and the draft's over the ids of both."""
    (token,) = group.tokens
    known = 0 if group.probabilities is None else group.probabilities.size
    law, drawn = np.zeros((2, max(target.size, known, token + 1)))
    if target.sum > 0:
        law[: target.size] = target.weights / target.sum
    if group.drawn is Drawn.BY_RULE:
        drawn[token] = 1.0
    else:
        drawn[:known] = group.probabilities
    return law, drawn
