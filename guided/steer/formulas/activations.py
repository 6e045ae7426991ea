"""Formulas over the logits of a model whose hidden states are changed while it runs."""

from __future__ import annotations

import torch

from guided.steer.formulas.combining import combine

__all__ = ["activation_difference"]


def activation_difference(logits: torch.Tensor, plain: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
    """``z + (z_changed - z_plain)``: what the change of states does to the model's logits, done to those that come in.

    First in a stack ``logits`` are ``plain``, and the result is ``changed``.
    """
    return combine(1, logits, (1, changed), (-1, plain))
