"""What a model of transformers is made of: decoder, blocks, final normalisation, attention heads, kinds of masks.

Names differ between model classes, so parts are found by what they are and checked by what they do; a part that cannot
be found turns off the ability that needs it, and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn
from transformers.cache_utils import CacheLayerMixin, DynamicCache

from guided.errors import UnsupportedError
from guided.hf.cache.row_cache import LayerKind

__all__ = ["Architecture", "MaskKind"]

ATTENTION = ("self_attn", "attn", "attention", "self_attention", "SelfAttention")
KNOWN_LIMITS = (
    "sliding_window", "use_sliding_window", "max_window_layers", "sliding_window_pattern", "_sliding_window_pattern",
    "attention_chunk_size", "num_local_experts",
)  # fmt: skip
"""Settings with such names that say nothing beyond the layer types."""

PROJECTION = ("o_proj", "c_proj", "out_proj", "dense", "wo", "o")


@dataclass(frozen=True)
class MaskKind:
    """How far the layers of one kind look back."""

    name: str
    """The key under which a model with several kinds expects the mask."""
    window: int | None = None
    """Tokens seen, the own one included; None for all."""
    chunk: int | None = None
    """Length of the chunks that do not see each other."""


class Architecture:
    """The parts of a causal or encoder-decoder language model.

    Raises `UnsupportedError` for a model without a decoder below its head.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = model.config.get_text_config(decoder=True)
        self.encodes = bool(model.config.is_encoder_decoder)
        found = (model.get_decoder(), model.base_model, getattr(model, "model", None))
        decoder = next((part for part in found if isinstance(part, nn.Module) and part is not model), None)
        if decoder is None or model.get_output_embeddings() is None:
            raise UnsupportedError(
                f"{type(model).__name__} has no decoder of its own below its head",
                remedy="Pass a model with a language head, from AutoModelForCausalLM or AutoModelForSeq2SeqLM.",
            )
        self.decoder: nn.Module = decoder

    @property
    def name(self) -> str:
        """The model's class, for messages."""
        return type(self.model).__name__

    @cached_property
    def ties_embeddings(self) -> bool:
        """True where the input and the output embeddings are one matrix."""
        return self.model.get_input_embeddings().weight is getattr(self.model.get_output_embeddings(), "weight", None)

    @cached_property
    def takes_positions(self) -> bool:
        """True where the decoder can be told the position of each token."""
        return "position_ids" in inspect.signature(self.decoder.forward).parameters and not self.encodes

    @cached_property
    def n_layers(self) -> int:
        """Number of cache layers."""
        return int(self.config.num_hidden_layers) if self.blocks is None else len(self.blocks)

    @cached_property
    def mask_kinds(self) -> tuple[MaskKind, ...] | None:
        """The kinds of attention that the layers have; None when some are not attention or not known here."""
        if getattr(self.model, "_is_stateful", False):
            return None
        types = getattr(self.config, "layer_types", None)
        found: dict[str, MaskKind] = {}
        for number, layer in enumerate(self._cache_layers):
            window = getattr(layer, "sliding_window", None)
            if types is not None and number < len(types):
                name = str(types[number])
            elif window is None:
                name = "full_attention"
            else:
                name = (
                    "chunked_attention" if getattr(self.config, "sliding_window", None) is None else "sliding_attention"
                )
            if not isinstance(layer, CacheLayerMixin) and not _is_state(layer):
                continue  # it remembers nothing, or reads what an earlier layer remembers
            if name == "full_attention":
                found[name] = MaskKind(name)
            elif name == "sliding_attention":
                found[name] = MaskKind(name, window=window)
            elif name == "chunked_attention":
                found[name] = MaskKind(name, chunk=window)
            else:
                return None
        return tuple(found.values()) or None

    @cached_property
    def layer_kinds(self) -> tuple[LayerKind, ...] | None:
        """What each layer remembers; None where a kind is not known here.

        Until transformers 5.?? layers that remember states had other interfaces; such models are read again there.
        """
        found: list[LayerKind] = []
        for layer in self._cache_layers:
            if type(layer).__name__ == "DynamicIndexedLayer":
                return None
            n_states = getattr(layer, "number_of_states", 0)
            attends = isinstance(layer, CacheLayerMixin)
            if _is_state(layer) and not n_states:
                return None
            found.append(LayerKind(attends, n_states))
        return tuple(found)

    @cached_property
    def _cache_layers(self) -> Sequence[Any]:
        """The layers of the cache that transformers would make for this model, in the order of its blocks.

        Blocks that read what earlier ones remember come last, and have none in older releases.
        """
        return tuple(DynamicCache(config=self.config).layers)

    @cached_property
    def cache_name(self) -> str:
        """The argument by which the model takes its cache."""
        names = inspect.signature(self.model.forward).parameters
        return "cache_params" if "cache_params" in names else "past_key_values"

    @cached_property
    def position_limit(self) -> int | None:
        """Number of positions that have an embedding of their own; None where positions are not looked up."""
        own = dict(self.decoder.named_children())
        looked_up = any(isinstance(own.get(name), nn.Embedding) for name in ("wpe", "embed_positions"))
        return int(self.config.max_position_embeddings) if looked_up else None

    @cached_property
    def looks_back_otherwise(self) -> bool:
        """True where the configuration limits attention in a way that `mask_kinds` does not know."""
        settings = self.config.to_dict()
        own = [name for name in settings if any(word in name for word in ("window", "chunk", "local"))]
        return any(settings[name] for name in own if name not in KNOWN_LIMITS)

    @cached_property
    def blocks(self) -> nn.ModuleList | None:
        """The decoder's blocks in order."""
        lists = [part for part in self.decoder.children() if isinstance(part, nn.ModuleList)]
        if len(lists) > 1:
            lists = [part for part in lists if len(part) == self.config.num_hidden_layers]
        return lists[0] if len(lists) == 1 else None

    def find_final_norm(self, run: Any) -> nn.Module | None:
        """The module whose output the decoder returns, `nn.Identity` if that is the last block's; None if neither.

        ``run`` makes one forward pass.
        """
        if self.blocks is None:
            return None
        outputs: list[tuple[nn.Module, torch.Tensor]] = []
        returned: list[torch.Tensor] = []

        def keep(module: nn.Module, _: Any, output: Any) -> None:
            tensor = output[0] if isinstance(output, tuple) else output
            if isinstance(tensor, torch.Tensor):
                outputs.append((module, tensor))

        parts = [part for part in self.decoder.children() if not isinstance(part, nn.ModuleList)]
        norms = [part for part in parts if "norm" in type(part).__name__.lower()]
        hooks = [part.register_forward_hook(keep) for part in (*norms, self.blocks[-1])]
        hooks.append(self.decoder.register_forward_hook(lambda _, __, out: returned.append(out[0])))
        try:
            run()
        finally:
            for hook in hooks:
                hook.remove()
        for module, tensor in reversed(outputs):
            if returned and tensor.shape == returned[-1].shape and torch.equal(tensor, returned[-1]):
                return nn.Identity() if module is self.blocks[-1] else module
        return None

    @cached_property
    def head_outputs(self) -> tuple[tuple[nn.Module, int, int], ...] | None:
        """For each block the module that reads the heads' outputs side by side, their number and the width of one."""
        if self.blocks is None:
            return None
        found: list[tuple[nn.Module, int, int]] = []
        for block in self.blocks:
            projection, attention = next(self._projections(block), (None, None))
            if projection is None:
                return None
            n_heads = self._n_heads(attention)
            weight = getattr(projection, "weight", None)
            if n_heads is None or weight is None or weight.dim() != 2:
                return None
            # transformers' Conv1D keeps its weight the other way round.
            width = weight.shape[0] if type(projection).__name__ == "Conv1D" else weight.shape[1]
            if width % n_heads:
                return None
            found.append((projection, n_heads, width // n_heads))
        return tuple(found)

    def _projections(self, block: nn.Module) -> Iterator[tuple[nn.Module, nn.Module]]:
        """The output projection of the block's self-attention, and the attention module."""
        named = dict(block.named_modules())
        for path, module in named.items():
            if path.rsplit(".", 1)[-1] in ATTENTION:
                for name in PROJECTION:
                    part = getattr(module, name, None)
                    if isinstance(part, nn.Module):
                        yield part, module

    def _n_heads(self, attention: nn.Module | None) -> int | None:
        for owner in (attention, self.config):
            for name in ("num_attention_heads", "num_heads", "n_heads", "n_head", "decoder_attention_heads"):
                value = getattr(owner, name, None)
                if isinstance(value, int) and value > 0:
                    return value
        return None


def _is_state(layer: object) -> bool:
    """Whether a layer of a cache remembers states of convolutions or recurrences, in any release of transformers."""
    return any(kind.__name__ == "LinearAttentionCacheLayerMixin" for kind in type(layer).__mro__)
