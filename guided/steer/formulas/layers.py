"""Formulas over logits read from inner layers, or from a run with attention heads off: DoLa, LOL, DeCoRe, DFD.

``logits`` is what comes in, of the last layer, ``[n, V]``; ``early`` has the candidate layers' logits, ``[m, n, V]``.
"""

from __future__ import annotations

import enum
import math

import torch

from guided.steer.formulas.combining import combine, keep, log_probabilities, plausible

__all__ = ["Divergence", "decore", "divergences", "dola", "dynamic_focus", "entropy", "layers_over_layers"]


class Divergence(enum.Enum):
    """Which divergence picks DoLa's premature layer.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Divergence, DoLa, Stack
    >>> early = [lambda tokens: [1.0, 2.0, 3.0], lambda tokens: [0.0, 3.0, 3.0]]  # the embedding, the first block
    >>> model = TableModel(lambda tokens: [2.0, 2.0, 0.0], width=3, layers=early)
    >>> for divergence in Divergence:
    ...     steered = Stack([DoLa((0, 1), relative_top=0.0, divergence=divergence)]).over(model)
    ...     print(divergence.value, next_logits(steered, [[0]]).softmax(-1).numpy().round(2).tolist())
    official [[0.95, 0.05, 0.01]]
    jensen-shannon [[0.72, 0.27, 0.01]]
    """

    OFFICIAL = "official"
    """``(KL(m || p) + KL(m || q)) / 2`` with ``m = (p + q) / 2``: what the authors' and transformers' code computes."""
    JENSEN_SHANNON = "jensen-shannon"
    """``(KL(p || m) + KL(q || m)) / 2``: what the paper says."""


def divergences(logits: torch.Tensor, early: torch.Tensor, divergence: Divergence) -> torch.Tensor:
    """The divergence of the last layer's distribution from each early one's, in nats: ``[m, n]``.

    The official one is infinite where one of the two excludes a token that the other does not.
    """
    final = log_probabilities(logits).expand_as(early)
    other = log_probabilities(early)
    middle = torch.logaddexp(final, other) - math.log(2)
    if divergence is Divergence.OFFICIAL:
        pairs = ((middle, final), (middle, other))
    else:
        pairs = ((final, middle), (other, middle))
    return sum((_kl(left, right) for left, right in pairs), torch.zeros((), dtype=logits.dtype)) / 2


def _kl(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """``sum p (log p - log q)`` over the last dimension of log-probabilities, where ``0 log 0`` is 0."""
    return torch.where(torch.isneginf(left), 0.0, left.exp() * (left - right)).sum(dim=-1)


def dola(
    logits: torch.Tensor,
    early: torch.Tensor,
    *,
    relative_top: float = 0.1,
    divergence: Divergence = Divergence.OFFICIAL,
) -> torch.Tensor:
    """``l - l_M`` on the plausible set, ``M`` the layer that differs most: Chuang et al. 2023, arXiv 2309.03883.

    One early layer is taken as it is.  Never the identity: an early layer equal to the last gives the uniform
    distribution on the plausible set.
    """
    if len(early) == 1:
        chosen = early[0]
    else:
        layer = divergences(logits, early, divergence).argmax(dim=0)
        chosen = early.gather(0, layer[None, :, None].expand(1, *logits.shape))[0]
    kept = keep(log_probabilities(logits), plausible(logits, relative_top))
    return combine(1, kept, (-1, log_probabilities(chosen)))


def layers_over_layers(
    logits: torch.Tensor,
    amateur: torch.Tensor,
    early: torch.Tensor,
    amateur_early: torch.Tensor,
    truthful: torch.Tensor | None = None,
    *,
    beta: float = 0.5,
    weight: float = 0.5,
    truth: float = 0.0,
) -> torch.Tensor:
    """``[(1+b) l - b l'] + w [(1+b) e - b e'] + g [l_truthful - l]``: after Chen et al. 2024, arXiv 2408.08769.

    *Lower Layer Matters*; a reconstruction from the method's outline, not from its code.  ``l`` and ``l'`` are the
    last layers of the model and of an amateur (induced to hallucinate), ``e`` and ``e'`` one lower layer of each
    (``[n, V]``), ``truthful`` the model under a prompt that asks for the truth; ``b, w, g`` are ``beta, weight,
    truth``.  The identity (as log-probabilities) for ``beta = weight = truth = 0``.
    """
    terms = [
        (-beta, log_probabilities(amateur)),
        (weight * (1 + beta), log_probabilities(early)),
        (-weight * beta, log_probabilities(amateur_early)),
    ]
    if truthful is not None:
        terms.append((truth, log_probabilities(truthful)))
    own = 1 + beta - (truth if truthful is not None else 0.0)
    return combine(own, log_probabilities(logits), *terms)


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """The entropy of each row's distribution in nats, ``[n, 1]``; 0 for a row that excludes everything."""
    own = log_probabilities(logits)
    return -torch.where(torch.isneginf(own), 0.0, own.exp() * own).sum(dim=-1, keepdim=True)


def decore(
    logits: torch.Tensor, masked: torch.Tensor, *, cap: float | None = None, normalise: bool = False
) -> torch.Tensor:
    """``(1 + a) z - a z_masked`` with ``a`` the entropy of ``z``: Gema et al. 2024, *DeCoRe*, arXiv 2410.18860.

    ``masked`` is the same model without its retrieval heads.  ``normalise`` divides the entropy (in nats) by the log of
    the vocabulary's size, ``cap`` bounds it.  The identity for ``cap=0``, and without masked heads.
    """
    if cap == 0:
        return logits.clone()
    amount = entropy(logits)
    if normalise:
        amount = amount / math.log(max(logits.shape[-1], 2))
    if cap is not None:
        amount = amount.clamp(max=cap)
    return combine(1 + amount, logits, (-amount, masked))


def dynamic_focus(
    logits: torch.Tensor,
    early: torch.Tensor,
    *,
    relative_top: float = 0.1,
    sigma: float = 0.25,
    temperature: float = 1.0,
) -> torch.Tensor:
    """``z / T`` with ``T = T0 / 2^(f / sigma)``, ``f`` the layers' distance: Luo et al. 2025, arXiv 2503.08057.

    ``f`` is the mean over ``early`` of ``KL(p || p_j)``, both on the tokens with ``p > relative_top max p``.  Only the
    temperature changes, never the order of tokens.  The identity (up to a constant) for ``sigma=inf`` and
    ``temperature=1``.
    """
    highest = logits.amax(dim=-1, keepdim=True)
    threshold = highest + (math.log(relative_top) if relative_top > 0 else -math.inf)
    focus = (logits > threshold) | (logits == highest)
    final = log_probabilities(keep(logits, focus)).expand_as(early)
    other = log_probabilities(keep(early, focus.expand_as(early)))
    if sigma == math.inf:
        divisor = torch.full_like(highest, temperature)
    else:
        divisor = temperature * torch.exp2(-_kl(final, other).mean(dim=0)[:, None] / sigma)
    # Greedy in the limit: below the smallest normal number the quotient would be no number.
    divisor = divisor.clamp(min=torch.finfo(logits.dtype).tiny)
    shifted = logits - torch.where(torch.isneginf(highest), 0.0, highest)
    return torch.where(shifted == 0, 0.0, shifted / divisor)
