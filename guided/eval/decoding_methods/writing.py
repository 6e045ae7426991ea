"""One text of one prompt by one method, and what it cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import guided
from guided.constraint.protocol import Constrains
from guided.eval.decoding_methods.kit import Kit
from guided.eval.decoding_methods.methods import Method
from guided.eval.decoding_methods.names import Mode
from guided.hf.front.thinking import DraftFirst
from guided.lm import Calls, LanguageModel
from guided.steer import Masked, ModelPair, Stack, Steerer

__all__ = ["Asked", "Written", "write"]

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Asked:
    """What is the same for all methods."""

    mode: Mode
    max_tokens: int
    seed: int


@dataclass(frozen=True)
class Written:
    """A text with its costs, the prompt's included."""

    tokens: Tokens
    """The end-of-text id included if there is one."""
    seconds: float
    passes: int
    """Of the model."""
    positions: int
    """Tokens that the model read, equal prefixes of one pass once."""
    small_passes: int


def write(kit: Kit, method: Method, prompt: str, constraint: Constrains, item: Asked) -> Written:
    """The text; drawn ones get the same random numbers from all methods."""
    if method.think:
        return _drafted_first(kit, prompt, constraint, item)
    ids = tuple(kit.loaded.tokenizer(prompt)["input_ids"])
    steerer = None if method.steer is None else method.steer(kit.amateur)
    small = kit.known_amateur
    model = _model(kit, method, steerer, constraint if item.mode is Mode.CONSTRAINED else None, item.max_tokens)
    before, small_before = _counts(kit.base), _counts(small)
    begun = time.perf_counter()
    with torch.no_grad():
        if method.search is not None:
            found = method.search(
                kit.base, list(ids), constraint, max_tokens=item.max_tokens, n_best=1, **dict(method.options)
            ).hypotheses
            tokens: Tokens = found[0].tokens if found else ()
        else:
            rng = np.random.default_rng(item.seed) if method.sample else None
            tokens = _tokens(model, ids, item.max_tokens, rng)
    seconds = time.perf_counter() - begun
    after, small_after = _counts(kit.base), _counts(small)
    return Written(tokens, seconds, after[0] - before[0], after[1] - before[1], small_after[0] - small_before[0])


def _drafted_first(kit: Kit, prompt: str, constraint: Constrains, item: Asked) -> Written:
    """By `guided.generate`, whose passes are seen where the model runs."""
    passes = positions = 0

    def count(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        nonlocal passes, positions
        passes += 1
        read = kwargs.get("input_ids", args[0] if args else None)
        positions += 0 if read is None else int(read.numel())

    hook = kit.loaded.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        begun = time.perf_counter()
        made = guided.generate(
            kit.loaded,
            prompt,
            constraint,
            think=DraftFirst(max_new_tokens=item.max_tokens),
            max_new_tokens=item.max_tokens,
            do_sample=False,
        )
        seconds = time.perf_counter() - begun
    finally:
        hook.remove()
    # The end is a token of the others' texts, too.
    return Written((*made.token_ids, *sorted(kit.base.eos_ids)[: int(made.finished)]), seconds, passes, positions, 0)


def _model(
    kit: Kit, method: Method, steerer: Steerer | ModelPair | None, constraint: Constrains | None, max_tokens: int
) -> LanguageModel:
    """The grammar first, so that candidates and cuts are of allowed tokens; a pair of models goes before all."""
    pair = [steerer] if isinstance(steerer, ModelPair) else []
    masked = [] if constraint is None else [Masked(constraint, max_tokens)]
    steerers = [steerer] if isinstance(steerer, Steerer) else []
    stack = Stack([*pair, *masked, *steerers])
    model: LanguageModel = stack.over(kit.base, same_tokenizer=True) if stack else kit.base
    return model if method.cut is None else method.cut(model)


def _tokens(model: LanguageModel, prompt: Tokens, max_tokens: int, rng: np.random.Generator | None) -> Tokens:
    sequences = model.start([prompt])
    text: list[int] = []
    while len(text) < max_tokens and not (text and text[-1] in model.eos_ids):
        if text:
            sequences.extend([text[-1:]])
        logits = sequences.last.logits[0].double()
        text.append(int(logits.argmax()) if rng is None else _drawn(logits, rng))
    return tuple(text)


def _drawn(logits: torch.Tensor, rng: np.random.Generator) -> int:
    sums = torch.softmax(logits, dim=-1).cumsum(dim=-1).cpu().numpy()
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def _counts(model: LanguageModel | None) -> tuple[int, int]:
    calls = Calls() if model is None else model.calls
    return calls.passes, calls.positions
