"""Medusa, Hydra and ReDrafter heads as their authors publish them: with output matrices of their own.

Parameters have the names of the checkpoints, which `load_published` reads; here is what is computed with them, after
FasterDecoding/Medusa, zankner/Hydra and apple/ml-recurrent-drafter.
"""

from __future__ import annotations

import torch
from torch import nn

from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings

__all__ = ["PublishedHydra", "PublishedMedusa", "RecurrentHeads"]


class _Residual(nn.Module):
    """``x + silu(linear(x))``; with more inputs than outputs x goes through a layer of its own (Hydra)."""

    def __init__(self, hidden: int, inputs: int = 1) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs * hidden, hidden)
        self.res_connection = nn.Linear(inputs * hidden, hidden) if inputs > 1 else nn.Identity()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """``[n, hidden]``."""
        found: torch.Tensor = self.res_connection(states) + nn.functional.silu(self.linear(states))
        return found


class PublishedMedusa(DraftHeads):
    """Medusa's heads: residual blocks and an output matrix each, named ``{head}.{layer}``."""

    sequential = False

    def __init__(self, settings: HeadSettings, base: Base) -> None:
        super().__init__(settings, base)
        d, width = settings.hidden, settings.width
        self.medusa_head = nn.ModuleList(
            nn.Sequential(*(_Residual(d) for _ in range(settings.blocks)), nn.Linear(d, width, bias=False))
            for _ in range(settings.heads)
        )

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The hidden state as it is."""
        return hidden

    def scored(self, states: torch.Tensor, count: int) -> torch.Tensor:
        """By the head for so many tokens."""
        found: torch.Tensor = self.medusa_head[count - 1](states)
        return found


class PublishedHydra(DraftHeads):
    """Hydra's heads of the kind ``mlp``: the state and embeddings of the tokens after it, side by side, as they are.

    Heads that are not ``grounded`` read the state alone.  ``bias``: whether output matrices have one.
    """

    def __init__(self, settings: HeadSettings, base: Base, *, grounded: bool = True, bias: bool = True) -> None:
        super().__init__(settings, base)
        d = settings.hidden
        self.sequential = grounded
        self.hydra_mlp = nn.ModuleList(
            nn.Sequential(
                *(_Residual(d, head + 2 if grounded and not layer else 1) for layer in range(settings.blocks))
            )
            for head in range(settings.heads)
        )
        self.hydra_lm_head = nn.ModuleList(nn.Linear(d, settings.width, bias=bias) for _ in range(settings.heads))

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """What the head for so many tokens makes of them."""
        read = hidden
        if self.sequential:
            read = torch.cat([hidden, self.embeddings[tokens].to(hidden.dtype).flatten(1)], dim=1)
        found: torch.Tensor = self.hydra_mlp[tokens.shape[1] - 1](read)
        return found

    def scored(self, states: torch.Tensor, count: int) -> torch.Tensor:
        """By the output matrix of the head for so many tokens."""
        found: torch.Tensor = self.hydra_lm_head[count - 1](states)
        return found


class RecurrentHeads(DraftHeads):
    """ReDrafter (Zhang et al., 2024, arXiv 2403.09919): one head, which reads a recurrent state of the tokens so far.

    The state s of tokens t is ``silu(W e(t) + U s + b)``, or the sum of their embeddings without ``rnn``, from 0 on;
    the head reads the target's hidden state and s side by side.  ``settings.heads`` is how far it is asked: it could go
    on.
    """

    sequential = True

    def __init__(self, settings: HeadSettings, base: Base, *, exit_size: int, rnn: bool = True) -> None:
        super().__init__(settings, base)
        d = settings.hidden
        self.input_proj = nn.Linear(2 * d, exit_size) if exit_size != 2 * d else nn.Identity()
        self.lm_head = nn.Sequential(
            *(_Residual(exit_size) for _ in range(settings.blocks)), nn.Linear(exit_size, settings.width, bias=False)
        )
        self.rnn_u = nn.Linear(d, d) if rnn else None
        self.rnn_w = nn.Linear(d, d, bias=False) if rnn else None

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The hidden state and the recurrent one, ``[n, 2 d]``."""
        state = torch.zeros_like(hidden)
        for token in tokens.unbind(1):
            read = self.embeddings[token].to(hidden.dtype)
            if self.rnn_u is None or self.rnn_w is None:
                state = read + state
            else:
                state = nn.functional.silu(self.rnn_w(read) + self.rnn_u(state))
        return torch.cat([hidden, state], dim=-1)

    def scored(self, states: torch.Tensor, count: int) -> torch.Tensor:
        """By the one head."""
        found: torch.Tensor = self.lm_head(self.input_proj(states))
        return found
