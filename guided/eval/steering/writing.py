"""Texts of a batch of prompts, greedy or drawn, and how likely a model finds them.

Each prompt draws with its own generator, so that a model and the same model steered get the same random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from guided.lm import LanguageModel

__all__ = ["Choice", "Written", "surprise", "write"]

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Choice:
    """How tokens are chosen."""

    max_new_tokens: int
    sample: bool
    stop: bool = True
    """Whether an end-of-text id ends the text; without it that id is never chosen."""


@dataclass(frozen=True)
class Written:
    """A text, and what else was counted on the way."""

    tokens: Tokens
    """The generated ones, the end-of-text id included if there is one."""
    counted: dict[str, float] = field(default_factory=dict)


def write(
    model: LanguageModel, prompts: Sequence[Tokens], seeds: Sequence[int], choice: Choice
) -> tuple[list[Tokens], object]:
    """The generated tokens of each prompt, and the finished sequences, whose rows are the prompts."""
    generators = [np.random.default_rng(seed) for seed in seeds]
    sequences = model.start(prompts)
    texts: list[list[int]] = [[] for _ in prompts]
    over = [False] * len(prompts)
    for _ in range(choice.max_new_tokens):
        logits = sequences.last.logits.double()
        if not choice.stop:
            logits[:, sorted(model.eos_ids)] = -torch.inf
        chosen = _drawn(logits, generators, over) if choice.sample else logits.argmax(dim=-1).tolist()
        for row, token in enumerate(chosen):
            if not over[row]:
                texts[row].append(token)
        sequences.extend([[] if done else [token] for done, token in zip(over, chosen, strict=True)])
        over = [done or text[-1] in model.eos_ids for done, text in zip(over, texts, strict=True)]
        if all(over):
            break
    return [tuple(text) for text in texts], sequences


def _drawn(logits: torch.Tensor, generators: Sequence[np.random.Generator], over: Sequence[bool]) -> list[int]:
    sums = torch.softmax(logits, dim=-1).cumsum(dim=-1).cpu().numpy()
    return [
        0 if done else int(np.searchsorted(row, generator.random() * row[-1], side="right"))
        for row, generator, done in zip(sums, generators, over, strict=True)
    ]


def surprise(model: LanguageModel, prompts: Sequence[Tokens], texts: Sequence[Tokens]) -> list[float]:
    """For each text the mean of -log p of its tokens after the prompt, in nats; 0 for empty texts."""
    sequences = model.start(prompts)
    first = sequences.last.logits
    rest = sequences.extend([text[:-1] for text in texts])
    found: list[float] = []
    for row, text in enumerate(texts):
        if not text:
            found.append(0.0)
            continue
        logits = torch.cat([first[row : row + 1], rest[row].logits]).double()
        ids = torch.tensor(text, device=logits.device)
        found.append(-float(torch.log_softmax(logits, dim=-1).gather(-1, ids[:, None]).mean()))
    return found
