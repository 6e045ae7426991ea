"""`SkippedLayers`: a model of transformers run without some of its attention or feed-forward layers.

The skipping model is a second tree of modules over the same tensors: no weight is copied, nothing of the original
is changed, and its cache is its own.  Its use is as a draft for the whole model.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import nn

from guided.draft.models.sublayers import Part, Sublayer
from guided.errors import UnsupportedError
from guided.hf.architecture import ATTENTION, Architecture
from guided.hf.language_model import TransformersModel

__all__ = ["SkippedLayers", "twin_of"]

MLP = ("mlp", "feed_forward", "ffn", "block_sparse_moe")


class SkippedLayers:
    """Builds models that skip layers of ``model``; `guided.draft.Skippable`.

    Raises `UnsupportedError` for models whose blocks are not found, encoder-decoder models, and models that are spread
    over devices.  Halves of blocks can be skipped where a block is the sum of its input and its two halves, which is
    tried out; elsewhere only `first` works.
    """

    def __init__(self, model: TransformersModel) -> None:
        self.model = model
        architecture = Architecture(model.model)
        if architecture.encodes or architecture.blocks is None or getattr(model.model, "hf_device_map", None):
            raise UnsupportedError(
                f"the layers of {architecture.name} cannot be skipped",
                remedy="Draft with guided.draft.auto, or with a smaller model.",
            )
        self.blocks = len(architecture.blocks)

    @cached_property
    def sublayers(self) -> Sequence[Sublayer]:
        """Both halves of all blocks but the first and the last one, which a model cannot do without."""
        if not self._halves_add_up():
            return ()
        return tuple(Sublayer(block, part) for block in range(1, self.blocks - 1) for part in Part)

    def without(self, skipped: frozenset[Sublayer]) -> TransformersModel:
        """The model without these halves; a block that loses both is left out altogether.

        Raises `UnsupportedError` for halves that the model needs.
        """
        unknown = skipped - set(self.sublayers)
        if unknown:
            names = ", ".join(sorted(map(str, unknown)))
            raise UnsupportedError(
                f"{type(self.model.model).__name__} cannot be run without {names}",
                remedy="Skip some of SkippedLayers.sublayers.",
            )
        kept = [b for b in range(self.blocks) if not all(Sublayer(b, part) in skipped for part in Part)]
        halves = {Sublayer(kept.index(s.block), s.part) for s in skipped if s.block in kept}
        return self._built(kept, halves)

    def first(self, blocks: int) -> TransformersModel:
        """The first blocks with the final normalisation and the head.

        Raises `UnsupportedError` for a number of blocks that it does not have.
        """
        if not 1 <= blocks <= self.blocks:
            raise UnsupportedError(
                f"{type(self.model.model).__name__} has no first {blocks} blocks", remedy=f"Give 1 to {self.blocks}."
            )
        return self._built(list(range(blocks)), set())

    def _built(self, kept: Sequence[int], halves: set[Sublayer]) -> TransformersModel:
        twin = twin_of(self.model.model, kept, halves)
        return TransformersModel(twin, eos_ids=self.model.eos_ids, caching=self.model.caching)

    def _halves_add_up(self) -> bool:
        """Whether a block without its halves hands on its input as it is."""
        if self.blocks < 3:
            return False
        ids = torch.arange(1, 6, device=self.model.model.get_input_embeddings().weight.device)[None]
        both = {Sublayer(1, part) for part in Part}
        try:
            emptied = twin_of(self.model.model, range(self.blocks), both)
            left_out = twin_of(self.model.model, [b for b in range(self.blocks) if b != 1], set())
            with torch.inference_mode():
                one = emptied(input_ids=ids, use_cache=False).logits
                other = left_out(input_ids=ids, use_cache=False).logits
        except (UnsupportedError, TypeError, ValueError, RuntimeError):
            return False
        return bool(torch.equal(one, other))


def twin_of(model: Any, kept: Sequence[int], halves: set[Sublayer]) -> Any:
    """The module tree over the same tensors with these blocks, numbered anew, and without these halves of them."""
    config = copy.deepcopy(model.config)
    inner = config.get_text_config(decoder=True)
    inner.num_hidden_layers = len(kept)
    if vars(inner).get("layer_types"):
        inner.layer_types = [inner.layer_types[block] for block in kept]
    twin = _shared(model, {id(model.config): config, id(model.config.get_text_config(decoder=True)): inner}, {})
    architecture = Architecture(twin)
    blocks = next(
        part
        for part in architecture.decoder.children()
        if isinstance(part, nn.ModuleList) and len(part) == len(Architecture(model).blocks or ())
    )
    chosen = [blocks[block] for block in kept]
    for number, block in enumerate(chosen):
        for module in block.modules():
            if isinstance(getattr(module, "layer_idx", None), int):
                module.layer_idx = number  # type: ignore[assignment]
    for half in halves:
        _empty(chosen[half.block], half.part, architecture.name)
    blocks._modules = {str(number): block for number, block in enumerate(chosen)}
    return twin


def _shared(module: Any, configs: dict[int, Any], done: dict[int, Any]) -> Any:
    """A copy of a tree of modules that holds the same parameters and buffers, without the hooks."""
    if id(module) in done:
        return done[id(module)]
    new = done[id(module)] = copy.copy(module)
    for name, value in list(vars(new).items()):
        if id(value) in configs:
            vars(new)[name] = configs[id(value)]
        elif isinstance(value, OrderedDict) and "hook" in name:
            vars(new)[name] = OrderedDict()
    new._parameters = dict(module._parameters)
    new._buffers = dict(module._buffers)
    new._modules = {
        name: None if child is None else _shared(child, configs, done) for name, child in module._modules.items()
    }
    return new


def _empty(block: nn.Module, part: Part, name: str) -> None:
    """Replace a half of a block by one that adds nothing."""
    children = dict(block.named_children())
    names = [child for child in children if child in (ATTENTION if part is Part.ATTENTION else MLP)]
    if len(names) != 1:
        raise UnsupportedError(
            f"the {part.value} of a block of {name} was not found", remedy="Skip whole blocks: SkippedLayers.first."
        )
    new = _NoAttention() if part is Part.ATTENTION else _NoMLP()
    setattr(block, names[0], new)


class _NoAttention(nn.Module):
    """Adds nothing, and says nothing of weights."""

    def forward(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        states: torch.Tensor = args[0] if args else kwargs["hidden_states"]
        return torch.zeros_like(states), None


class _NoMLP(nn.Module):
    """Adds nothing."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(states)
