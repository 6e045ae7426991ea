"""Formulas that subtract a weaker or opposite model of the same vocabulary: contrastive decoding, DExperts, proxies.

In each, ``logits`` is what comes in (the expert, base or large model), ``[n, V]``.
"""

from __future__ import annotations

import torch

from guided.steer.formulas.combining import combine, keep, log_probabilities, nucleus, plausible

__all__ = ["contrastive", "contrastive_reasoning", "dexperts", "proxy_tuning"]


def contrastive(
    logits: torch.Tensor, amateur: torch.Tensor, *, alpha: float = 0.1, temperature: float = 0.5
) -> torch.Tensor:
    """``log p - log p_amateur^(tau)`` on the plausible set: Li et al. 2022, arXiv 2210.15097.

    ``temperature`` divides the amateur's logits.  Never the identity: with an amateur equal to the model (and
    temperature 1) it is uniform on the plausible set.
    """
    # Before the contrast: a token that the amateur excludes wins over all others, if it is plausible.
    kept = keep(log_probabilities(logits), plausible(logits, alpha))
    return combine(1, kept, (-1, log_probabilities(amateur / temperature)))


def contrastive_reasoning(
    logits: torch.Tensor, amateur: torch.Tensor, *, alpha: float = 0.1, beta: float = 0.5, temperature: float = 1.0
) -> torch.Tensor:
    """``(1 + beta) z - beta z_amateur`` on the plausible set: O'Brien and Lewis 2023, arXiv 2309.09117.

    ``beta=0`` is the model on its plausible set, and with ``alpha=0`` the identity; so is an amateur equal to the
    model, at temperature 1.
    """
    kept = keep(logits, plausible(logits, alpha))
    return combine(1 + beta, kept, (-beta, amateur if temperature == 1 else amateur / temperature))


def dexperts(
    logits: torch.Tensor, expert: torch.Tensor, anti_expert: torch.Tensor, *, alpha: float = 2.0, top_p: float = 0.9
) -> torch.Tensor:
    """``z + alpha (z_expert - z_anti)`` on the nucleus of ``z``: Liu et al. 2021, *DExperts*, arXiv 2105.03023.

    The nucleus is that of the incoming logits, before the experts speak.  ``alpha=0``, or expert and anti-expert
    alike, is the model on its nucleus, and with ``top_p=1`` the identity.
    """
    return combine(1, keep(logits, nucleus(logits, top_p)), (alpha, expert), (-alpha, anti_expert))


def proxy_tuning(
    logits: torch.Tensor, tuned: torch.Tensor, untuned: torch.Tensor, *, alpha: float = 1.0
) -> torch.Tensor:
    """``z + alpha (z_tuned - z_untuned)`` of a small pair: Liu et al. 2024, arXiv 2401.08565.

    The identity for ``alpha=0``, and for a tuned model equal to the untuned.
    """
    return combine(1, logits, (alpha, tuned), (-alpha, untuned))
