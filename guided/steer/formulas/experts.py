"""Mixtures and products of several models' distributions, fixed or chosen token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from guided.steer.formulas.combining import combine, log_probabilities

__all__ = ["domain_mixture", "mixture", "nudged", "product", "routed"]


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

    With an autoregressive reward model and the weights ``1, 1 / beta`` this is GenARM (Xu et al. 2024, arXiv
    2410.08193).  Normalised token by token: the local product, not the product of distributions over whole texts.  The
    identity (as log-probabilities) for weights ``1, 0, 0...``.
    """
    terms = [(weight, log_probabilities(each)) for each, weight in zip(others, weights[1:], strict=True)]
    return combine(weights[0], log_probabilities(logits), *terms)


def domain_mixture(logits: torch.Tensor, others: Sequence[torch.Tensor], log_weights: torch.Tensor) -> torch.Tensor:
    """``log sum_d p(d | x) p_d``: Gururangan et al. 2021, *DEMix Layers*, arXiv 2108.05036.

    Domains weighed by their posterior: ``log_weights`` (``[n, domains]``, the first for ``logits``) are ``log p(d) +
    log p(x | d)``, not normalised.  Where no domain can have written the text the model is taken as it is.  The
    identity where the first domain has all the weight.  A token that comes in excluded stays so.
    """
    lost = torch.isneginf(log_weights.amax(dim=-1, keepdim=True))
    posterior = torch.where(lost, -math.inf, torch.log_softmax(log_weights, dim=-1)).to(logits.dtype)
    parts = [
        log_probabilities(each) + posterior[:, domain : domain + 1] for domain, each in enumerate([logits, *others])
    ]
    mixed = torch.where(lost, log_probabilities(logits), torch.logsumexp(torch.stack(parts), dim=0))
    return _within(logits, mixed)


def nudged(logits: torch.Tensor, other: torch.Tensor, *, threshold: float) -> torch.Tensor:
    """``p`` where ``max p >= threshold``, and ``p_other`` elsewhere: Fei et al. 2024, *Nudging*, arXiv 2410.09300.

    The authors take whole words from the other model, a small aligned one; token by token is a reconstruction.  The
    identity for ``threshold=0``.  A token that comes in excluded stays so.
    """
    if threshold <= 0:
        return logits.clone()
    sure = log_probabilities(logits).amax(dim=-1, keepdim=True) >= math.log(threshold)
    return torch.where(sure, logits, _within(logits, other))


def routed(
    logits: torch.Tensor, other: torch.Tensor, log_odds: torch.Tensor, *, threshold: float | None
) -> torch.Tensor:
    """``(1 - g) p + g p_other`` with ``g`` a router's probability: Shen et al. 2024, *Co-LLM*, arXiv 2403.03870.

    ``log_odds`` (``[n]``) are those of the other model's turn; with a ``threshold`` the other model
    is taken where ``g`` is above it, as the authors decode, and the model's own logits elsewhere.  The identity for
    ``threshold=1``.  A token that comes in excluded stays so.
    """
    column = log_odds.to(logits)[:, None]
    if threshold is not None:
        return torch.where(torch.sigmoid(column) > threshold, _within(logits, other), logits)
    turn, own_turn = torch.nn.functional.logsigmoid(column), torch.nn.functional.logsigmoid(-column)
    mixed = torch.logaddexp(log_probabilities(logits) + own_turn, log_probabilities(other) + turn)
    return _within(logits, mixed)


def _within(logits: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
    """``changed`` without what comes in excluded; the logits as they are where that leaves nothing."""
    kept = torch.where(torch.isneginf(logits), -math.inf, changed)
    return torch.where(torch.isneginf(kept.amax(dim=-1, keepdim=True)), logits, kept)
