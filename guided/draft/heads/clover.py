"""`CloverHeads`: heads in a row, each of which reads the state that the one before has made of the tokens so far.

Clover (Xiao et al., 2024, arXiv 2405.00263), sections 3.1, 3.2 and 3.4: equations 1 and 2 are

    ``h(i) = h(i-1) + Attention(W_Q normalize(h(i-1)), W_K e(i-1), W_V e(i-1))``

with ``e`` the row of the base's output matrix of the token before, normalised like the state to a mean square of 1, and
head i is residual blocks on ``h(i)`` and the base's output matrix.  The softmax over one key is always 1, and figure 5
has a SiLU of the product of queries and keys in its place, times the values: that is done here for each attention head,
reconstructed from the figure.  The augmenting block of section 3.3 is that of `PrefixedHeads`.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings, residual_blocks, through_blocks

__all__ = ["CloverHeads"]

HEAD_WIDTH = 32
"""Numbers of one attention head, where the hidden size is a multiple of it."""
NOISE = 0.02
EPSILON = 1e-6


class CloverHeads(DraftHeads):
    """Heads of a regressive attention decoder.  Raises `GuidedError` for settings of other heads.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> heads = draft.new_heads("clover", 2, base)
    >>> state = torch.eye(4)[[0]]
    >>> type(heads).__name__, tuple(heads(state, torch.tensor([[1, 2]])).shape)
    ('CloverHeads', (1, 4))
    """

    kind = "clover"
    sequential = True

    def __init__(self, settings: HeadSettings, base: Base) -> None:
        super().__init__(settings, base)
        d = settings.hidden
        self.head_width = HEAD_WIDTH if d % HEAD_WIDTH == 0 else d
        self.norm = nn.Parameter(torch.ones(d))
        self.queries, self.keys, self.values = (nn.Linear(d, d, bias=False) for _ in range(3))
        for layer in (self.queries, self.keys):
            nn.init.eye_(layer.weight)
            layer.weight.data += NOISE * torch.randn_like(layer.weight)
        nn.init.zeros_(self.values.weight)
        self.heads = nn.ModuleList(residual_blocks(d, settings.blocks) for _ in range(settings.heads))

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """``[n, d]``: the state after all tokens, through the blocks of the last one's head."""
        for token in tokens.unbind(1):
            read = _normalised(self.unembeddings[token].to(hidden.dtype))
            normed = self.norm * _normalised(hidden)
            queries, keys, values = (
                layer(states).unflatten(-1, (-1, self.head_width))
                for layer, states in ((self.queries, normed), (self.keys, read), (self.values, read))
            )
            scores = (queries * keys).sum(-1, keepdim=True) / math.sqrt(self.head_width)
            hidden = hidden + (nn.functional.silu(scores) * values).flatten(-2)
        layers = self.heads[tokens.shape[1] - 1]
        assert isinstance(layers, nn.ModuleList)
        return through_blocks(hidden, layers)


def _normalised(states: torch.Tensor) -> torch.Tensor:
    """With a mean square of 1."""
    return states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + EPSILON)
