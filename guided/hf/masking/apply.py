"""Packed masks onto score tensors: `apply_masks`, in place or to another tensor, on any device.

On the CPU one compiled pass skips the words that forbid nothing and writes one bit pattern elsewhere; on CUDA a Triton
kernel does the same; on any other device, and where there is no Triton, bits are unpacked a block at a time, so that
no tensor of the vocabulary's size is made but the scores themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.batch import mask_rows
from guided.constraint.effects.shared_rows import KeptRow
from guided.constraint.pool import spread
from guided.errors import GuidedError, VocabularyError
from guided.kernels.data.addresses import address

__all__ = ["allocate_masks", "apply_masks", "mask_scores", "mask_threads"]

BLOCK_WORDS = 256
"""Words unpacked at once by the plain path: 8,192 scores a row, a boolean each."""

ROWS_A_THREAD = 4
"""Rows of 128,000 scores that take about as long as it takes to start on another thread, some 30 us each."""

_INTEGERS = {8: torch.int64, 4: torch.int32, 2: torch.int16}


def allocate_masks(batch: int, vocab_size: int, *, pinned: bool = False) -> torch.Tensor:
    """An ``int32[batch, ceil(vocab_size / 32)]`` CPU tensor of zeros for `guided.fill_masks`: everything forbidden.

    ``pinned`` takes page-locked memory, from which copies to a GPU may overlap with its work; raises `GuidedError`
    where there is none.

    >>> allocate_masks(2, 100).shape
    torch.Size([2, 4])
    """
    try:
        return torch.zeros((batch, tokenset.n_words(vocab_size)), dtype=torch.int32, pin_memory=pinned)
    except RuntimeError as error:
        if not pinned:
            raise
        raise GuidedError(
            f"page-locked memory cannot be had: {str(error).splitlines()[0]}", remedy="Leave out pinned=True."
        ) from error


def apply_masks(
    logits: torch.Tensor, bitmask: torch.Tensor | NDArray[Any], *, out: torch.Tensor | None = None, threads: int = 1
) -> torch.Tensor:
    """Set the logits of forbidden tokens to ``-inf``, in place; or write all to ``out`` and leave ``logits`` alone.

    ``logits`` is ``float[rows, width]`` (float16, bfloat16, float32, float64; rows may lie apart), ``bitmask``
    ``int32`` or ``uint32[rows, words]`` as `guided.fill_masks` writes it, on the CPU or the logits' device.  Ids beyond
    the mask (padding of the model's matrix) are forbidden.  Returns the tensor that was written.

    On the CPU, ``threads`` share the rows.  In place, a row costs 2 us where everything is allowed, 6 us where
    nothing is, for 128,256 float32 logits on one core.  Raises `VocabularyError` when the mask allows tokens that the
    logits have no place for.

    >>> apply_masks(torch.tensor([[0.5, 1.5, 2.5]]), np.array([[0b101]], np.uint32))
    tensor([[0.5000,   -inf, 2.5000]])
    """
    rows, width = logits.shape
    masked, words = bitmask.shape
    if masked != rows:
        raise ValueError(f"{masked} masks for {rows} rows of logits")
    if words > tokenset.n_words(width):
        raise VocabularyError(
            f"masks for {32 * words} ids do not fit logits of width {width}",
            remedy="Use the vocabulary of the tokenizer that belongs to this model.",
        )
    target = logits
    if out is not None:
        target = out
        if target.shape != logits.shape or target.dtype != logits.dtype or target.device != logits.device:
            raise ValueError("out must have the shape, dtype and device of the logits")
    if logits.is_cpu and _is_flat(logits) and (out is None or _is_flat(out)):
        masks = np.ascontiguousarray(mask_rows(bitmask if isinstance(bitmask, np.ndarray) else bitmask.cpu()))
        begin, row_bytes = address(masks), 4 * words
        _apply_on_cpu(logits, target, [(begin + row_bytes * row, 1, words) for row in range(rows)], threads)
        return target
    masks_there = torch.as_tensor(bitmask if isinstance(bitmask, torch.Tensor) else bitmask.view(np.int32))
    masks_there = masks_there.to(logits.device, non_blocking=True).view(torch.int32).contiguous()
    if out is not None:
        out.copy_(logits)
    if logits.device.type == "cuda" and _has_triton():
        from guided.hf.masking.triton_masks import apply_on_gpu

        with torch.cuda.device(logits.device):
            apply_on_gpu(target, masks_there)
    else:
        _apply_anywhere(target, masks_there)
    return target


def mask_threads(n_rows: int) -> int:
    """Threads for a batch: as many as torch may use, where each has enough rows to be worth its start."""
    return min(n_rows // ROWS_A_THREAD, torch.get_num_threads()) if n_rows >= 2 * ROWS_A_THREAD else 1


def mask_scores(scores: torch.Tensor, kept: Sequence[KeptRow], threads: int = 1) -> torch.Tensor:
    """A new tensor: ``scores`` where the bit is 1, ``-inf`` elsewhere; see `mask_own_scores`."""
    if scores.is_cpu and _is_flat(scores) and 2 * sum(map(_n_filled, kept)) < sum(row.size for _, row in kept):
        into = torch.empty_like(scores)
        _apply_on_cpu(scores, into, _places(kept, scores.shape[1]), threads)
        return into
    # Inside strings nearly all is allowed: a plain copy, and a pass that touches little, take two thirds.
    return mask_own_scores(scores.clone(), kept, threads)


def mask_own_scores(scores: torch.Tensor, kept: Sequence[KeptRow], threads: int = 1) -> torch.Tensor:
    """`apply_masks` in place, of masks that need not lie side by side and are known to fit.

    Where one is wider than the scores, what is beyond them allows nothing that counts.
    """
    if scores.is_cpu and _is_flat(scores):
        _apply_on_cpu(scores, scores, _places(kept, scores.shape[1]), threads)
        return scores
    words = min(tokenset.n_words(scores.shape[1]), kept[0][1].size)
    return apply_masks(scores, np.stack([row[:words] for _, row in kept]), threads=threads)


def _n_filled(kept: KeptRow) -> int:
    """The words of a mask that allow something."""
    return int(np.count_nonzero(kept[1]))


def _places(kept: Sequence[KeptRow], width: int) -> list[tuple[int, int, int]]:
    """Where masks are, and the words of each that scores of a width have."""
    most = tokenset.n_words(width)
    return [(where, 1, min(row.size, most)) for where, row in kept]


def _is_flat(scores: torch.Tensor) -> bool:
    """Rows of neighbouring numbers that do not overlap, outside of what autograd watches."""
    if scores.requires_grad or (scores.dtype is not torch.float32 and scores.dtype.itemsize not in _INTEGERS):
        return False
    if scores.is_contiguous():
        return True
    rows, width = scores.shape
    return (scores.stride(1) == 1 or width == 1) and (scores.stride(0) >= width or rows == 1)


def _apply_on_cpu(logits: torch.Tensor, into: torch.Tensor, masks: list[tuple[int, int, int]], threads: int) -> None:
    """Masks, each a place as the kernel takes them, on the numbers of logits, to logits themselves or elsewhere."""
    rows, width = logits.shape
    if not rows or not width:
        return
    apply_rows, forbidden, drops, size = _kernel(logits.dtype)
    table = np.array(masks, np.int64)
    source, target = logits.data_ptr(), into.data_ptr()
    source_stride, target_stride = size * logits.stride(0), size * into.stride(0)
    if threads == 1 or rows == 1:
        apply_rows(source, target, source_stride, target_stride, table, width, 0, rows, forbidden, drops)
        return

    def work(low: int, high: int) -> None:
        apply_rows(source, target, source_stride, target_stride, table, width, low, high, forbidden, drops)

    spread(work, rows, threads)


@lru_cache(maxsize=8)
def _kernel(dtype: torch.dtype) -> tuple[Callable[..., None], Any, NDArray[Any], int]:
    """The kernel, minus infinity as an integer, for each byte of a mask all ones where a bit is 0, a score's bytes."""
    from guided.kernels.masking.apply import apply_rows

    integer = _INTEGERS[dtype.itemsize]
    forbidden = torch.tensor([-torch.inf], dtype=dtype).view(integer).numpy()[0]
    drops = np.where((np.arange(256)[:, None] >> np.arange(8)) & 1, 0, -1).astype(forbidden.dtype)
    return apply_rows, forbidden, drops, dtype.itemsize


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _apply_anywhere(scores: torch.Tensor, masks: torch.Tensor) -> None:
    """Plain tensor operations: a block of words at a time is unpacked by shifts."""
    width = scores.shape[1]
    shifts = torch.arange(32, dtype=torch.int32, device=scores.device)
    for first in range(0, masks.shape[1], BLOCK_WORDS):
        words = masks[:, first : first + BLOCK_WORDS]
        forbidden = ((words[:, :, None] >> shifts) & 1 == 0).flatten(1)
        part = scores[:, 32 * first : 32 * first + forbidden.shape[1]]
        part.masked_fill_(forbidden[:, : part.shape[1]], -torch.inf)
    scores[:, min(32 * masks.shape[1], width) :] = -torch.inf
