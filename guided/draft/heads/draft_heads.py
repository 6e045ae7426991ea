"""What Medusa's and Hydra's heads have in common: what they are asked, their settings, and their files.

Heads read the hidden state of a frozen base model after one token, and score tokens further on.  They use the base's
own embedding and output matrices, which are not stored with them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import nn

from guided.errors import GuidedError, VocabularyError

__all__ = ["Base", "DraftHeads", "HeadSettings", "check_base", "head_rows"]

FORMAT = "guided-draft-heads-1"
SAMPLED = 16
"""Numbers of the base's output matrix that are stored, to know the base again."""


@dataclass(frozen=True)
class Base:
    """The matrices of a frozen model that heads share.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> tuple(base.embeddings.shape), draft.new_heads("medusa", 2, base).settings.width
    ((4, 4), 4)
    """

    embeddings: torch.Tensor
    """``[V, d]``: what tokens are read as."""
    unembeddings: torch.Tensor
    """``[V, d]``: what hidden states are scored by; the same tensor in models that tie them."""


@dataclass(frozen=True)
class HeadSettings:
    """What a file of heads says besides its weights.  Raises `GuidedError` for sizes that heads cannot have.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> settings = draft.new_heads("hydra", 2, base).settings
    >>> settings.kind, settings.heads, settings.hidden, settings.width
    ('hydra', 2, 4, 4)
    """

    kind: str
    heads: int
    """Head j scores the token j + 1 places after the one whose hidden state it reads, for j from 1."""
    hidden: int
    width: int
    blocks: int = 1
    """Residual blocks of each head."""
    accuracies: tuple[tuple[float, ...], ...] = ()
    """For each head, how often its best, second best, ... token came true on the texts it was calibrated on."""
    base: tuple[float, ...] = ()
    """A sample of the base's output matrix."""

    def __post_init__(self) -> None:
        if self.heads < 1 or self.blocks < 0 or self.hidden < 1 or self.width < 2:
            raise GuidedError(
                f"heads cannot have these sizes: {self.heads} heads, {self.blocks} blocks, {self.hidden} hidden, "
                f"{self.width} ids",
                remedy="Give one or more heads, the base's hidden size and its number of ids.",
            )


class DraftHeads(nn.Module):
    """The base class of heads on a frozen model.

    Raises `VocabularyError` for a base that the heads were not made for, and `GuidedError` for settings of other heads.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> prompts, texts = [[0]], [[1, 2, 0, 1, 2, 0, 1, 2]]
    >>> heads = draft.new_heads("medusa", 2, base)
    >>> examples = draft.head_examples(model, prompts, texts, 2)
    >>> _ = draft.fit_heads(heads, examples, epochs=15, batch=8, rate=0.3)
    >>> state = torch.eye(4)[[0]]  # the last token was 0, and the model has said 1
    >>> heads(state, torch.tensor([[1]])).argmax(-1).tolist(), heads(state, torch.tensor([[1, 2]])).argmax(-1).tolist()
    ([2], [0])
    """

    kind: str | None = None
    """What the settings of such heads are called; None: they are not told by a name."""
    sequential: bool
    """Whether the tokens in between matter, and not only how many there are."""
    embeddings: torch.Tensor
    unembeddings: torch.Tensor

    def __init__(self, settings: HeadSettings, base: Base) -> None:
        if self.kind not in (None, settings.kind):
            raise GuidedError(f"these are {settings.kind} heads", remedy="Use guided.draft.load_heads.")
        super().__init__()
        for name, matrix in (("embedding", base.embeddings), ("output", base.unembeddings)):
            if tuple(matrix.shape) != (settings.width, settings.hidden):
                raise VocabularyError(
                    f"the {name} matrix of the base is {tuple(matrix.shape)}, and the heads are made for "
                    f"{(settings.width, settings.hidden)}",
                    remedy="Use heads that were trained on this model.",
                )
        check_base(base, settings.base)
        self.settings = replace(settings, base=head_rows(base))
        self.register_buffer("embeddings", base.embeddings.detach(), persistent=False)
        self.register_buffer("unembeddings", base.unembeddings.detach(), persistent=False)

    def forward(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The scores ``[n, V]`` of the token after ``tokens``, ``int64[n, j]`` with j from 1 to the number of heads.

        ``hidden``, ``float32[n, d]``, are the base's states before those tokens.  Raises `GuidedError` for more tokens
        than there are heads.
        """
        count = tokens.shape[1]
        if not 1 <= count <= self.settings.heads:
            raise GuidedError(
                f"there are {self.settings.heads} heads, and none looks {count} tokens ahead",
                remedy="Ask for 1 to the number of heads.",
            )
        return self.scored(self.states(hidden, tokens), count)

    def scored(self, states: torch.Tensor, count: int) -> torch.Tensor:
        """The scores ``[n, V]`` of what a head made of ``count`` tokens; by the base's output matrix."""
        return (states.to(self.unembeddings.dtype) @ self.unembeddings.T).to(states.dtype)

    def states(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """What is scored by the base's output matrix, ``[n, d]``."""
        raise NotImplementedError

    def save(self, path: Path | str) -> None:
        """Write the weights in float16 and the settings into one safetensors file."""
        from safetensors.torch import save_file

        weights = {name: value.detach().half().contiguous().cpu() for name, value in self.state_dict().items()}
        save_file(weights, str(path), {"format": FORMAT, "settings": json.dumps(asdict(self.settings))})

    def read(self, path: Path | str) -> None:
        """Take the weights of a file."""
        from safetensors.torch import load_file

        self.load_state_dict({name: value.float() for name, value in load_file(str(path)).items()})


def stored_settings(path: Path | str) -> HeadSettings:
    """The settings in a file of heads; raises `GuidedError` for other files."""
    from safetensors import safe_open

    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata() or {}
    if metadata.get("format") != FORMAT:
        raise GuidedError(
            f"{path} holds no draft heads", remedy="Give a file that DraftHeads.save wrote, or train: fit_heads."
        )
    found = json.loads(metadata["settings"])
    found["accuracies"] = tuple(map(tuple, found["accuracies"]))
    found["base"] = tuple(found["base"])
    return HeadSettings(**found)


def check_base(base: Base, sample: Sequence[float]) -> None:
    """Raise `VocabularyError` for another base than that of a sample; an empty one fits all."""
    if sample and not torch.allclose(torch.tensor(head_rows(base)), torch.tensor(sample), rtol=0.02, atol=1e-3):
        raise VocabularyError(
            "the heads were trained on another model of the same sizes",
            remedy="Use heads that were trained on this model, or train some: guided.draft.fit_heads.",
        )


def head_rows(base: Base) -> tuple[float, ...]:
    """A sample of numbers of the base's output matrix, by which it is known again."""
    flat = base.unembeddings.detach().reshape(-1)
    places = torch.linspace(0, flat.numel() - 1, SAMPLED, dtype=torch.float64).long()
    return tuple(round(float(value), 4) for value in flat[places.to(flat.device)].float().cpu())


def residual_blocks(hidden: int, blocks: int) -> nn.ModuleList:
    """Layers of residual blocks, 0 at first: a head begins as the base's own."""
    layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(blocks))
    for layer in layers:
        assert isinstance(layer, nn.Linear)
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    return layers


def through_blocks(states: torch.Tensor, layers: Sequence[nn.Module] | nn.ModuleList) -> torch.Tensor:
    """``x + silu(linear(x))`` for each layer."""
    for layer in layers:
        states = states + nn.functional.silu(layer(states))
    return states
