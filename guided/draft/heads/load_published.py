"""`load_published`: draft heads from the checkpoints that their authors publish, by their tensors' names.

Layouts: Medusa (``medusa_lm_head.pt``, FasterDecoding/Medusa), Hydra (``hydra_lm_head.pt``, zankner/Hydra, of the kinds
``mlp`` and ``prefix-mlp``), EAGLE-1 and
2 and EAGLE-3 (``fc``, ``layers`` or ``midlayer``, SafeAILab/EAGLE), ReDrafter (``rnn_u``, apple/ml-recurrent-drafter).
Every tensor of a file is used, or is one of those that its own code does not use either.  Nothing is downloaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from guided.draft.heads.decoder_block import BlockSizes
from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings, check_base
from guided.draft.heads.feature_heads import Eagle3Head, EagleHead, FeatureHead, fused_blocks
from guided.draft.heads.prefixed import PrefixedHeads
from guided.draft.heads.published_heads import PublishedHydra, PublishedMedusa, RecurrentHeads
from guided.errors import GuidedError, UnsupportedError

__all__ = ["load_published"]

FILES = (
    "medusa_lm_head.safetensors", "medusa_lm_head.pt", "hydra_lm_head.safetensors", "hydra_lm_head.pt",
    "model.safetensors", "pytorch_model.bin",
)  # fmt: skip
BEAM_LENGTH = 4
"""How far ReDrafter's head is asked: its code's beams have four tokens after the one that the target gave."""
OF_MODEL = "configuration of the model"
"""The key under which layouts find it."""
Tensors = dict[str, torch.Tensor]


def load_published(
    folder: Path | str, base: Base, *, layers: int | None = None, model: Mapping[str, Any] | None = None
) -> DraftHeads | FeatureHead | PrefixedHeads:
    """The heads of a checkpoint's folder, which has a ``config.json`` and one file of tensors.

    ``base`` is the model that they were trained on, and ``layers`` its number of blocks, which EAGLE-3's heads read by.
    ``model`` is its own configuration, which says what Hydra's prefix block is like where its ``config.json`` does not.
    Raises `GuidedError` for a folder without such files, with tensors that are missing or of other shapes, or that
    nobody reads.  Raises `VocabularyError` for another base, as far as that is known, and `UnsupportedError` for
    layouts and kinds that are not known.

    >>> import numpy as np
    >>> import torch
    >>> import tempfile
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> folder = tempfile.mkdtemp()
    >>> draft.EagleHead(draft.BlockSizes(4, 8, 1, 1, 4), base).save(folder)  # in the authors' layout
    >>> type(draft.load_published(folder, base)).__name__
    'EagleHead'
    """
    folder = Path(folder)
    config_file = folder / "config.json"
    file = next((folder / name for name in FILES if (folder / name).is_file()), None)
    if not config_file.is_file() or file is None:
        raise GuidedError(
            f"{folder} is no checkpoint of draft heads",
            remedy=f"Give a folder with config.json and one of {', '.join(FILES)}.",
        )
    config = json.loads(config_file.read_text(encoding="utf-8")) | {OF_MODEL: model}
    tensors = _tensors(file)
    for knows, read in LAYOUTS:
        if knows(config, tensors):
            # A key of ours: files of others do not say what they were trained on.
            check_base(base, config.get("base", ()))
            heads, named = read(config, tensors, base, layers)
            _fill(heads, named, folder)
            return heads.to(base.unembeddings.device).eval()
    raise UnsupportedError(
        f"{folder} has no known layout of draft heads; its tensors are {', '.join(sorted(tensors)[:4])}, ...",
        remedy="Give heads in the layout of Medusa, Hydra, EAGLE or ReDrafter.",
    )


def _tensors(file: Path) -> Tensors:
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(str(file))
    found = torch.load(file, map_location="cpu", weights_only=True)
    return dict(found)


def _fill(heads: nn.Module, named: Tensors, folder: Path) -> None:
    """Give the heads their weights; every one of them, and nothing else."""
    wanted = heads.state_dict()
    wrong = sorted(wanted.keys() ^ named.keys()) or [n for n in wanted if wanted[n].shape != named[n].shape]
    if wrong:
        raise GuidedError(
            f"the tensors of {folder} are not those that its config.json speaks of: {', '.join(wrong[:4])}",
            remedy="Give the files as they were published, and the model that they were trained on.",
        )
    heads.load_state_dict({name: value.float() for name, value in named.items()})


def _settings(kind: str, heads: int, base: Base, blocks: int) -> HeadSettings:
    width, hidden = base.unembeddings.shape
    return HeadSettings(kind, heads, int(hidden), int(width), blocks)


Read = tuple[DraftHeads | FeatureHead | PrefixedHeads, Tensors]


def _medusa(config: Mapping[str, Any], tensors: Tensors, base: Base, _: int | None) -> Read:
    named = {re.sub(r"^(?:medusa_head\.|heads\.)?(?=\d)", "medusa_head.", name): t for name, t in tensors.items()}
    count, blocks = int(config["medusa_num_heads"]), int(config.get("medusa_num_layers", 1))
    # The published configurations say 2 heads where 5 were trained: the tensors decide.
    heads = {int(name.split(".")[1]) for name in named if name.startswith("medusa_head.")}
    return PublishedMedusa(_settings("medusa", max(heads, default=count - 1) + 1, base, blocks), base), named


def _hydra(config: Mapping[str, Any], tensors: Tensors, base: Base, _: int | None) -> Read:
    kind, offset = config.get("hydra_head_arch", "mlp"), int(config.get("hidden_state_offset", 0))
    if kind not in ("mlp", "prefix-mlp") or offset:
        raise UnsupportedError(
            f"Hydra heads of the kind {kind!r} with states {offset} blocks before the last",
            where="config.json",
            remedy='Use heads of the kind "mlp" or "prefix-mlp" on the last hidden state.',
        )
    if kind == "prefix-mlp":
        return _prefixed_hydra(config, tensors, base)
    layers = sorted({int(n.split(".")[2]) for n in tensors if n.startswith("hydra_mlp.0.")})
    named = {}
    for name, tensor in tensors.items():
        # Layers of dropout stand between the others in some versions, and count.
        if name.startswith("hydra_mlp."):
            parts = name.split(".")
            parts[2] = str(layers.index(int(parts[2])))
            name = ".".join(parts)
        named[re.sub(r"^(hydra_lm_head\.\d+)\.\d+\.", r"\1.", name)] = tensor
    settings = _settings("hydra", int(config["hydra_num_heads"]), base, int(config.get("hydra_num_layers", 1)))
    grounded = bool(config.get("grounded_heads", True))
    return PublishedHydra(settings, base, grounded=grounded, bias="hydra_lm_head.0.bias" in named), named


def _prefixed_hydra(config: Mapping[str, Any], tensors: Tensors, base: Base) -> Read:
    """A Llama of one block before heads of the kind ``mlp``; its embeddings are not used."""
    sizes = config if "num_attention_heads" in config else config[OF_MODEL]
    if sizes is None:
        raise GuidedError(
            "Hydra's prefix block is one of its model's, and config.json does not say what that is like",
            remedy="Pass the model's configuration: model=config.to_dict().",
        )
    prefix = {name: tensor for name, tensor in tensors.items() if name.startswith("prefix_embeding_layer.")}
    heads, own = _hydra(
        {**config, "hydra_head_arch": "mlp"}, {n: t for n, t in tensors.items() if n not in prefix}, base, None
    )
    assert isinstance(heads, DraftHeads)
    named = {f"heads.{name}": tensor for name, tensor in own.items()}
    for name, tensor in prefix.items():
        name = name.removeprefix("prefix_embeding_layer.")
        if name != "embed_tokens.weight" and not name.endswith("rotary_emb.inv_freq"):
            named[re.sub(r"^layers\.0\.", "block.", name)] = tensor
    return PrefixedHeads(heads, BlockSizes.of(sizes)), named


def _recurrent(config: Mapping[str, Any], tensors: Tensors, base: Base, _: int | None) -> Read:
    settings = _settings("redrafter", BEAM_LENGTH, base, int(config["num_draft_layers"]))
    heads = RecurrentHeads(settings, base, exit_size=int(config["exit_dim"]), rnn=bool(config.get("rnn", False)))
    return heads, tensors


def _eagle(config: Mapping[str, Any], tensors: Tensors, base: Base, _: int | None) -> Read:
    base, named = _own_embeddings(tensors, base)
    ids = _known_ids(config, named)
    sizes, n_blocks = BlockSizes.of(config), int(config.get("num_hidden_layers", 1))
    head = EagleHead(sizes, base, n_blocks=n_blocks, bias="fc.bias" in named, ids=ids)
    return head, named


def _eagle3(config: Mapping[str, Any], tensors: Tensors, base: Base, layers: int | None) -> Read:
    chosen = config.get("target_blocks")
    if layers is None and chosen is None:
        raise GuidedError(
            "a head of EAGLE-3 reads blocks of its model by their number", remedy="Say how many there are: layers=."
        )
    base, named = _own_embeddings(tensors, base)
    ids = _known_ids(config, named)
    blocks = fused_blocks(layers or 0) if chosen is None else tuple(map(int, chosen))
    return Eagle3Head(BlockSizes.of(config), base, int(named["fc.weight"].shape[1]), blocks=blocks, ids=ids), named


def _known_ids(config: Mapping[str, Any], named: Tensors) -> torch.Tensor | None:
    """The ids that a head scores, by the tables that are taken out of its tensors; None: all."""
    offsets, known = named.pop("d2t", None), named.pop("t2d", None)
    if offsets is None or int(config.get("draft_vocab_size", 0)) == int(config["vocab_size"]):
        return None
    ids = torch.arange(offsets.numel()) + offsets.long()
    if known is not None and known.nonzero()[:, 0].tolist() != ids.tolist():
        raise GuidedError("t2d and d2t of the checkpoint name other ids", remedy="Give the files as published.")
    return ids


def _own_embeddings(tensors: Tensors, base: Base) -> tuple[Base, Tensors]:
    """The base with the embeddings that a checkpoint brings, and its other tensors without computed frequencies."""
    named = {name: tensor for name, tensor in tensors.items() if not name.endswith("rotary_emb.inv_freq")}
    own = named.pop("embed_tokens.weight", None)
    if own is None:
        return base, named
    return Base(own.float().to(base.embeddings.device), base.unembeddings), named


Knows = Callable[[Mapping[str, Any], Tensors], bool]
Reads = Callable[[Mapping[str, Any], Tensors, Base, int | None], Read]
LAYOUTS: tuple[tuple[Knows, Reads], ...] = (
    (lambda config, _: "medusa_num_heads" in config, _medusa),
    (lambda config, _: "hydra_num_heads" in config, _hydra),
    (lambda _, tensors: "midlayer.self_attn.q_proj.weight" in tensors, _eagle3),
    (lambda _, tensors: "fc.weight" in tensors and "layers.0.self_attn.q_proj.weight" in tensors, _eagle),
    (lambda config, _: "exit_dim" in config and "num_draft_layers" in config, _recurrent),
)
