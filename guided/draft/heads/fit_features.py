"""Training heads that write features: `feature_examples`, `fit_features`.

EAGLE-1 trains on the target's features alone and makes the head's own like them; EAGLE-3 lets the head go on by its own
features in training as it will in drafting ("training-time test"), and asks nothing of them but the next token.  Both
are settings here: ``steps`` and ``regression``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from guided.draft.heads.decoder_block import Attention, DecoderBlock
from guided.draft.heads.feature_heads import FeatureHead
from guided.draft.heads.losses import DISCOUNT, DraftLoss, draft_losses
from guided.errors import GuidedError
from guided.lm.model import LanguageModel, Needs
from guided.lm.training import descend

__all__ = ["FeatureExamples", "feature_examples", "fit_features"]


@dataclass(frozen=True)
class FeatureExamples:
    """Texts after their prompts, with what the target makes of them.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> found = draft.feature_examples(model, [[0]], [[1, 2, 0]])
    >>> found.tokens[0].tolist(), found.begins, found.features[0].argmax(-1).tolist()
    ([0, 1, 2, 0], (1,), [0, 1, 2, 0])
    """

    tokens: tuple[torch.Tensor, ...]
    """``int64[n]`` each, prompts included."""
    begins: tuple[int, ...]
    """How many of them are the prompt: what comes later is learned."""
    features: tuple[torch.Tensor, ...]
    """``[n, f]``: what the head reads."""
    hidden: tuple[torch.Tensor, ...]
    """``[n, d]``: what the target's output matrix reads; the same tensors where the head reads these."""

    def __len__(self) -> int:
        return len(self.tokens)


def feature_examples(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    blocks: tuple[int, ...] = (),
    *,
    batch: int = 8,
    dtype: torch.dtype = torch.float32,
) -> FeatureExamples:
    """The target's features of texts after their prompts; one pass of it, two where ``blocks`` are read.

    Texts should be the target's own: then this is the data of direct alignment.  Raises `GuidedError` without texts of
    two tokens, and for another number of texts than prompts.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> found = draft.feature_examples(model, [[0], [1, 2]], [[1, 2, 0], [0, 1]])
    >>> [tuple(each.shape) for each in found.features]  # one state for each token of prompt and text
    [(4, 4), (4, 4)]
    """
    if len(prompts) != len(texts):
        raise GuidedError(f"{len(prompts)} prompts have {len(texts)} texts", remedy="Give one text for each prompt.")
    rows = [(list(p), list(t)) for p, t in zip(prompts, texts, strict=True) if p and len(t) > 1]
    if not rows:
        raise GuidedError("there are no texts to learn from", remedy="Give texts of two tokens or more.")

    def states(needs: Needs) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        for first in range(0, len(rows), batch):
            part = [prompt + text for prompt, text in rows[first : first + batch]]
            sequences = model.start([tokens[:1] for tokens in part], needs)
            beginning = sequences.last.hidden
            rest = sequences.extend([tokens[1:] for tokens in part])
            assert beginning is not None
            for row in range(len(part)):
                new = rest[row].hidden
                assert new is not None
                found.append(torch.cat([beginning[row : row + 1], new]).to(dtype).cpu())
        return found

    hidden = states(Needs(hidden=True))
    return FeatureExamples(
        tuple(torch.tensor(prompt + text, dtype=torch.long) for prompt, text in rows),
        tuple(len(prompt) for prompt, _ in rows),
        tuple(states(Needs(hidden=True, blocks=blocks)) if blocks else hidden),
        tuple(hidden),
    )


def fit_features(
    head: FeatureHead,
    examples: FeatureExamples,
    unembeddings: torch.Tensor,
    *,
    loss: DraftLoss = DraftLoss.FORWARD_KL,
    steps: int = 3,
    regression: float = 0.0,
    epochs: float = 2.0,
    batch: int = 8,
    rate: float = 2e-3,
    seed: int = 0,
    done: Callable[[int, float], bool] | None = None,
) -> float:
    """Train the head; the last averaged loss.

    ``unembeddings`` is the target's output matrix, which gives its law.  ``steps`` is how far the head goes on by its
    own features; ``regression`` weighs the smooth L1 distance of its features from the target's, relative to ``loss``:
    EAGLE-1's paper has 10 and one step, EAGLE-3 has 0.  AdamW, the rate rising over the first twentieth of the steps
    and falling linearly to 0.  ``done`` is told each step and its loss, and stops the training by returning True.
    Raises `GuidedError` for settings that are none, and for regression of features that the head does not write.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> prompts, texts = [[0]], [[1, 2, 0, 1, 2, 0, 1, 2]]
    >>> _ = torch.manual_seed(0)
    >>> head = draft.EagleHead(draft.BlockSizes(4, 8, 1, 1, 4), base)
    >>> examples = draft.feature_examples(model, prompts, texts)
    >>> first = draft.fit_features(head, examples, base.unembeddings, epochs=1, batch=1)
    >>> draft.fit_features(head, examples, base.unembeddings, epochs=15, batch=1, rate=0.1) < first
    True
    """
    if steps < 1 or (regression and examples.features[0].shape[1] != unembeddings.shape[1]):
        raise GuidedError(
            f"a head cannot be trained over {steps} steps with regression {regression}",
            remedy="Take one step or more, and regression=0 for heads that read blocks.",
        )
    return descend(
        head, len(examples), lambda rows: _loss(head, examples, rows, unembeddings, loss, steps, regression),
        epochs=epochs, batch=batch, rate=rate, betas=(0.9, 0.95), decay=0.01, rising=0.05, memory=0.98, seed=seed,
        done=done,
    )  # fmt: skip


def _loss(
    head: FeatureHead,
    examples: FeatureExamples,
    rows: Sequence[int],
    unembeddings: torch.Tensor,
    loss: DraftLoss,
    steps: int,
    regression: float,
) -> torch.Tensor:
    """The mean loss of the places of some texts, later steps weighing less."""
    device = unembeddings.device

    def padded(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence([parts[row] for row in rows], batch_first=True).to(device)

    tokens, features, hidden = (
        padded(examples.tokens),
        padded(examples.features).float(),
        padded(examples.hidden).float(),
    )
    lengths = torch.tensor([len(examples.tokens[row]) for row in rows], device=device)
    begins = torch.tensor([examples.begins[row] for row in rows], device=device)
    # At place i the head reads feature i and token i + 1, and is asked for token i + 2.
    at = torch.arange(tokens.shape[1] - 2, device=device)
    wanted = (at[None] + 2 < lengths[:, None]) & (at[None] + 2 > begins[:, None])
    following, inputs = tokens[:, 1:-1], features[:, :-2]
    outputs = unrolled(head, inputs, following, steps)
    total = inputs.new_zeros(())
    for step, output in enumerate(outputs):
        places = wanted & (at[None] >= step)
        if not places.any():
            continue
        target = hidden[:, 1:-1][places].to(unembeddings.dtype) @ unembeddings.T
        found = draft_losses(loss, head.logits(output[places]), target.float(), tokens[:, 2:][places]).mean()
        if regression:
            near = torch.nn.functional.smooth_l1_loss(output[places], features[:, 1:-1][places])
            found = found + regression * near
        total = total + DISCOUNT**step * found
    return total


def unrolled(head: FeatureHead, features: torch.Tensor, tokens: torch.Tensor, steps: int) -> list[torch.Tensor]:
    """The head's outputs ``[B, n, d]`` for each step: at the target's features, then at its own of the step before.

    At step s, place i stands for a draft whose last feature of the target is that of place i - s: it sees the places up
    to there as the first step read them, and each later place as the step read it that came to it.  Places before s
    mean nothing.
    """
    found: list[torch.Tensor] = []
    keys: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[] for _ in head.parts]
    for step in range(steps):
        if step:
            features = torch.nn.functional.pad(found[-1][:, :-1], (0, 0, 1, 0))
        states, beside = head.inputs(features, tokens)
        for number, block in enumerate(head.parts):
            states = _block(block, states, beside if number == 0 else None, keys[number], step)
        found.append(states)
    return found


def _block(
    block: DecoderBlock,
    states: torch.Tensor,
    beside: torch.Tensor | None,
    kept: list[tuple[torch.Tensor, torch.Tensor]],
    step: int,
) -> torch.Tensor:
    """One block at one step; ``kept`` has the keys and values of all steps so far, and gets this one's."""
    attention: Attention = block.self_attn
    n = states.shape[1]
    at = torch.arange(n, device=states.device)
    queries, keys, values = attention.projected(block.read(states, beside), at)
    kept.append((attention.spread(keys), attention.spread(values)))
    scale = 1.0 / math.sqrt(attention.sizes.head_dim)
    first_keys, first_values = kept[0]
    scores = (queries @ first_keys.transpose(2, 3)) * scale
    scores = scores.masked_fill(at[None] > at[:, None] - step, -torch.inf)
    own = [scores]
    for later in range(1, step + 1):
        # Step `later` read the place that lies step - later before.
        moved = _moved(kept[later][0], step - later)
        own.append((queries * moved).sum(-1, keepdim=True) * scale)
    shares = torch.cat(own, dim=-1)
    shares = torch.where(torch.isneginf(shares).all(-1, keepdim=True), torch.zeros_like(shares), shares).softmax(-1)
    read = shares[..., :n] @ first_values
    for later in range(1, step + 1):
        read = read + shares[..., n + later - 1 : n + later] * _moved(kept[later][1], step - later)
    states = states + attention.o_proj(read.transpose(1, 2).flatten(2))
    found: torch.Tensor = states + block.mlp(block.post_attention_layernorm(states))
    return found


def _moved(values: torch.Tensor, places: int) -> torch.Tensor:
    """Values ``[B, heads, n, d]`` of so many places before."""
    if not places:
        return values
    return torch.nn.functional.pad(values[:, :, :-places], (0, 0, places, 0))
