"""What the formulas share: sums of logits in which ``-inf`` may occur, log-probabilities, plausible sets, candidates.

**Infinite logits.**  A token that a model excludes has the logit ``-inf``, and a difference of two such logits is no
number.  Everywhere here ``-inf`` means "``-L`` for ``L`` without bound", and a formula's result is the limit of its
softmax: see `combine`.  A token that comes in with ``-inf`` stays excluded.
"""

from __future__ import annotations

import math

import torch

from guided.errors import GuidedError

__all__ = ["Weight", "candidates", "combine", "keep", "log_probabilities", "nucleus", "plausible", "spread"]

Weight = float | torch.Tensor
"""A number, or a column ``[n, 1]`` with one for each row."""

SAME_WEIGHT = 1e-5
"""Relative difference up to which sums of weights are equal: some 80 roundings of float32.  A weight below it (that of
a nearly sure model in DeCoRe) lets no exclusion win."""


def combine(weight: Weight, logits: torch.Tensor, *terms: tuple[Weight, torch.Tensor]) -> torch.Tensor:
    """``weight * logits + sum(w * t)`` over ``[n, V]`` tensors, with ``-inf`` as the limit of ``-L``.

    Tokens whose ``logits`` are ``-inf`` are excluded.  Of the others, those survive whose infinite parts weigh most:
    a negative term that excludes a token (an amateur at ``-inf``) lets it win over all that no such term excludes, a
    positive one excludes it, and a positive and a negative term of equal weight cancel.  Where a positive weight
    excludes every token that is left, the row is all ``-inf``.  Terms whose weight is the number 0 count for nothing.
    """
    parts = [(weight, logits)] + [term for term in terms if not (isinstance(term[0], (int, float)) and term[0] == 0)]
    total = _sum(parts)
    # With neither +inf nor NaN in the sum, nothing that excludes has a negative weight, and it is the limit.
    if bool((total < math.inf).all()):
        return total
    infinite = torch.zeros_like(logits)
    finite = torch.zeros_like(logits)
    for factor, term in parts:
        excluded = torch.isneginf(term)
        infinite = infinite - factor * excluded
        finite = finite + factor * torch.where(excluded, 0.0, term)
    infinite = torch.where(torch.isneginf(logits), -math.inf, infinite)
    most = infinite.amax(dim=-1, keepdim=True).clamp(min=0.0)
    # Sums of weights that are equal on paper may differ by rounding.
    return torch.where(infinite >= most - SAME_WEIGHT * (1 + most), finite, -math.inf)


def _sum(parts: list[tuple[Weight, torch.Tensor]]) -> torch.Tensor:
    factor, term = parts[0]
    total = term.clone() if isinstance(factor, (int, float)) and factor == 1 else factor * term
    for factor, term in parts[1:]:
        if isinstance(factor, (int, float)):
            total.add_(term.to(total.dtype), alpha=factor)
        else:
            total.addcmul_(factor.to(total.dtype), term.to(total.dtype))
    return total


def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
    """``log_softmax`` over the last dimension; a row that excludes everything stays all ``-inf`` (not NaN)."""
    normalised = torch.log_softmax(logits, dim=-1)
    empty = torch.isneginf(logits.amax(dim=-1, keepdim=True))
    return torch.where(empty, -math.inf, normalised)


def plausible(logits: torch.Tensor, alpha: float, min_tokens_to_keep: int = 1) -> torch.Tensor:
    """The plausible tokens ``{v : p(v) >= alpha * max p}`` as booleans ``[n, V]``: Li et al. 2022, arXiv 2210.15097.

    ``alpha`` in ``[0, 1]``; 0 keeps every token.  At least ``min_tokens_to_keep`` stay, with their ties.
    """
    if alpha <= 0:
        return torch.ones_like(logits, dtype=torch.bool)
    threshold = logits.amax(dim=-1, keepdim=True) + math.log(alpha)
    if min_tokens_to_keep > 1:
        most = torch.topk(logits, min(min_tokens_to_keep, logits.shape[-1]), dim=-1).values
        threshold = torch.minimum(threshold, most[..., -1:])
    return logits >= threshold


def nucleus(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """The smallest set of likeliest tokens with mass ``top_p`` or more, as booleans ``[n, V]`` (Holtzman et al. 2020).

    Tokens as likely as the last one taken are taken, too, so the order of ids does not matter.
    """
    if top_p >= 1:
        return torch.ones_like(logits, dtype=torch.bool)
    ordered = logits.sort(dim=-1, descending=True).values
    probabilities = torch.softmax(ordered, dim=-1)
    n_taken = (probabilities.cumsum(dim=-1) - probabilities < top_p).sum(dim=-1, keepdim=True).clamp(min=1)
    return logits >= ordered.gather(-1, n_taken - 1)


def keep(logits: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """``logits`` with ``-inf`` outside of ``kept`` (booleans ``[n, V]``), as a new tensor."""
    return torch.where(kept, logits, -math.inf)


def candidates(logits: torch.Tensor, k: int) -> torch.Tensor:
    """The ids ``[n, min(k, V)]`` of the likeliest tokens, likeliest first; the lower id wins a tie.

    Unlike those of `torch.topk`, ties do not depend on the batch or the device.  Excluded tokens come last.  Raises
    `GuidedError` for logits that hold NaN.
    """
    k = min(k, logits.shape[-1])
    last = torch.topk(logits, k, dim=-1).values[..., -1:]
    more, ties = logits > last, logits == last
    room = k - more.sum(dim=-1, keepdim=True)
    chosen = more | (ties & (ties.cumsum(dim=-1) <= room))
    ids = chosen.nonzero()[:, 1]
    if ids.numel() != logits.shape[0] * k:
        raise GuidedError(
            "a row of logits holds NaN, so it has no likeliest tokens",
            where="guided.steer",
            remedy="Look for the model or steerer that returned it.",
        )
    ids = ids.reshape(-1, k)
    order = logits.gather(-1, ids).argsort(dim=-1, descending=True, stable=True)
    return ids.gather(-1, order)


def spread(values: torch.Tensor, ids: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """``values`` (``[n, k]``) at ``ids`` and ``-inf`` elsewhere, as a tensor like ``like`` (``[n, V]``)."""
    return torch.full_like(like, -math.inf).scatter(-1, ids, values.to(like.dtype))
