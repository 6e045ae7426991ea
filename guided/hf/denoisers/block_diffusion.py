"""`BlockDiffusion`: DiffusionGemma of transformers, a causal encoder and a decoder that denoises blocks of one length.

The noise is uniform, so the canvas does not say which of its tokens are known.  The decoder's conditioning on its own
last scores is left off, as it is for the first step of transformers' own loop: scores are then a function of the canvas
alone, which is what exact decoding and weights need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided.diffusion import Canvas, Noise
from guided.diffusion.denoiser import check_canvases
from guided.errors import GuidedError
from guided.hf.denoisers.mask_filling import to_numpy

__all__ = ["BlockDiffusion"]


class BlockDiffusion:
    """A denoiser of a ``DiffusionGemmaForBlockDiffusion``.

    One forward pass for each length of prompt, encoder included: the prompt is encoded anew each time.
    """

    noise = Noise.UNIFORM
    mask_id = None
    window = None

    def __init__(self, model: Any, *, eos_ids: Iterable[int] = (), pad_id: int | None = None) -> None:
        self.model = model
        self.eos_ids = frozenset(map(int, eos_ids))
        self.pad_id = pad_id
        self.width = int(model.config.text_config.vocab_size)
        self.block = int(model.config.canvas_length)
        self.longest = int(model.config.text_config.max_position_embeddings)
        self.passes = 0
        """Forward passes of the decoder so far."""

    @torch.inference_mode()
    def scores(self, canvases: Sequence[Canvas]) -> NDArray[np.float32]:
        """Logits at each position; see `Denoiser.scores`."""
        check_canvases(self, canvases)
        found: list[Any] = [None] * len(canvases)
        lengths = [len(canvas.prompt) for canvas in canvases]
        if 0 in lengths:
            raise GuidedError("the encoder reads a prompt", remedy="Pass a prompt of at least one token.")
        for n_prompt in dict.fromkeys(lengths):
            rows = [row for row, other in enumerate(lengths) if other == n_prompt]
            device = self.model.device
            output = self.model(
                input_ids=torch.tensor([canvases[row].prompt for row in rows], device=device),
                decoder_input_ids=torch.tensor(np.stack([canvases[row].tokens for row in rows]), device=device),
            )
            self.passes += 1
            for row, each in zip(rows, to_numpy(output.logits, self.width), strict=True):
                found[row] = each
        return np.stack(found) if found else np.zeros((0, self.block, self.width), np.float32)
