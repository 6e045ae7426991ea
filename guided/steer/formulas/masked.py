"""Renormalising over the allowed tokens: what (G)I-DLE comes to."""

from __future__ import annotations

import torch

from guided.steer.formulas.combining import keep

__all__ = ["masked_softmax"]


def masked_softmax(logits: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """``p / sum of p over the allowed`` as logits: ``-inf`` outside of ``allowed`` (booleans ``[n, V]``).

    Published as (G)I-DLE, which minimises a divergence and arrives at the masked softmax that every constrained decoder
    uses.  It stays equal under temperature and truncation, since logits are log-probabilities up to a constant, so
    `guided.compile` already does it and no steerer of that name exists.  The identity when everything is allowed.
    """
    return keep(logits, allowed)
