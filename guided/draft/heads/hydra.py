"""`HydraHeads`: heads that also read the tokens in between (Ankner et al., 2024, arXiv 2402.05109).

Head j reads the hidden state and the embeddings of the j tokens after it, drafted ones included, side by side; so what
it says of one branch of the tree is about that branch.
"""

from __future__ import annotations

import torch
from torch import nn

from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings, residual_blocks, through_blocks

__all__ = ["HydraHeads"]


class HydraHeads(DraftHeads):
    """Heads that depend on the path through the tree.  Raises `GuidedError` for settings of other heads.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> heads = draft.new_heads("hydra", 2, base)
    >>> state = torch.eye(4)[[0]]
    >>> first, second = (heads(state, torch.tensor([[token]])) for token in (1, 2))
    >>> torch.equal(first, second)  # they see the token between
    False
    """

    kind = "hydra"
    sequential = True

    def __init__(self, settings: HeadSettings, base: Base) -> None:
        super().__init__(settings, base)
        d = settings.hidden
        self.inputs = nn.ModuleList(nn.Linear((j + 2) * d, d) for j in range(settings.heads))
        self.heads = nn.ModuleList(residual_blocks(d, settings.blocks) for _ in range(settings.heads))
        # Embeddings are small numbers in most models: bring them to the scale of hidden states after normalisation.
        self._scale = 1.0 / max(float(self.embeddings.float().std()), 1e-6)

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """``[n, d]``, by the state and all tokens after it."""
        count = tokens.shape[1]
        read = self.embeddings[tokens].to(hidden.dtype) * self._scale
        side_by_side = torch.cat([hidden, read.flatten(1)], dim=1)
        layers = self.heads[count - 1]
        assert isinstance(layers, nn.ModuleList)
        return through_blocks(hidden + nn.functional.silu(self.inputs[count - 1](side_by_side)), layers)
