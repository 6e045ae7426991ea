"""Training draft heads on a frozen base: examples from texts, the loss, and the accuracies that shape their tree.

The base is asked once for its hidden states; nothing of it changes.  Texts should be what the base itself writes, or
what it was trained to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from guided.draft.heads.draft_heads import DraftHeads
from guided.draft.heads.from_heads import RANKS
from guided.draft.heads.losses import DISCOUNT, DraftLoss, draft_losses
from guided.errors import GuidedError
from guided.lm.model import LanguageModel, Needs

__all__ = ["NONE", "HeadExamples", "calibrate_heads", "fit_heads", "head_examples", "head_loss"]

NONE = -1
"""Stands for a token beyond the end of a text."""


@dataclass(frozen=True)
class HeadExamples:
    """Places in texts: the base's state after a token, and the tokens that follow it.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> found = draft.head_examples(model, [[0]], [[1, 2, 0]], heads=2)
    >>> found.tokens.tolist()  # what follows each place, -1 behind the end; the first is the prompt's last token
    [[1, 2, 0], [2, 0, -1], [0, -1, -1]]
    >>> found.hidden.argmax(-1).tolist()
    [0, 1, 2]
    """

    hidden: torch.Tensor
    """``[n, d]``."""
    tokens: torch.Tensor
    """``int64[n, heads + 1]``: the next token, which the base scores, and one for each head; -1 beyond the end."""

    def __len__(self) -> int:
        return int(self.hidden.shape[0])


def head_examples(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    heads: int,
    *,
    batch: int = 16,
    dtype: torch.dtype = torch.float32,
) -> HeadExamples:
    """Every place of the texts, each after its prompt, from the last token of the prompt on.

    One pass of the base over each text.  ``dtype`` is what the states are kept in.  Raises `GuidedError` without texts,
    and for another number of texts than prompts.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> found = draft.head_examples(model, [[0], [1, 2]], [[1, 2], [0, 1]], heads=1)
    >>> found.hidden.argmax(-1).tolist(), found.tokens[:, 0].tolist()
    ([0, 1, 2, 0], [1, 2, 0, 1])
    """
    if len(prompts) != len(texts):
        raise GuidedError(f"{len(prompts)} prompts have {len(texts)} texts", remedy="Give one text for each prompt.")
    hidden: list[torch.Tensor] = []
    tokens: list[torch.Tensor] = []
    for first in range(0, len(prompts), batch):
        part = [(p, t) for p, t in zip(prompts[first : first + batch], texts[first : first + batch], strict=True) if t]
        if not part:
            continue
        sequences = model.start([prompt for prompt, _ in part], Needs(hidden=True))
        last = sequences.last.hidden
        found = sequences.extend([text[:-1] for _, text in part])
        assert last is not None
        for row, (_, text) in enumerate(part):
            new = found[row].hidden
            assert new is not None
            hidden.append(torch.cat([last[row : row + 1], new]).to(dtype).cpu())
            padded = torch.tensor([*text, *[NONE] * heads], dtype=torch.long)
            tokens.append(padded.unfold(0, heads + 1, 1))
    if not hidden:
        raise GuidedError("there are no texts to learn from", remedy="Give texts of one token or more.")
    return HeadExamples(torch.cat(hidden), torch.cat(tokens))


def fit_heads(
    heads: DraftHeads,
    examples: HeadExamples,
    *,
    loss: DraftLoss = DraftLoss.TOKENS,
    epochs: float = 2.0,
    batch: int = 256,
    rate: float = 2e-3,
    seed: int = 0,
    done: Callable[[int, float], bool] | None = None,
) -> float:
    """Train the heads; the last averaged loss.

    Losses other than that of the tokens compare with the base's law at the place that a head scores, which its output
    matrix gives of the state there: examples must be whole texts, as `head_examples` makes them.  AdamW, the rate
    rising over the first twentieth of the steps and falling linearly to 0.  ``done`` is told each step and its loss,
    and stops the training by returning True.

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
    >>> before = draft.fit_heads(heads, examples, epochs=1, batch=8)
    >>> draft.fit_heads(heads, examples, epochs=15, batch=8, rate=0.3) < before
    True
    """
    heads.train()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(heads.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    steps = max(1, round(epochs * len(examples) / batch))
    averaged = 0.0
    for step, rows in enumerate(_batches(len(examples), batch, steps, generator)):
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / (0.05 * steps + 1), 1.0 - step / steps)
        found = head_loss(heads, examples, rows, loss)
        if found.requires_grad:  # Behind the last places of texts there is nothing that a head could say.
            optimizer.zero_grad(set_to_none=True)
            found.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(heads.parameters(), 1.0)
            optimizer.step()
        averaged = found.item() if step == 0 else 0.98 * averaged + 0.02 * found.item()
        if done is not None and done(step, averaged):
            break
    heads.eval()
    return averaged


def _batches(n: int, batch: int, steps: int, generator: torch.Generator) -> Iterable[torch.Tensor]:
    left = torch.zeros(0, dtype=torch.long)
    for _ in range(steps):
        while left.numel() < batch:
            left = torch.cat([left, torch.randperm(n, generator=generator)])
        yield left[:batch]
        left = left[batch:]


def head_loss(
    heads: DraftHeads, examples: HeadExamples, rows: torch.Tensor, loss: DraftLoss = DraftLoss.TOKENS
) -> torch.Tensor:
    """The mean loss of each head, later ones weighing less."""
    device = heads.unembeddings.device
    hidden, tokens = examples.hidden[rows].float().to(device), examples.tokens[rows].to(device)
    total = hidden.new_zeros(())
    for head in range(1, heads.settings.heads + 1):
        there = tokens[:, head] != NONE
        if there.any():
            logits = heads(hidden[there], tokens[there, :head])
            target = None
            if loss is not DraftLoss.TOKENS:
                # Places of a text follow each other: the state that many places on says the token that the head scores.
                later = examples.hidden[rows[there.cpu()] + head].to(device, heads.unembeddings.dtype)
                target = (later @ heads.unembeddings.T).float()
            total = total + DISCOUNT ** (head - 1) * draft_losses(loss, logits, target, tokens[there, head]).mean()
    return total


def calibrate_heads(heads: DraftHeads, examples: HeadExamples, *, batch: int = 1024) -> None:
    """Measure how often each head's best, second best, ... token comes true; the heads' tree follows from that.

    Heads that read tokens in between are measured on the true ones.  A place near a text's end counts for the heads
    that reach it.

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
    >>> draft.calibrate_heads(heads, examples)
    >>> [each[0] for each in heads.settings.accuracies]  # each head's best token always comes true
    [1.0, 1.0]
    """
    device = heads.unembeddings.device
    measured: list[tuple[float, ...]] = []
    for head in range(1, heads.settings.heads + 1):
        places = (examples.tokens[:, head] != NONE).nonzero()[:, 0]
        counts = torch.zeros(RANKS)
        for first in range(0, places.numel(), batch):
            rows = places[first : first + batch]
            tokens = examples.tokens[rows].to(device)
            with torch.inference_mode():
                logits = heads(examples.hidden[rows].float().to(device), tokens[:, :head])
            best = logits.topk(min(RANKS, logits.shape[1]), dim=1).indices
            counts[: best.shape[1]] += (best == tokens[:, head : head + 1]).sum(0).cpu()
        measured.append(tuple(round(float(c), 5) for c in counts / max(1, places.numel())))
    heads.settings = replace(heads.settings, accuracies=tuple(measured))
