"""`MaskFilling`: a network that sees prompt and canvas both ways, and fills mask tokens.

The ``*ForMaskedLM`` classes of transformers, LLaDA, and Dream, whose output at a place is about the next one
(``shifted``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided.diffusion import Canvas, Noise
from guided.diffusion.denoiser import check_canvases
from guided.errors import GuidedError, UnsupportedError

__all__ = ["MaskFilling", "to_numpy", "without"]


class MaskFilling:
    """A masked denoiser of a network ``model(input_ids=[B, T]).logits``.

    ``after`` are ids that follow every canvas, such as BERT's separator.  Raises `UnsupportedError` without a mask
    token, and where a shifted network is given no prompt, of whose last token its first score is.  One forward pass for
    each length of prompt: rows are not padded, because not every network ignores padding.
    """

    noise = Noise.MASKED
    block = None
    window: int | None = None

    def __init__(
        self,
        model: Any,
        *,
        mask_id: int | None,
        eos_ids: Iterable[int] = (),
        pad_id: int | None = None,
        longest: int | None = None,
        shifted: bool = False,
        after: Sequence[int] = (),
    ) -> None:
        if mask_id is None:
            raise UnsupportedError(
                "the model has no mask token, so it cannot be told which positions to fill",
                remedy="Pass mask_id=, the id that it was trained with, or use a model of transformers' ForMaskedLM.",
            )
        self.model = model
        self.mask_id = int(mask_id)
        self.eos_ids = frozenset(map(int, eos_ids))
        self.pad_id = pad_id
        self.width = int(model.get_input_embeddings().num_embeddings)
        self.longest = None if longest is None else longest - len(after)
        self.shifted = shifted
        self.after = tuple(after)
        self.passes = 0
        """Forward passes so far."""

    @torch.inference_mode()
    def scores(self, canvases: Sequence[Canvas]) -> NDArray[np.float32]:
        """Logits at each position; see `Denoiser.scores`."""
        check_canvases(self, canvases)
        found: list[Any] = [None] * len(canvases)
        lengths = [len(canvas.prompt) for canvas in canvases]
        if self.shifted and 0 in lengths:
            raise GuidedError("the model scores what follows a token", remedy="Pass a prompt of at least one token.")
        for n_prompt in dict.fromkeys(lengths):
            rows = [row for row, other in enumerate(lengths) if other == n_prompt]
            ids = [[*canvases[row].prompt, *canvases[row].tokens.tolist(), *self.after] for row in rows]
            logits = self.model(input_ids=torch.tensor(ids, device=self.model.device)).logits
            self.passes += 1
            start = n_prompt - self.shifted
            part = to_numpy(logits[:, start : start + len(canvases[0])], self.width)
            for row, each in zip(rows, without(part, (self.mask_id,)), strict=True):
                found[row] = each
        return np.stack(found) if found else np.zeros((0, 0, self.width), np.float32)


def to_numpy(logits: torch.Tensor, width: int) -> NDArray[np.float32]:
    """Logits as an array of its own; ids that have no score get -inf."""
    array = np.full((*logits.shape[:-1], width), -np.inf, np.float32)
    scored = min(width, logits.shape[-1])
    array[..., :scored] = logits[..., :scored].float().cpu().numpy()
    return array


def without(logits: NDArray[np.float32], ids: Iterable[int]) -> NDArray[np.float32]:
    """The same array, in which ids that no text holds cannot be written."""
    logits[..., list(ids)] = -np.inf
    return logits
