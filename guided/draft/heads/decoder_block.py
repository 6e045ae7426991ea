"""`DecoderBlock`: one block of a Llama, with its own keys and values: what feature-level heads are made of.

In plain PyTorch, since the heads of published checkpoints are such blocks whatever model they stand on.  Parameters
have the names of transformers' Llama, so that checkpoints load by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

from guided.errors import UnsupportedError

__all__ = ["BlockSizes", "DecoderBlock", "KeyValues", "RMSNorm"]


@dataclass(frozen=True)
class BlockSizes:
    """The sizes of a block, by the keys of a Llama's ``config.json``.

    >>> from guided.draft import BlockSizes
    >>> config = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}
    >>> sizes = BlockSizes.of(config)
    >>> sizes.head_dim, sizes.rope_theta
    (16, 10000.0)
    """

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_factor: float = 1.0
    """Positions are divided by it (linear scaling)."""
    attention_bias: bool = False
    """Whether queries, keys and values have biases."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> BlockSizes:
        """The sizes in a configuration.  Raises `UnsupportedError` for what such a block does not compute."""
        activation = config.get("hidden_act", "silu")
        scaling = dict(config.get("rope_scaling") or config.get("rope_parameters") or {})
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        if activation != "silu" or kind not in ("default", "linear"):
            raise UnsupportedError(
                f"a head's block with the activation {activation!r} and rotary positions of the kind {kind!r}",
                where="config.json",
                remedy="Use a checkpoint with silu and plain or linearly scaled rotary positions.",
            )
        hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        return cls(
            hidden,
            int(config["intermediate_size"]),
            heads,
            int(config.get("num_key_value_heads") or heads),
            int(config.get("head_dim") or hidden // heads),
            float(config.get("rms_norm_eps", 1e-6)),
            float(config.get("rope_theta") or scaling.get("rope_theta") or 10000.0),
            float(scaling.get("factor", 1.0)) if kind == "linear" else float(config.get("rope_factor", 1.0)),
            bool(config.get("qkv_bias", config.get("attention_bias", False))),
        )


@dataclass
class KeyValues:
    """The keys and values of one block, ``[B, heads, n, head_dim]``; None before the first position."""

    keys: torch.Tensor | None = None
    values: torch.Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.keys is None else int(self.keys.shape[2])

    def add(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append positions; all of them."""
        if self.keys is not None and self.values is not None:
            keys, values = torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def crop(self, length: int) -> None:
        """Forget all but the first positions."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[:, :, :length], self.values[:, :, :length]


class RMSNorm(nn.Module):
    """``x / rms(x)`` times a weight, computed in float32 as Llama does."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The same shape."""
        return nn.functional.rms_norm(states, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    """Attention with rotary positions over ``inputs`` numbers a position."""

    def __init__(self, sizes: BlockSizes, inputs: int) -> None:
        super().__init__()
        self.sizes = sizes
        n, kv, bias = sizes.num_attention_heads * sizes.head_dim, sizes.num_key_value_heads, sizes.attention_bias
        self.q_proj = nn.Linear(inputs, n, bias=bias)
        self.k_proj = nn.Linear(inputs, kv * sizes.head_dim, bias=bias)
        self.v_proj = nn.Linear(inputs, kv * sizes.head_dim, bias=bias)
        self.o_proj = nn.Linear(n, sizes.hidden_size, bias=False)

    def projected(
        self, states: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values ``[B, heads, n, head_dim]``, turned to their positions, ``int64[n]``."""
        width = self.sizes.head_dim
        shaped = [
            layer(states).unflatten(-1, (-1, width)).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        ]
        frequencies = _frequencies(width, self.sizes.rope_theta, states.device)
        angles = (positions.float() / self.sizes.rope_factor)[:, None] * frequencies
        cos, sin = angles.cos().to(states.dtype), angles.sin().to(states.dtype)
        return _turned(shaped[0], cos, sin), _turned(shaped[1], cos, sin), shaped[2]

    def spread(self, keys: torch.Tensor) -> torch.Tensor:
        """Keys or values for every query head."""
        shared = self.sizes.num_attention_heads // self.sizes.num_key_value_heads
        return keys if shared == 1 else keys.repeat_interleave(shared, dim=1)

    def forward(
        self, states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, past: KeyValues
    ) -> torch.Tensor:
        """The states ``[B, n, d]``; ``mask``, ``bool[n, past + n]``, says what each position sees."""
        queries, keys, values = self.projected(states, positions)
        keys, values = past.add(keys, values)
        read = nn.functional.scaled_dot_product_attention(queries, self.spread(keys), self.spread(values), mask)
        found: torch.Tensor = self.o_proj(read.transpose(1, 2).flatten(2))
        return found


@cache
def _frequencies(width: int, theta: float, device: torch.device) -> torch.Tensor:
    """Both halves of a head's angles for one position, ``[width]``; no inference tensor, since training reads it."""
    with torch.inference_mode(False):
        found = theta ** (-torch.arange(0, width, 2, device=device).float() / width)
        return torch.cat([found, found])


def _turned(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = states.chunk(2, dim=-1)
    return states * cos + torch.cat([-second, first], dim=-1) * sin


class MLP(nn.Module):
    """The gated feed-forward half."""

    def __init__(self, sizes: BlockSizes) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden_size, sizes.intermediate_size, bias=False)
        self.up_proj = nn.Linear(sizes.hidden_size, sizes.intermediate_size, bias=False)
        self.down_proj = nn.Linear(sizes.intermediate_size, sizes.hidden_size, bias=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The same shape."""
        found: torch.Tensor = self.down_proj(nn.functional.silu(self.gate_proj(states)) * self.up_proj(states))
        return found


class DecoderBlock(nn.Module):
    """Attention and feed-forward halves; without ``normed`` attention reads its input as it is (EAGLE's first block).

    With ``beside`` the block reads an embedding beside the state, each normalised by itself (EAGLE-3).
    """

    def __init__(self, sizes: BlockSizes, *, normed: bool = True, beside: bool = False) -> None:
        super().__init__()
        d, eps = sizes.hidden_size, sizes.rms_norm_eps
        self.self_attn = Attention(sizes, 2 * d if beside else d)
        self.mlp = MLP(sizes)
        self.hidden_norm = RMSNorm(d, eps) if beside else None
        self.input_layernorm = RMSNorm(d, eps) if normed or beside else None
        self.post_attention_layernorm = RMSNorm(d, eps)

    def read(self, states: torch.Tensor, beside: torch.Tensor | None = None) -> torch.Tensor:
        """What attention reads of the states."""
        if self.hidden_norm is not None and self.input_layernorm is not None and beside is not None:
            return torch.cat([self.input_layernorm(beside), self.hidden_norm(states)], dim=-1)
        return states if self.input_layernorm is None else self.input_layernorm(states)

    def forward(
        self,
        states: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor,
        past: KeyValues,
        beside: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The states ``[B, n, d]`` after the block; ``past`` grows by n positions."""
        states = states + self.self_attn(self.read(states, beside), positions, mask, past)
        found: torch.Tensor = states + self.mlp(self.post_attention_layernorm(states))
        return found
