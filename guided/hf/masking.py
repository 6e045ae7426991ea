"""Packed masks onto score tensors: any float dtype, any device, no index tensors, never in place.

On the CPU each mask byte is one look-up of eight bounds (+inf: allowed, -inf: forbidden) and the scores are limited by
them: measured 26 us a row for 128,256 float32 scores, where ``torch.where`` with a boolean mask takes 55 to 410 us
(its branches depend on the mask).  Elsewhere the packed rows travel, an eighth of the boolean mask's size, and the same
look-up runs on the device.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["mask_scores", "n_words"]


def n_words(width: int) -> int:
    """How many ``uint32`` words hold one bit for each of ``width`` scores."""
    return (width + 31) // 32


def mask_scores(scores: torch.Tensor, packed: NDArray[np.uint32]) -> torch.Tensor:
    """A new tensor: ``scores`` where the bit is 1, ``-inf`` elsewhere.

    ``scores`` is ``float[rows, width]``, ``packed`` ``uint32[rows, n_words(width)]``, C-contiguous.  The input must not
    be written to: `generate` reuses it (prompt lookup asks about several prefixes with one tensor).  NaN stays NaN.
    """
    rows, width = scores.shape
    if scores.device.type == "cpu":
        raw = np.take(_cpu_bounds(scores.dtype), packed.view(np.uint8))
        bounds = torch.from_numpy(raw.view(np.uint8)).view(scores.dtype)
    else:
        index = torch.from_numpy(packed.view(np.uint8)).to(scores.device).to(torch.int32)
        bounds = _device_bounds(scores.dtype, scores.device).index_select(0, index.view(-1))
    return torch.minimum(scores, bounds.view(rows, -1)[:, :width])


@lru_cache(maxsize=32)
def _device_bounds(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """``dtype[256, 8]``: for each byte the bounds of its bits, lowest bit first."""
    bits = (torch.arange(256)[:, None] >> torch.arange(8)) & 1
    return torch.where(bits == 1, torch.inf, -torch.inf).to(dtype).to(device)


@lru_cache(maxsize=8)
def _cpu_bounds(dtype: torch.dtype) -> NDArray[Any]:
    """The same table as 256 opaque numpy items of eight scores each: numpy has no bfloat16, an item is one copy."""
    raw = _device_bounds(dtype, torch.device("cpu")).view(torch.uint8).numpy()
    return raw.view(f"V{raw.shape[1]}").reshape(256)
