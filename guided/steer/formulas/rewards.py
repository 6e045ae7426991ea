"""Formulas that add a reward of each candidate token: RAD, ARGS, FUDGE, controlled decoding; and ARM, of all tokens.

``candidates`` are token ids ``[n, k]``, likeliest first; ``rewards`` what appending each is worth, ``[n, k]``.  All
other tokens are excluded.  Where rewards come from: `guided.steer.rewards`.
"""

from __future__ import annotations

import torch

from guided.steer.formulas.combining import combine, keep, log_probabilities, spread

__all__ = ["args", "arm", "controlled", "fudge", "rad"]


def _on_candidates(logits: torch.Tensor, candidates: torch.Tensor, bonus: torch.Tensor) -> torch.Tensor:
    """Logits plus a bonus on the candidates; excluded ones stay excluded whatever their bonus."""
    own = logits.gather(-1, candidates)
    return spread(torch.where(torch.isneginf(own), own, own + bonus.to(own.dtype)), candidates, logits)


def rad(logits: torch.Tensor, candidates: torch.Tensor, rewards: torch.Tensor, *, beta: float = 10.0) -> torch.Tensor:
    """``z + beta r`` on the candidates, ``r`` clamped to ``[0, 1]``: Deng and Raffel 2023, arXiv 2310.09520.

    ``beta=0`` is the model on its likeliest ``k`` tokens.
    """
    return _on_candidates(logits, candidates, beta * rewards.clamp(0.0, 1.0) if beta else torch.zeros_like(rewards))


def args(logits: torch.Tensor, candidates: torch.Tensor, rewards: torch.Tensor, *, weight: float = 1.5) -> torch.Tensor:
    """``z + w r`` on the candidates, any real ``r``: Khanov et al. 2024, arXiv 2402.01694.

    ``weight=0`` is the model on its likeliest ``k`` tokens.
    """
    return _on_candidates(logits, candidates, weight * rewards if weight else torch.zeros_like(rewards))


def fudge(
    logits: torch.Tensor, candidates: torch.Tensor, log_odds: torch.Tensor, *, strength: float = 1.0
) -> torch.Tensor:
    """``l + strength log P(attribute | text v)`` on the candidates: Yang and Klein 2021, arXiv 2104.05218.

    ``log_odds`` are the classifier's log-probabilities (0 or below) of the attribute after each candidate.
    With the logarithms of what is possible (affordances) it is grounded decoding (Huang et al. 2023, arXiv 2303.00855).
    ``strength=0`` is the model on its likeliest ``k`` tokens.
    """
    bonus = strength * log_odds if strength else torch.zeros_like(log_odds)
    return _on_candidates(log_probabilities(logits), candidates, bonus)


def controlled(
    logits: torch.Tensor, candidates: torch.Tensor, values: torch.Tensor, *, beta: float = 1.0
) -> torch.Tensor:
    """``l + beta V(text v)`` on the candidates: Mudgal et al. 2023, arXiv 2310.17022, token-wise.

    ``V`` is a prefix scorer: the reward expected of the whole text.  ``beta=0`` is the model on its candidates.
    """
    bonus = beta * values if beta else torch.zeros_like(values)
    return _on_candidates(log_probabilities(logits), candidates, bonus)


def arm(logits: torch.Tensor, rewards: torch.Tensor, *, beta: float = 1.0, top_k: torch.Tensor | None) -> torch.Tensor:
    """``l + beta r``, ``r`` (``[n, V]``) of every token from one forward pass: Troshin et al. 2024, arXiv 2407.04615.

    ``top_k``: booleans ``[n, V]`` of the tokens kept, None for all.  The identity (as log-probabilities) for
    ``beta=0`` and None.
    """
    score = combine(1, log_probabilities(logits), (beta, rewards))
    return score if top_k is None else keep(score, top_k)
