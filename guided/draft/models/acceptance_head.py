"""`AcceptanceHead`: how likely a target accepts a draft model's token, from that model's hidden state; its trainer.

The head of SpecDec++ (Huang et al., 2024, arXiv 2405.19715): one residual block applied several times, as its released
code does, and two outputs.  Examples are places in the target's texts: there the draft model draws a token, reads it,
and the label is the probability with which the target would accept it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from guided.errors import GuidedError
from guided.infer.chance import Random, chance_of
from guided.lm.model import LanguageModel, Needs, Scores, Tree

__all__ = ["AcceptanceExamples", "AcceptanceHead", "acceptance_examples", "fit_acceptance_head"]

FORMAT = "guided-acceptance-head-1"
REFUSAL_WEIGHT = 6.0
"""Refused tokens weigh so much more than accepted ones, which are most of all (the paper's value)."""


class AcceptanceHead(nn.Module):
    """``[n, d]`` hidden states to ``[n]`` probabilities.

    >>> import torch
    >>> from guided.draft import AcceptanceHead
    >>> head = AcceptanceHead(hidden=4)
    >>> 0 < head.chance(torch.zeros(4)) < 1, tuple(head(torch.zeros(3, 4)).shape)
    (True, (3,))
    """

    def __init__(self, hidden: int, layers: int = 3) -> None:
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.block = nn.Linear(hidden, hidden)
        nn.init.zeros_(self.block.weight)
        nn.init.zeros_(self.block.bias)
        self.output = nn.Linear(hidden, 2)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """The log odds of acceptance, ``[n]``."""
        states = hidden
        for _ in range(self.layers):
            states = states + nn.functional.silu(self.block(states))
        refused, accepted = self.output(states).unbind(-1)
        odds: torch.Tensor = accepted - refused
        return odds

    def chance(self, hidden: torch.Tensor) -> float:
        """The probability of acceptance for one state ``[d]``."""
        with torch.inference_mode():
            state = hidden.to(self.block.weight.device, self.block.weight.dtype)
            return float(torch.sigmoid(self(state[None]))[0])

    def save(self, path: Path | str) -> None:
        """Write the weights in float16 and the sizes into one safetensors file."""
        from safetensors.torch import save_file

        sizes = json.dumps({"hidden": self.hidden, "layers": self.layers})
        save_file(
            {k: v.half().contiguous() for k, v in self.state_dict().items()},
            str(path),
            {"format": FORMAT, "sizes": sizes},
        )

    @classmethod
    def load(cls, path: Path | str) -> AcceptanceHead:
        """The head of a file that `save` wrote; `GuidedError` for other files."""
        from safetensors import safe_open
        from safetensors.torch import load_file

        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
        if metadata.get("format") != FORMAT:
            raise GuidedError(f"{path} holds no acceptance head", remedy="Give a file that AcceptanceHead.save wrote.")
        head = cls(**json.loads(metadata["sizes"]))
        head.load_state_dict({name: value.float() for name, value in load_file(str(path)).items()})
        return head.eval()


@dataclass(frozen=True)
class AcceptanceExamples:
    """States of the draft model after its own tokens, and how likely the target accepts those.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> found = draft.acceptance_examples(0, model, model, [[0]], [[1, 2, 0]])
    >>> tuple(found.hidden.shape), found.accepted.tolist()  # a model accepts its own tokens
    ((3, 4), [1.0, 1.0, 1.0])
    """

    hidden: torch.Tensor
    """``float32[n, d]``."""
    accepted: torch.Tensor
    """``float32[n]``."""


def acceptance_examples(
    rng: Random,
    target: LanguageModel,
    draft: LanguageModel,
    prompts: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    *,
    greedy: bool = False,
) -> AcceptanceExamples:
    """One example for each token of the target's texts.

    The draft's token at a place is drawn from its law and accepted by ``min(1, p / q)``; with ``greedy`` it is the
    likeliest, and accepted where it is the target's likeliest too.  Both models read each text once, the draft twice.
    Raises `GuidedError` without texts.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> other = TableModel.of({}, otherwise=[0.3, 0.3, 0.3, 0.1])
    >>> found = draft.acceptance_examples(0, other, model, [[0]], [[1, 2, 0]])
    >>> bool((found.accepted < 1).any())
    True
    """
    chance = chance_of(rng)
    hidden: list[torch.Tensor] = []
    labels: list[float] = []
    for prompt, text in zip(prompts, texts, strict=True):
        if not text:
            continue
        ours, theirs = target.start([prompt]), draft.start([prompt], Needs(hidden=True))
        wanted, own = (
            _places(ours.last, ours.extend([text[:-1]])[0]),
            _places(theirs.last, theirs.extend([text[:-1]])[0]),
        )
        theirs.crop([len(prompt)])
        tokens: list[int] = []
        for p, q in zip(wanted, own, strict=True):
            token = int(q.argmax()) if greedy else chance.index(q)
            tokens.append(token)
            labels.append(float(p.argmax() == token) if greedy else float(min(1.0, p[token] / q[token])))
        # The text in a line, and after each of its places the draft's token.
        line = len(text) - 1
        tree = Tree((*text[:-1], *tokens), (*range(-1, line - 1), *range(-1, line)))
        states = theirs.extend_tree([tree])[0].hidden
        assert states is not None
        hidden.append(states[line:].float().cpu())
    if not hidden:
        raise GuidedError("there are no texts to learn from", remedy="Give texts of one token or more.")
    return AcceptanceExamples(torch.cat(hidden), torch.tensor(labels))


def _places(last: Scores, new: Scores) -> np.ndarray:
    logits = torch.cat([last.logits, new.logits]).double()
    return torch.softmax(logits, -1).cpu().numpy()


def fit_acceptance_head(
    head: AcceptanceHead,
    examples: AcceptanceExamples,
    *,
    epochs: int = 5,
    batch: int = 128,
    rate: float = 1e-3,
    seed: int = 0,
) -> float:
    """Train by cross entropy with the labels as probabilities, refusals weighing more; the last epoch's mean loss.

    >>> import torch
    >>> from guided.draft import AcceptanceExamples, AcceptanceHead, fit_acceptance_head
    >>> _ = torch.manual_seed(0)
    >>> head = AcceptanceHead(hidden=4, layers=1)
    >>> examples = AcceptanceExamples(torch.eye(4).repeat(8, 1), torch.tensor([1.0, 1.0, 0.0, 0.0]).repeat(8))
    >>> _ = fit_acceptance_head(head, examples, epochs=60, batch=32, rate=0.05)
    >>> head.chance(torch.eye(4)[0]) > head.chance(torch.eye(4)[3])
    True
    """
    head.train()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(head.parameters(), lr=rate, weight_decay=0.01)
    n = int(examples.accepted.shape[0])
    mean = 0.0
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1.0 - epoch / epochs)
        order = torch.randperm(n, generator=generator)
        total = 0.0
        for first in range(0, n, batch):
            rows = order[first : first + batch]
            wanted = examples.accepted[rows]
            log = nn.functional.logsigmoid
            odds = head(examples.hidden[rows])
            loss = -(wanted * log(odds) + REFUSAL_WEIGHT * (1.0 - wanted) * log(-odds)).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += loss.item() * len(rows)
        mean = total / n
    head.eval()
    return mean
