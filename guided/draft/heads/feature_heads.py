"""Heads that write features, one after the other: EAGLE-1, EAGLE-3, and what their drafter asks of such heads.

At position i a head reads the target's feature of token i and the embedding of token i + 1, and gives what stands for
the feature of token i + 1, from which token i + 2 is scored; where the target has no features yet, it reads its own.
Tensors have the names of SafeAILab/EAGLE's checkpoints.  Drafting with them is `Eagle`, their training `fit_features`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from guided.draft.heads.decoder_block import BlockSizes, DecoderBlock, KeyValues, RMSNorm
from guided.draft.heads.draft_heads import Base, head_rows
from guided.errors import GuidedError, VocabularyError

__all__ = ["Eagle3Head", "EagleHead", "FeatureHead", "fused_blocks", "most_frequent"]


def fused_blocks(layers: int) -> tuple[int, int, int]:
    """The blocks whose outputs EAGLE-3 fuses, of a model with so many: low, middle and high.

    Its code takes the inputs of the blocks 2, n // 2 and n - 3, counted from 0.

    >>> fused_blocks(32)
    (2, 16, 29)
    """
    if layers < 4:
        raise GuidedError(
            f"a model of {layers} blocks has no low, middle and high ones",
            remedy="Name the blocks that the head reads: blocks=.",
        )
    return 2, layers // 2, layers - 3


def most_frequent(texts: Sequence[Sequence[int]], width: int, n: int) -> torch.Tensor:
    """The ``n`` ids that come most often in texts, in order of id, ``int64[n]``: VocabTrim's choice (arXiv 2506.22694).

    A head that scores these alone is cheaper by the part of its output matrix; verification is the target's, so that
    nothing changes but what can be drafted.

    >>> most_frequent([[7, 7, 2], [2, 5, 7]], width=8, n=2).tolist()
    [2, 7]
    """
    if not 1 <= n <= width:
        raise GuidedError(f"{n} of {width} ids cannot be kept", remedy=f"Keep 1 to {width}.")
    counts = torch.zeros(width, dtype=torch.long)
    for text in texts:
        counts += torch.bincount(torch.tensor(list(text), dtype=torch.long), minlength=width)
    return counts.argsort(descending=True, stable=True)[:n].sort().values


class FeatureHead(nn.Module):
    """The base class of heads that write features.  ``ids``, ``int64[n]``: the ids it scores; None: all.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> head = draft.EagleHead(draft.BlockSizes(4, 8, 1, 1, 4), base, ids=torch.tensor([0, 1, 2]))
    >>> scores = head.logits(torch.zeros(1, 4))  # ids that the head does not know are left out
    >>> scores.isfinite().tolist()
    [[True, True, True, False]]
    """

    blocks: tuple[int, ...] = ()
    """The target's blocks whose outputs are its features; none: the state that its own head reads."""
    parts: list[DecoderBlock]

    def __init__(self, base: Base, ids: torch.Tensor | None = None) -> None:
        super().__init__()
        self.width = int(base.embeddings.shape[0])
        self.base = head_rows(base)
        """A sample of the target's output matrix, by which it is known again."""
        self.register_buffer("embeddings", base.embeddings.detach(), persistent=False)
        self.register_buffer("ids", ids, persistent=False)
        self.embeddings: torch.Tensor
        self.ids: torch.Tensor | None

    def caches(self) -> list[KeyValues]:
        """Empty keys and values for each block."""
        return [KeyValues() for _ in self.parts]

    def inputs(self, features: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What the first block reads of features ``[B, n, f]`` and the next tokens ``[B, n]``: states, and beside."""
        raise NotImplementedError

    def trimmed(self, outputs: torch.Tensor) -> torch.Tensor:
        """The scores of ``ids``, ``[..., n]``, or of all ids where those are None."""
        raise NotImplementedError

    def forward(
        self,
        features: torch.Tensor,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor,
        past: Sequence[KeyValues],
    ) -> torch.Tensor:
        """The features that are foreseen, ``[B, n, d]``; caches in ``past`` grow by n positions.

        ``features`` are the target's or the head's own; ``mask``, ``bool[n, past + n]``, is what each position sees.
        """
        states, beside = self.inputs(features, tokens)
        for number, (block, cache) in enumerate(zip(self.parts, past, strict=True)):
            states = block(states, positions, mask, cache, beside if number == 0 else None)
        return states

    def settings(self) -> dict[str, Any]:
        """What its ``config.json`` says."""
        raise NotImplementedError

    def save(self, folder: Path | str) -> None:
        """Write weights in float16 and settings in the layout that `load_published` reads."""
        from safetensors.torch import save_file

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().half().contiguous().cpu() for name, value in self.state_dict().items()}
        if self.ids is not None:
            ids = self.ids.cpu()
            weights["d2t"] = ids - torch.arange(ids.numel())
            weights["t2d"] = torch.zeros(self.width, dtype=torch.bool).index_fill(0, ids, True)
        save_file(weights, str(folder / "model.safetensors"), {"format": "pt"})
        scored = self.width if self.ids is None else int(self.ids.numel())
        config = {"vocab_size": self.width, "draft_vocab_size": scored, **self.settings(), "base": self.base}
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")

    def logits(self, outputs: torch.Tensor) -> torch.Tensor:
        """The scores ``[..., width]`` of what follows; -inf for ids that the head does not know."""
        found = self.trimmed(outputs)
        if self.ids is None:
            return found
        return found.new_full((*found.shape[:-1], self.width), -torch.inf).index_copy(-1, self.ids, found)


class EagleHead(FeatureHead):
    """EAGLE-1 and 2: one linear layer over embedding and feature, then blocks, the first without its normalisation.

    Features are those that the target's own output matrix reads, and what the head foresees is scored by it.  (Li et
    al., 2024, arXiv 2401.15077, and 2406.16858, which changes the tree alone.)

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> head = draft.EagleHead(draft.BlockSizes(4, 8, 1, 1, 4), base)
    >>> isinstance(head, draft.FeatureHead), len(head.parts), sorted(head.settings())[:2]
    (True, 1, ['attention_bias', 'head_dim'])
    """

    def __init__(
        self, sizes: BlockSizes, base: Base, *, n_blocks: int = 1, bias: bool = True, ids: torch.Tensor | None = None
    ) -> None:
        super().__init__(base, ids)
        _check_width(sizes, base)
        self.fc = nn.Linear(2 * sizes.hidden_size, sizes.hidden_size, bias=bias)
        self.layers = nn.ModuleList(DecoderBlock(sizes, normed=number > 0) for number in range(n_blocks))
        rows = base.unembeddings.detach()
        self.register_buffer("unembeddings", rows if ids is None else rows[ids.to(rows.device)], persistent=False)
        self.unembeddings: torch.Tensor
        self.sizes = sizes

    def settings(self) -> dict[str, Any]:
        """A Llama's keys."""
        return {**asdict(self.sizes), "num_hidden_layers": len(self.layers)}

    @property
    def parts(self) -> list[DecoderBlock]:  # type: ignore[override]
        """Its blocks."""
        return [block for block in self.layers if isinstance(block, DecoderBlock)]

    def inputs(self, features: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Embedding and feature side by side through the linear layer."""
        return self.fc(torch.cat([self.embeddings[tokens].to(features.dtype), features], dim=-1)), None

    def trimmed(self, outputs: torch.Tensor) -> torch.Tensor:
        """By the target's output matrix."""
        return (outputs.to(self.unembeddings.dtype) @ self.unembeddings.T).to(outputs.dtype)


class Eagle3Head(FeatureHead):
    """EAGLE-3: outputs of several blocks fused by a linear layer, and one block that reads them beside the embedding.

    (Li et al., 2025, arXiv 2503.01840.)  Its features need not be like the target's.  It has a normalisation and an
    output matrix of its own, which scores ``ids``.  ``inputs_width`` is the width of the target's features together.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> head = draft.Eagle3Head(draft.BlockSizes(4, 8, 1, 1, 4), base, inputs_width=12, blocks=(1, 3, 5))
    >>> head.blocks, tuple(head.inputs(torch.zeros(1, 2, 12), torch.tensor([[1, 2]]))[0].shape)
    ((1, 3, 5), (1, 2, 4))
    """

    def __init__(
        self,
        sizes: BlockSizes,
        base: Base,
        inputs_width: int,
        *,
        blocks: tuple[int, ...] = (),
        ids: torch.Tensor | None = None,
    ) -> None:
        super().__init__(base, ids)
        d = sizes.hidden_size
        if int(self.embeddings.shape[1]) != d:
            raise VocabularyError(
                f"the embedding matrix has {self.embeddings.shape[1]} columns, and the head reads {d}",
                remedy="Give the head's own embeddings, or those of the model it was made for.",
            )
        self.sizes = sizes
        self.blocks = blocks
        self.inputs_width = inputs_width
        self.fc = nn.Linear(inputs_width, d, bias=False)
        self.midlayer = DecoderBlock(sizes, beside=True)
        self.norm = RMSNorm(d, sizes.rms_norm_eps)
        self.lm_head = nn.Linear(d, self.width if ids is None else int(ids.numel()), bias=False)

    def settings(self) -> dict[str, Any]:
        """A Llama's keys, and the blocks that are read: a key of ours, since the published code knows only its own."""
        return {**asdict(self.sizes), "num_hidden_layers": 1, "target_blocks": list(self.blocks)}

    @property
    def parts(self) -> list[DecoderBlock]:  # type: ignore[override]
        """Its one block."""
        return [self.midlayer]

    def inputs(self, features: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The target's features fused, the head's own as they are; the embedding beside."""
        read = self.fc(features) if features.shape[-1] == self.inputs_width else features
        return read, self.embeddings[tokens].to(read.dtype)

    def trimmed(self, outputs: torch.Tensor) -> torch.Tensor:
        """By its own output matrix."""
        found: torch.Tensor = self.lm_head(self.norm(outputs))
        return found


def _check_width(sizes: BlockSizes, base: Base) -> None:
    if int(base.embeddings.shape[1]) != sizes.hidden_size:
        raise VocabularyError(
            f"the base has states of {base.embeddings.shape[1]} numbers, and the head reads {sizes.hidden_size}",
            remedy="Use a head that was trained on this model.",
        )
