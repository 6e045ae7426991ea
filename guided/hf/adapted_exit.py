"""`AdaptedExit`: a model's first blocks, an attention of its own after them, and the model's head: a draft.

Kangaroo (Liu et al., 2024, arXiv 2404.18911): the adapter is one attention with a normalisation before and one after
it, and nothing else; tensors have the names of its code (Equationliu/Kangaroo) where the model is a Llama.  Drafting
ends at a token of which the draft is unsure: `guided.draft.Confidence` in a `Chain`.  Unlike there, the first blocks'
keys and values are the draft's own, and the target reads its drafts from the first block on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from guided.draft.models.sublayers import Part, Sublayer
from guided.errors import GuidedError, UnsupportedError
from guided.hf.architecture import Architecture
from guided.hf.language_model import TransformersModel
from guided.hf.skipped_layers import SkippedLayers, twin_of

__all__ = ["AdaptedExit"]


class AdaptedExit:
    """The draft after ``blocks`` blocks; its adapter begins as the attention of the model's last block.

    ``model`` is the draft, a language model; ``adapter`` its trainable part, for `guided.draft.distil(exit.adapter,
    exit.scoring, target, ...)`.  All other weights are the target's, shared and never trained.  Raises
    `UnsupportedError` for models whose blocks are not the sum of their input and their halves, and for a number of
    blocks that leaves none for the adapter.
    """

    def __init__(self, layers: SkippedLayers, blocks: int) -> None:
        whole = layers.model
        if not layers.sublayers or not 1 <= blocks < layers.blocks:
            raise UnsupportedError(
                f"{type(whole.model).__name__} has no exit after {blocks} of its {layers.blocks} blocks",
                remedy=f"Give 1 to {layers.blocks - 1}, of a model whose blocks are sums of their halves.",
            )
        self.blocks = blocks
        network = twin_of(whole.model, [*range(blocks), layers.blocks - 1], {Sublayer(blocks, Part.MLP)})
        for module in network.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    # Another parameter on the same numbers: what is said of its gradient is not said of the target's.
                    module._parameters[name] = nn.Parameter(parameter.detach(), requires_grad=False)
        self.model = TransformersModel(network, eos_ids=whole.eos_ids, caching=whole.caching)
        architecture, ids = Architecture(network), torch.zeros((1, 2), dtype=torch.long, device=network.device)
        with torch.inference_mode():
            norm = architecture.find_final_norm(lambda: network(input_ids=ids, use_cache=False))
        blocks_left = list(architecture.blocks or ())
        if norm is None or not blocks_left:
            raise UnsupportedError(f"{architecture.name} has no final normalisation", remedy="Use SkippedLayers.first.")
        self.adapter = nn.ModuleDict({"layers": nn.ModuleList(blocks_left[-1:]), "norm": norm})
        for module in self.adapter.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    module._parameters[name] = nn.Parameter(parameter.detach().clone())
        self.scoring(ids).sum().backward()  # type: ignore[no-untyped-call]
        for parameter in self.adapter.parameters():
            # What stood before the feed-forward half changes nothing.
            parameter.requires_grad_(parameter.grad is not None)
            parameter.grad = None

    def scoring(self, tokens: torch.Tensor) -> torch.Tensor:
        """The scores ``[B, n, V]`` after each of the tokens ``int64[B, n]``, with gradients of the adapter."""
        network: Any = self.model.model
        found: torch.Tensor = network(input_ids=tokens.to(network.device), use_cache=False).logits
        return found.float()

    def save(self, path: Path | str) -> None:
        """Write the adapter's weights in float16 into one safetensors file."""
        from safetensors.torch import save_file

        state = self._trained()
        save_file({name: value.half().contiguous().cpu() for name, value in state.items()}, str(path))

    def load(self, path: Path | str) -> None:
        """Take the adapter's weights of a file; raises `GuidedError` for one of another adapter."""
        from safetensors.torch import load_file

        own, found = self._trained(), load_file(str(path))
        if own.keys() != found.keys() or any(own[name].shape != found[name].shape for name in own):
            raise GuidedError(f"{path} holds no adapter of this model", remedy="Train one: guided.draft.distil.")
        for name, value in own.items():
            value.copy_(found[name])

    def _trained(self) -> dict[str, torch.Tensor]:
        named = self.adapter.named_parameters()
        return {name: parameter.detach() for name, parameter in named if parameter.requires_grad}
