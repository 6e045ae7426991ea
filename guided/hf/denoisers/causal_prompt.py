"""`CausalPrompt`: a denoiser that reads the prompt causally, and a canvas that sees the prompt and itself both ways.

No prompt sees a canvas, so its keys and values are computed once, and blocks that are finished are read as a prompt is:
the cache is exact.  guided-nano-diffusion is such a network, made by ``examples/train_denoiser``; its output at a place
is about the next one, so the prompt's last token stands before the canvas and sees it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from guided.diffusion import Canvas, Noise
from guided.diffusion.denoiser import check_canvases
from guided.errors import GuidedError
from guided.hf.denoisers.mask_filling import to_numpy, without

__all__ = ["CausalPrompt"]

KeysAndValues = list[tuple[torch.Tensor, torch.Tensor]]

PROMPTS_KEPT = 32
"""Prompts whose keys and values are kept; the one that was used longest ago goes first."""


class CausalPrompt:
    """A masked denoiser of a causal network of transformers that was trained so; its masks are given to it."""

    noise = Noise.MASKED
    block = None
    window: int | None = None

    def __init__(
        self,
        model: Any,
        *,
        mask_id: int,
        eos_ids: Iterable[int] = (),
        longest: int | None = None,
        pad_id: int | None = None,
        window: int | None = None,
    ) -> None:
        self.model = model
        self.mask_id = int(mask_id)
        self.eos_ids = frozenset(map(int, eos_ids))
        self.pad_id = pad_id
        self.width = int(model.get_input_embeddings().num_embeddings)
        self.longest = longest
        self.window = window
        self.passes = 0
        """Forward passes over canvases so far."""
        self.read = 0
        """Tokens of prompts computed so far."""
        self._kept: OrderedDict[tuple[int, ...], KeysAndValues] = OrderedDict()

    @torch.inference_mode()
    def scores(self, canvases: Sequence[Canvas]) -> NDArray[np.float32]:
        """Logits at each position; see `Denoiser.scores`.  A prompt that was seen lately costs nothing."""
        check_canvases(self, canvases)
        if not canvases:
            return np.zeros((0, 0, self.width), np.float32)
        if any(not canvas.prompt for canvas in canvases):
            raise GuidedError("the model scores what follows a token", remedy="Pass a prompt of at least one token.")
        before = [self._prompt(canvas.prompt[:-1]) for canvas in canvases]
        lengths = [len(canvas.prompt) - 1 for canvas in canvases]
        most, own, device = max(lengths), len(canvases[0]) + 1, self.model.device
        ids = torch.tensor([[canvas.prompt[-1], *canvas.tokens.tolist()] for canvas in canvases], device=device)
        real = torch.arange(most, device=device)[None] >= most - torch.tensor(lengths, device=device)[:, None]
        seen = torch.cat([real, real.new_ones(len(canvases), own)], 1)
        positions = torch.tensor(lengths, device=device)[:, None] + torch.arange(own, device=device)[None]
        output = self.model.model(
            input_ids=ids,
            attention_mask=seen[:, None, None, :].expand(-1, 1, own, -1),
            position_ids=positions,
            past_key_values=_joined(before, most) if most else None,
            use_cache=bool(most),
        )
        self.passes += 1
        logits = self.model.lm_head(output.last_hidden_state[:, :-1])
        return without(to_numpy(logits, self.width), (self.mask_id,))

    def _prompt(self, tokens: tuple[int, ...]) -> KeysAndValues:
        """Keys and values ``[1, heads, n, d]`` of each layer; of the longest kept beginning, only the rest is read."""
        if not tokens:
            return []
        if tokens not in self._kept:
            start = max((len(old) for old in self._kept if old == tokens[: len(old)]), default=0)
            cache = DynamicCache(self._kept[tokens[:start]] or None) if start else DynamicCache()
            device = self.model.device
            self.model.model(
                input_ids=torch.tensor([tokens[start:]], device=device),
                position_ids=torch.arange(start, len(tokens), device=device)[None],
                past_key_values=cache,
                use_cache=True,
            )
            self.read += len(tokens) - start
            self._kept[tokens] = [(keys, values) for keys, values, _ in cache]
            if len(self._kept) > PROMPTS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(tokens)
        return self._kept[tokens]


def _joined(before: Sequence[KeysAndValues], most: int) -> DynamicCache:
    """The prompts of a batch as one cache of its own, padded on the left; an empty prompt is all padding."""
    pattern = next(each for each in before if each)

    def padded(keys: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(keys, (0, 0, most - keys.shape[2], 0))

    layers = []
    for number, (keys, values) in enumerate(pattern):
        nothing = (keys[:, :, :0], values[:, :, :0])
        rows = [each[number] if each else nothing for each in before]
        layers.append((torch.cat([padded(row[0]) for row in rows]), torch.cat([padded(row[1]) for row in rows])))
    return DynamicCache(layers)
