"""Formulas over the same model under another prompt: context-aware, classifier-free, instructive, debiasing, PREADD.

In each, ``logits`` is what comes in, under the prompt as given, ``[n, V]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from guided.steer.formulas.combining import combine, log_probabilities

__all__ = ["classifier_free", "context_aware", "instructive", "prefix_adaptive", "self_debiasing"]


def context_aware(logits: torch.Tensor, without_context: torch.Tensor, *, alpha: float = 0.5) -> torch.Tensor:
    """``(1 + alpha) z - alpha z_without_context``: Shi et al. 2023, arXiv 2305.14739.

    The identity for ``alpha=0``, and for a context that changes nothing.
    """
    return combine(1 + alpha, logits, (-alpha, without_context))


def classifier_free(logits: torch.Tensor, unconditional: torch.Tensor, *, scale: float = 1.5) -> torch.Tensor:
    """``l_u + scale (l - l_u)`` on log-probabilities: Sanchez et al. 2023, arXiv 2306.17806.

    ``unconditional`` may come from a negative prompt.  ``scale=1`` is the identity (as log-probabilities), ``scale=0``
    the unconditional model on the tokens that ``logits`` does not exclude.
    """
    return combine(scale, log_probabilities(logits), (1 - scale, log_probabilities(unconditional)))


def instructive(logits: torch.Tensor, noisy: torch.Tensor, *, epsilon: float = 0.3) -> torch.Tensor:
    """``z - epsilon z_noisy`` under a misleading instruction: Kim et al. 2023, arXiv 2311.00233.

    The identity for ``epsilon=0``; an instruction that changes nothing gives ``(1 - epsilon) z``, the same argmax.
    """
    return combine(1, logits, (-epsilon, noisy))


def prefix_adaptive(logits: torch.Tensor, prefixed: torch.Tensor, *, alpha: float) -> torch.Tensor:
    """``l + alpha (l_prefixed - l)`` on log-probabilities (PREADD): Pei et al. 2023, arXiv 2307.03214.

    ``prefixed`` is under the prompt with a prefix before it.  Towards what the prefix asks for with ``alpha`` above 0,
    away from it below.  ``alpha=0`` is the identity (as log-probabilities), and so is a prefix that changes nothing.
    """
    return combine(1 - alpha, log_probabilities(logits), (alpha, log_probabilities(prefixed)))


def self_debiasing(
    logits: torch.Tensor, biased: Sequence[torch.Tensor], *, decay: float = 50.0, epsilon: float = 0.01
) -> torch.Tensor:
    """``p max(epsilon, exp(-decay max(0, max_k p_k - p)))``, as logs: Schick et al. 2021, arXiv 2103.00453.

    ``biased`` holds the logits under each biased prompt.  The identity (as log-probabilities) for ``decay=0``, for no
    prompt, and where no biased prompt makes any token likelier.
    """
    own = log_probabilities(logits)
    if not biased or decay == 0:
        return own
    highest = torch.stack([log_probabilities(each).exp() for each in biased]).amax(dim=0)
    excess = (highest - own.exp()).clamp(min=0.0)
    floor = math.log(epsilon) if epsilon > 0 else -math.inf
    return own + (-decay * excess).clamp(min=floor)
