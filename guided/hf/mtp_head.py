"""`MtpHead`: the module for multi-token prediction that a model ships, as a head that drafts (DeepSeek-V3, 2412.19437).

Transformers does not load these modules: their tensors are among those that its models ignore.  Here they are read from
the checkpoint's files, into a block of the model's own class, so that whatever attention and experts a model has, its
module has as well.  The state that it reads is the one that the model's output matrix reads, as vLLM gives it.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn
from transformers.cache_utils import DynamicCache

from guided.draft.heads.decoder_block import KeyValues
from guided.draft.heads.eagle import Eagle
from guided.draft.heads.feature_heads import FeatureHead
from guided.errors import GuidedError, UnsupportedError
from guided.hf.architecture import Architecture
from guided.hf.draft_heads import base_of
from guided.hf.language_model import TransformersModel

__all__ = ["MtpHead", "load_mtp"]

NAMES = {
    "fc.": "eh_proj.", "pre_fc_norm_embedding.": "enorm.", "pre_fc_norm_hidden.": "hnorm.", "norm.": "norm.",
    "layers.0.": "block.",
}  # fmt: skip
"""Names below ``mtp.`` (Qwen3-Next and its like) by ours."""
OWN = ("enorm.", "hnorm.", "eh_proj.", "shared_head.norm.", "shared_head.head.", "embed_tokens.")
"""What a layer behind the last one has besides a block's own tensors (DeepSeek-V3, GLM-4.5)."""


class _Past(KeyValues):
    """The keys and values of a block of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = DynamicCache()

    def __len__(self) -> int:
        return int(self.cache.get_seq_length())

    def crop(self, length: int) -> None:
        """Forget all but the first positions."""
        excess = len(self) - length
        if excess > 0:
            self.cache.crop(-excess)


class MtpHead(FeatureHead):
    """Embedding and state, each normalised, through a linear layer and one block of the model's class.

    ``h' = block(W [norm(e(t)); norm(h)])``, scored by a normalisation and an output matrix (equations 21 to 23).  Going
    on, it reads its own states again, as engines do with one module.  Raises `UnsupportedError` for models whose parts
    are not found.
    """

    def __init__(self, model: TransformersModel) -> None:
        super().__init__(base_of(model))
        architecture = Architecture(model.model)
        decoder: Any = architecture.decoder
        norm, rotary = getattr(decoder, "norm", None), getattr(decoder, "rotary_emb", None)
        if architecture.blocks is None or norm is None or rotary is None:
            raise UnsupportedError(
                f"no blocks, final normalisation or rotary positions were found in {architecture.name}",
                remedy="Draft with heads of another kind, or with guided.draft.auto.",
            )
        config = copy.deepcopy(architecture.config)
        if getattr(config, "layer_types", None):
            config.layer_types = [*config.layer_types, "full_attention"]
        layer = type(architecture.blocks[-1])
        d = int(config.hidden_size)
        self.enorm, self.hnorm, self.norm = (copy.deepcopy(norm) for _ in range(3))
        self.eh_proj = nn.Linear(2 * d, d, bias=False)
        self.block = layer(config, architecture.n_layers)
        for module in self.block.modules():
            if isinstance(getattr(module, "layer_idx", None), int):
                module.layer_idx = 0  # type: ignore[assignment]
        self.head = nn.Linear(d, self.width, bias=False)
        self._rotary = [rotary]
        self.to(self.embeddings.device, torch.float32)

    def caches(self) -> list[KeyValues]:
        """One empty cache."""
        return [_Past()]

    def inputs(self, features: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What the block reads."""
        read = self.embeddings[tokens].to(features.dtype)
        return self.eh_proj(torch.cat([self.enorm(read), self.hnorm(features)], dim=-1)), None

    def forward(
        self,
        features: torch.Tensor,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor,
        past: Sequence[KeyValues],
    ) -> torch.Tensor:
        """The states that are foreseen, ``[1, n, d]``."""
        states, _ = self.inputs(features, tokens)
        (cache,) = past
        assert isinstance(cache, _Past)
        hidden = torch.zeros_like(mask, dtype=states.dtype).masked_fill(~mask, torch.finfo(states.dtype).min)
        found = self.block(
            states,
            attention_mask=hidden[None, None],
            position_ids=positions[None],
            past_key_values=cache.cache,
            use_cache=True,
            position_embeddings=self._rotary[0](states, positions[None]),
        )
        after: torch.Tensor = found[0] if isinstance(found, tuple) else found
        return after

    def trimmed(self, outputs: torch.Tensor) -> torch.Tensor:
        """By the module's normalisation and output matrix."""
        scores: torch.Tensor = self.head(self.norm(outputs))
        return scores


def load_mtp(model: TransformersModel, folder: Path | str, *, depth: int = 3, top: int = 4) -> Eagle:
    """A drafter by the first module for multi-token prediction in the files of a model's checkpoint.

    Layouts: ``model.layers.N.*`` behind the last of N blocks (DeepSeek-V3, GLM-4.5) and ``mtp.*`` (Qwen3-Next).  Raises
    `GuidedError` where there is none, or its tensors are not those of the model's blocks.
    """
    head = MtpHead(model)
    architecture = Architecture(model.model)
    behind = f"model.layers.{architecture.n_layers}."
    tensors: dict[str, torch.Tensor] = {}
    for file in _files(Path(folder)):
        with safe_open(str(file), framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - the file is no mapping.
                if name.startswith((behind, "mtp.")):
                    tensors[name] = opened.get_tensor(name)
    if not tensors:
        raise GuidedError(
            f"{folder} has no module for multi-token prediction",
            remedy="Give the files of a model that ships one, as they were published.",
        )
    named = _named(tensors, behind)
    own = named.pop("embed_tokens.weight", None)
    if own is not None:
        head.embeddings = own.float().to(head.embeddings.device)
    base = base_of(model)
    named.setdefault("head.weight", base.unembeddings.cpu())
    wanted = head.state_dict()
    wrong = sorted(wanted.keys() ^ named.keys()) or [n for n in wanted if wanted[n].shape != named[n].shape]
    if wrong:
        raise GuidedError(
            f"the module's tensors in {folder} are not those of a block of this model: {', '.join(wrong[:4])}",
            remedy="Give the files of this model itself.",
        )
    head.load_state_dict({name: value.float() for name, value in named.items()})
    return Eagle(head, depth=depth, top=top)


def _files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        parts = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return [folder / name for name in sorted(set(parts.values()))]
    return sorted(folder.glob("*.safetensors"))


def _named(tensors: dict[str, torch.Tensor], behind: str) -> dict[str, torch.Tensor]:
    """The tensors by the names of `MtpHead`'s; experts, which files have one by one, together."""
    named: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if name.startswith("mtp."):
            rest = name[len("mtp.") :]
            found = next((new + rest[len(old) :] for old, new in NAMES.items() if rest.startswith(old)), rest)
        else:
            rest = name[len(behind) :]
            found = rest.removeprefix("shared_head.") if rest.startswith(OWN) else f"block.{rest}"
        named[found] = tensor
    experts: dict[tuple[str, str], dict[int, torch.Tensor]] = {}
    for name in list(named):
        match = re.fullmatch(r"(.*\.experts)\.(\d+)\.(gate_proj|up_proj|down_proj)\.weight", name)
        if match:
            experts.setdefault((match[1], match[3]), {})[int(match[2])] = named.pop(name)
    for prefix in {prefix for prefix, _ in experts}:
        gate, up, down = (
            torch.stack([experts[prefix, part][i] for i in sorted(experts[prefix, part])])
            for part in ("gate_proj", "up_proj", "down_proj")
        )
        named[f"{prefix}.gate_up_proj"], named[f"{prefix}.down_proj"] = torch.cat([gate, up], dim=1), down
    return named
