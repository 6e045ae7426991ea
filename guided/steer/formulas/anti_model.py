"""Frustratingly simple decoding: what a model of the text so far, the anti-model, expects is penalised.

Yang et al. 2023, arXiv 2305.12675.  The score is ``(1 - alpha) p(v) - alpha q(v)`` on the candidates, which is the
formula of `guided.steer.formulas.history.contrastive_search` with the anti-model's ``q`` as the similarity.  Details
that the paper leaves open are those of the authors' code; its lower penalty for stop words is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["anti_ngrams", "anti_vectors"]


def anti_ngrams(tokens: NDArray[np.int64], candidates: Sequence[int], n: int, smoothing: float = 0.9) -> list[float]:
    """For each candidate, what the smoothed n-grams of ``tokens`` expect of it: between 0 and 1.

    From the longest context of ``n - 1`` tokens down to none: of what is left of the weight (1 at first), an order
    that has seen the candidate after its context takes the share ``smoothing`` and gives ``count / (total + 1)`` for
    it; the order without context gives ``count / total`` for all that is left.  Nothing in texts shorter than
    ``n - 1``.  Cost: ``O(n len(tokens))``.
    """
    length = len(tokens)
    left = np.ones(len(candidates))
    found = np.zeros(len(candidates))
    if length < n - 1:
        return [0.0] * len(candidates)
    for order in range(n - 1, -1, -1):
        places = np.arange(order, length)
        for back in range(1, order + 1):
            places = places[tokens[places - back] == tokens[length - back]]
        followers = tokens[places]
        counts = np.array([np.count_nonzero(followers == candidate) for candidate in candidates])
        seen = counts > 0
        share = smoothing * counts / (len(followers) + 1) if order else counts / max(len(followers), 1)
        found += np.where(seen, left * share, 0.0)
        left = np.where(seen, left * (1 - smoothing), left)
    return [float(value) for value in found]


def anti_vectors(
    states: torch.Tensor, tokens: Sequence[int], candidates: torch.Tensor, n: int, *, width: int
) -> torch.Tensor:
    """For each candidate, how much the text's end resembles a place after which it stood: between 0 and 1, ``[k]``.

    ``states`` (``[t, d]``) are hidden states of the last ``t`` of ``tokens``, the place of the next token included;
    ``n - 1`` of them side by side are a place, and resemblance is the greatest cosine, no less than 0.  ``width`` is
    the number of ids.
    """
    size = n - 1
    penalty = states.new_zeros(width)
    if len(states) <= size:
        return penalty[candidates]
    places = states.unfold(0, size, 1).flatten(1)
    places = torch.nn.functional.normalize(places, dim=-1)
    followers = torch.tensor(tokens[len(tokens) - len(places) + 1 :], device=states.device)
    resemblance = places[:-1] @ places[-1]
    return penalty.scatter_reduce(0, followers, resemblance, "amax").clamp(0, 1)[candidates]
