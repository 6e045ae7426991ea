"""`MedusaHeads`: each head scores a token further on from the hidden state alone (Cai et al., 2024, arXiv 2401.10774).

Head j is some residual blocks and the base's own output matrix, where the paper gives each head a matrix of its own:
that matrix is most of a head's size, and of a small model's too.
"""

from __future__ import annotations

import torch
from torch import nn

from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings, residual_blocks, through_blocks

__all__ = ["MedusaHeads"]


class MedusaHeads(DraftHeads):
    """Heads that know how far ahead they look, and not what comes in between.

    Raises `GuidedError` for settings of other heads.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> heads = draft.new_heads("medusa", 2, base)
    >>> isinstance(heads, draft.MedusaHeads), heads.sequential
    (True, False)
    >>> state = torch.eye(4)[[0]]
    >>> first, second = (heads(state, torch.tensor([[token]])) for token in (1, 2))
    >>> torch.equal(first, second)  # they do not look
    True
    """

    kind = "medusa"
    sequential = False

    def __init__(self, settings: HeadSettings, base: Base) -> None:
        super().__init__(settings, base)
        self.heads = nn.ModuleList(residual_blocks(settings.hidden, settings.blocks) for _ in range(settings.heads))

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """``[n, d]``; of the tokens only their number matters."""
        layers = self.heads[tokens.shape[1] - 1]
        assert isinstance(layers, nn.ModuleList)
        return through_blocks(hidden, layers)
