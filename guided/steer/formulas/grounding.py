"""Formulas over next-token logits that are remembered from reference texts."""

from __future__ import annotations

import torch

from guided.steer.formulas.combining import combine, log_probabilities

__all__ = ["context_adaptive"]


def context_adaptive(
    logits: torch.Tensor, similarities: torch.Tensor, remembered: torch.Tensor, *, weight: float, top_n: int
) -> torch.Tensor:
    """``(1 - w) l + w sum_i a_i l_i`` over the likest contexts: after Nguyen et al. 2025, *CAAD*, arXiv 2508.02184.

    A reconstruction from the paper's abstract: logits of the ``top_n`` most similar contexts of truthful texts are
    aggregated and change the model's.  That ``a`` are the similarities over their sum, and ``w`` is ``weight`` times
    the greatest of them, is ours; contexts of no or negative similarity count for nothing.  ``similarities`` are ``[n,
    m]``, ``remembered`` log-probabilities ``[m, V]``.  The identity for ``weight=0``, and where nothing is similar.
    """
    near, which = torch.topk(similarities.clamp(min=0.0), min(top_n, similarities.shape[-1]), dim=-1)
    total = near.sum(dim=-1, keepdim=True)
    amount = weight * near.amax(dim=-1, keepdim=True)
    shares = torch.where(total > 0, near / total.clamp(min=torch.finfo(near.dtype).tiny), 0.0)
    own = log_probabilities(logits)
    terms = [
        ((amount * shares[:, place : place + 1]).to(own.dtype), remembered[which[:, place]].to(own))
        for place in range(which.shape[-1])
    ]
    return combine((1 - amount).to(own.dtype), own, *terms)


def knowledge_infused(logits: torch.Tensor, rewards: torch.Tensor, *, strength: float) -> torch.Tensor:
    """``z + strength r``: the distribution of greatest ``E r - KL(q || p) / strength``, for any rewards ``[n, V]``.

    The objective is that of Liu et al. 2022, *Knowledge Infused Decoding*, arXiv 2204.03084, who climb it by policy
    gradients.  The identity for ``strength=0``.  A token that comes in excluded stays so.
    """
    return combine(1, logits, (strength, rewards))
