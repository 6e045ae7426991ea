"""Formulas that look at the text so far: momentum decoding, contrastive search, GRAD, entropy adaptive decoding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from guided.steer.formulas.combining import spread
from guided.steer.formulas.layers import entropy

__all__ = ["RESISTANCE", "contrastive_search", "entropy_bits", "grad", "momentum", "repetitions", "wants_large"]

RESISTANCE = (0.0, 1.0, 3.0, 4.0, 5.0, 6.0)
"""Momentum decoding's resistance to a repeated n-gram of 0, 1, ... tokens; longer ones are out of the question."""


def repetitions(tokens: NDArray[np.int64], candidates: Sequence[int], longest: int) -> list[int]:
    """For each candidate, the length of the longest n-gram ending in it that ``tokens`` already contains.

    At most ``longest + 1``, which stands for "longer".  Cost: ``O(len(tokens))`` a candidate, vectorised.
    """
    found = []
    for candidate in candidates:
        places = np.flatnonzero(tokens == candidate)
        length = 0
        while places.size and length <= longest:
            length += 1
            # The token before each occurrence must equal the one before the place where the candidate would stand.
            places = places[places >= length]
            if length > len(tokens):
                break
            places = places[tokens[places - length] == tokens[len(tokens) - length]]
        found.append(length)
    return found


def momentum(
    logits: torch.Tensor, candidates: torch.Tensor, repeated: torch.Tensor, *, alpha: float = 0.2
) -> torch.Tensor:
    """``p(v) - alpha f(repeated)`` on the candidates: Lan et al. 2022, arXiv 2212.02175; take the argmax.

    ``repeated`` (integers ``[n, k]``) is that of `repetitions`; ``f`` is `RESISTANCE`, and infinite above it.  Where
    every candidate is out of the question, only those are considered, by ``p``.  ``alpha=0`` is greedy search.
    """
    own = torch.softmax(logits, dim=-1).gather(-1, candidates)
    resistance = torch.tensor([*RESISTANCE, 0.0], dtype=logits.dtype, device=logits.device)
    barred = repeated >= len(RESISTANCE)
    score = own - alpha * resistance[repeated.clamp(max=len(RESISTANCE))]
    excluded = torch.isneginf(logits.gather(-1, candidates))
    if alpha:
        open_ones = ~barred & ~excluded
        excluded = excluded | (barred & open_ones.any(dim=-1, keepdim=True))
    return spread(torch.where(excluded, -math.inf, score), candidates, logits)


def contrastive_search(
    logits: torch.Tensor, candidates: torch.Tensor, similarity: torch.Tensor, *, alpha: float = 0.6
) -> torch.Tensor:
    """``(1 - alpha) p(v) - alpha max_j cos(h_v, h_j)``: Su et al. 2022, arXiv 2202.06417; the argmax.

    ``similarity`` (``[n, k]``) is the greatest cosine of the hidden state after each candidate with those of all tokens
    before, prompt included.  ``alpha=0``, and one candidate, are greedy search.
    """
    own = torch.softmax(logits, dim=-1).gather(-1, candidates)
    score = (1 - alpha) * own - alpha * similarity.to(own.dtype)
    excluded = torch.isneginf(logits.gather(-1, candidates))
    return spread(torch.where(excluded, -math.inf, score), candidates, logits)


def grad(logits: torch.Tensor, evidence: torch.Tensor, *, weight: float = 1.0) -> torch.Tensor:
    """``z + weight u e``, ``e`` a retrieved corpus's transitions from the last token: after *GRAD*, arXiv 2511.03900.

    ``evidence`` (``[n, V]``) is the row of `guided.steer.transitions`, between 0 and 1.  ``u`` is the entropy of ``z``
    over that of the uniform distribution: evidence counts where the model is unsure.  The paper's adaptive weight is
    not public in full; this one is ours.  The identity for ``weight=0`` and an empty graph.
    """
    if not weight:
        return logits.clone()
    unsure = entropy(logits) / math.log(max(logits.shape[-1], 2))
    return logits + weight * unsure * evidence.to(logits.dtype)


def entropy_bits(logits: torch.Tensor) -> torch.Tensor:
    """The entropy of each row's distribution in bits, ``[n]``."""
    return entropy(logits)[:, 0] / math.log(2)


def wants_large(
    entropies: Sequence[float], since_switch: int, now_large: bool, *, threshold: float, least: int
) -> bool:
    """Should the large model score the next token: entropy adaptive decoding (Simonds 2025, arXiv 2502.06833).

    ``entropies`` (bits) are the last ones seen.  The large model is used while their mean is above ``threshold``, and
    there is no switch within ``least`` tokens of the last one.  **Not lossless**: where the small model is sure, its
    distribution is taken.  ``threshold=inf`` is the small model alone.
    """
    if not entropies or since_switch < least:
        return now_large
    return math.fsum(entropies) / len(entropies) > threshold
