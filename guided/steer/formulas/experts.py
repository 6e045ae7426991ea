"""Mixtures and products of several models' distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from guided.steer.formulas.combining import combine, log_probabilities

__all__ = ["mixture", "product"]


def mixture(logits: torch.Tensor, others: Sequence[torch.Tensor], weights: Sequence[float]) -> torch.Tensor:
    """``log(w_0 p + sum_k w_k p_k)``: a token is as likely as some expert says (linear pool; Jacobs et al. 1991).

    ``weights`` are non-negative, the first for ``logits``, and are divided by their sum.  The identity (as
    log-probabilities) when the first has all the weight.  The one formula that may bring back an excluded token.
    """
    total = math.fsum(weights)
    parts = [
        log_probabilities(each) + math.log(weight / total)
        for each, weight in zip([logits, *others], weights, strict=True)
        if weight > 0
    ]
    return parts[0] if len(parts) == 1 else torch.logsumexp(torch.stack(parts), dim=0)


def product(logits: torch.Tensor, others: Sequence[torch.Tensor], weights: Sequence[float]) -> torch.Tensor:
    """``w_0 l + sum_k w_k l_k``: a token needs every expert's consent (log pool; Hinton 2002, *Products of Experts*).

    Normalised token by token: the local product, not the product of distributions over whole texts.  The identity (as
    log-probabilities) for weights ``1, 0, 0...``.
    """
    terms = [(weight, log_probabilities(each)) for each, weight in zip(others, weights[1:], strict=True)]
    return combine(weights[0], log_probabilities(logits), *terms)
