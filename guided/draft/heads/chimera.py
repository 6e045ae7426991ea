"""`ChimeraHeads`: heads that attend over the base's state and over trigrams of the tokens behind it.

Chimera (Zeng et al., 2024, arXiv 2402.15758) drafts by a trigram encoder for what is near, a full-context encoder of
one attention that also reads the base's own representations, and residual heads.  Reconstructed from the paper's text:
here a trigram is the last three tokens behind the base's state, those before it being one learned vector; the attention
goes from the last trigram to the state and to all trigrams; behind it are a feed-forward half and the blocks of a head
for each distance.  The attention over the states of the whole text is `PrefixedHeads`, put before these heads.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings, residual_blocks, through_blocks

__all__ = ["ChimeraHeads"]

GRAM = 3
"""Tokens that are read together."""
HEAD_WIDTH = 32
"""Numbers of one attention head, where the hidden size is a multiple of it."""


class ChimeraHeads(DraftHeads):
    """Trigrams, an attention, and heads.  Raises `GuidedError` for settings of other heads.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> heads = draft.new_heads("chimera", 2, base)
    >>> state = torch.eye(4)[[0]]
    >>> heads.sequential, tuple(heads(state, torch.tensor([[1, 2]])).shape)
    (True, (1, 4))
    """

    kind = "chimera"
    sequential = True

    def __init__(self, settings: HeadSettings, base: Base) -> None:
        super().__init__(settings, base)
        d = settings.hidden
        self.head_width = HEAD_WIDTH if d % HEAD_WIDTH == 0 else d
        self.before = nn.Parameter(torch.zeros(d))
        """Stands for each token before the base's state."""
        self.trigrams = nn.Linear(GRAM * d, d)
        self.queries, self.keys, self.values, self.out = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.inner, self.outer = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        for layer in (self.trigrams, self.out, self.outer):
            # Untrained they say what the base says.
            nn.init.zeros_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        self.heads = nn.ModuleList(residual_blocks(d, settings.blocks) for _ in range(settings.heads))
        # Embeddings are small numbers in most models: bring them to the scale of hidden states after normalisation.
        self._scale = 1.0 / max(float(self.embeddings.float().std()), 1e-6)

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """``[n, d]``, by the state and all tokens after it."""
        count = tokens.shape[1]
        read = self.embeddings[tokens].to(hidden.dtype) * self._scale
        padded = torch.cat([self.before.to(hidden.dtype).expand(len(read), GRAM - 1, -1), read], dim=1)
        grams = nn.functional.silu(self.trigrams(padded.unfold(1, GRAM, 1).transpose(2, 3).flatten(2)))
        seen = torch.cat([hidden[:, None], grams], dim=1)
        states = hidden + grams[:, -1]
        states = states + self.out(self._attended(states, seen))
        states = states + self.outer(nn.functional.silu(self.inner(states)))
        layers = self.heads[count - 1]
        assert isinstance(layers, nn.ModuleList)
        return through_blocks(states, layers)

    def _attended(self, states: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """What the last place reads of all, by attention heads."""
        queries = self.queries(states).unflatten(-1, (-1, self.head_width))
        keys, values = (layer(seen).unflatten(-1, (-1, self.head_width)) for layer in (self.keys, self.values))
        scores = torch.einsum("nhw,nshw->nhs", queries, keys) / math.sqrt(self.head_width)
        return torch.einsum("nhs,nshw->nhw", scores.softmax(-1), values).flatten(1)
