"""`MedusaHeads`: each head scores a token further on from the hidden state alone (Cai et al., 2024, arXiv 2401.10774).

Head j is some residual blocks and the base's own output matrix, where the paper gives each head a matrix of its own:
that matrix is most of a head's size, and of a small model's too.
"""

from __future__ import annotations

import torch
from torch import nn

from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings, residual_blocks, through_blocks
from guided.errors import GuidedError

__all__ = ["MedusaHeads"]


class MedusaHeads(DraftHeads):
    """Heads that know how far ahead they look, and not what comes in between.

    Raises `GuidedError` for settings of other heads.
    """

    sequential = False

    def __init__(self, settings: HeadSettings, base: Base) -> None:
        if settings.kind != "medusa":
            raise GuidedError(f"these are {settings.kind} heads", remedy="Use guided.draft.load_heads.")
        super().__init__(settings, base)
        self.heads = nn.ModuleList(residual_blocks(settings.hidden, settings.blocks) for _ in range(settings.heads))

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """``[n, d]``; of the tokens only their number matters."""
        layers = self.heads[tokens.shape[1] - 1]
        assert isinstance(layers, nn.ModuleList)
        return through_blocks(hidden, layers)
