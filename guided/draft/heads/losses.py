"""`DraftLoss`: what a draft is trained to be near to, one choice for all trainers of drafts.

Divergences of DistillSpec (Zhou et al., 2024, arXiv 2310.08461) between the target's law p and the draft's q at one
place, and the cross entropy of the target's own tokens, which direct alignment and FastDraft train with.
"""

from __future__ import annotations

from enum import Enum

import torch

__all__ = ["DISCOUNT", "DraftLoss", "draft_losses"]

DISCOUNT = 0.8
"""The weight of a draft's place relative to the one before, in all trainers: what comes later is accepted less often.

It is Medusa's, EAGLE-3's and prompt tokens' choice.
"""


class DraftLoss(Enum):
    """What is made small, place by place.

    >>> import torch
    >>> from guided.draft import DraftLoss, draft_losses
    >>> p, q = torch.tensor([[0.8, 0.2]]).log(), torch.tensor([[0.5, 0.5]]).log()  # the target's law and the draft's
    >>> {loss.value: round(draft_losses(loss, q, p, torch.tensor([0])).item(), 3) for loss in DraftLoss}
    {'tokens': 0.693, 'forward KL': 0.193, 'reverse KL': 0.223, 'total variation': 0.3}
    """

    TOKENS = "tokens"
    """``-log q(token)``: needs nothing of the target but its texts."""
    FORWARD_KL = "forward KL"
    """``sum p log(p / q)``."""
    REVERSE_KL = "reverse KL"
    """``sum q log(q / p)``."""
    TOTAL_VARIATION = "total variation"
    """``sum |p - q| / 2``: the share of drawn drafts that are refused."""


def draft_losses(
    loss: DraftLoss, draft: torch.Tensor, target: torch.Tensor | None, tokens: torch.Tensor
) -> torch.Tensor:
    """The loss at each place, ``[n]``, from raw scores ``[n, V]`` of draft and target and the tokens that came.

    A draft that does not score some ids (-inf) is compared on the others, for which the target's law is renormalised;
    places whose token it does not score count 0.  ``target`` may be None for `DraftLoss.TOKENS` alone.

    >>> import torch
    >>> from guided.draft import DraftLoss, draft_losses
    >>> p, q = torch.tensor([[0.8, 0.2]]).log(), torch.tensor([[0.5, 0.5]]).log()
    >>> draft_losses(DraftLoss.TOTAL_VARIATION, q, p, torch.tensor([0]))  # the share of drafts that is refused
    tensor([0.3000])
    """
    known = torch.isfinite(draft)
    log_q = draft.log_softmax(-1)
    if loss is DraftLoss.TOKENS:
        chosen = log_q.gather(-1, tokens[:, None])[:, 0]
        return torch.where(torch.isfinite(chosen), -chosen, torch.zeros_like(chosen))
    assert target is not None, "divergences are from the target's law"
    log_p = target.masked_fill(~known, -torch.inf).log_softmax(-1)
    p, q = log_p.exp(), log_q.exp()
    # An id that neither knows has -inf in both, whose difference is no number.
    log_p, log_q = log_p.masked_fill(~known, 0.0), log_q.masked_fill(~known, 0.0)
    if loss is DraftLoss.FORWARD_KL:
        return torch.where(p > 0, p * (log_p - log_q), torch.zeros_like(p)).sum(-1)
    if loss is DraftLoss.REVERSE_KL:
        return torch.where(q > 0, q * (log_q - log_p), torch.zeros_like(q)).sum(-1)
    return (p - q).abs().sum(-1) / 2
