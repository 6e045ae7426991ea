"""Packed masks onto scores on a GPU: a Triton kernel.  The only file that imports Triton; loaded when it is needed.

With ``TRITON_INTERPRET=1`` in the environment the kernel runs on CPU tensors, which is how it is tested without a GPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

__all__ = ["apply_on_gpu"]

WORDS = 64
"""Words of one program: 2,048 scores, written by coalesced stores of whole warps."""


@triton.jit  # type: ignore[untyped-decorator]
def _apply(  # type: ignore[no-untyped-def]
    scores, row_stride, column_stride, masks, mask_stride, n_words, width, WORDS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    word = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    bits = tl.load(masks + row * mask_stride + word, mask=word < n_words, other=0)
    bit = tl.arange(0, 32)
    at = word[:, None] * 32 + bit[None, :]
    forbidden = ((bits[:, None] >> bit[None, :]) & 1) == 0
    target = scores + row * row_stride + at.to(tl.int64) * column_stride
    tl.store(target, float("-inf"), mask=forbidden & (at < width))


def apply_on_gpu(scores: torch.Tensor, masks: torch.Tensor) -> None:
    """Set forbidden scores (``float[rows, width]``, any strides) to ``-inf``; nothing else is read or written.

    ``masks`` is ``int32[rows, words]`` on the same device, its rows contiguous; scores beyond it are forbidden.
    """
    rows, width = scores.shape
    if not rows or not width:
        return
    grid = (rows, triton.cdiv(triton.cdiv(width, 32), WORDS))
    _apply[grid](
        scores, scores.stride(0), scores.stride(1), masks, masks.stride(0), masks.shape[1], width, WORDS=WORDS
    )  # fmt: skip
