"""What drafts are worth on somebody's own model, prompts and grammar: every way of decoding in turn, on each prompt.

Not a benchmark of the machine: ways take turns prompt by prompt, so that what else runs slows all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from guided.constraint.protocol import Constrains
from guided.draft.auto import Drafting
from guided.draft.loop.speculate import speculate
from guided.hf.language_model import TransformersModel
from guided.hf.loading import LoadedModel
from guided.hf.processor import GuidedLogitsProcessor
from guided.lm.model import LanguageModel

__all__ = ["PLAIN", "TRANSFORMERS", "TRANSFORMERS_ASSISTED", "TRANSFORMERS_LOOKUP", "Line", "measure_drafts"]

PLAIN = "plain"
TRANSFORMERS = "transformers"
TRANSFORMERS_ASSISTED = "transformers, assisted"
TRANSFORMERS_LOOKUP = "transformers, prompt lookup"


@dataclass(frozen=True)
class Line:
    """What one way of decoding came to over all prompts."""

    name: str
    texts: int = 0
    tokens: int = 0
    passes: int = 0
    """Forward passes of the target after those that read the prompts."""
    drafted: int | None = 0
    """Draft tokens that the target scored; None where nobody counts them."""
    accepted: int | None = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """Of this process alone: what the clock would show if nothing else ran, where the model runs on the processor."""
    different: int = 0
    """Texts that are not those of plain decoding, token for token."""

    @property
    def passes_per_token(self) -> float:
        """Forward passes for each token."""
        return self.passes / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Prompts included."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def acceptance(self) -> float | None:
        """The share of draft tokens that were accepted; None where there were none."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None


def measure_drafts(
    loaded: LoadedModel,
    prompts: Sequence[Sequence[int]],
    constraints: Sequence[Constrains],
    drafts: Mapping[str, Drafting],
    *,
    max_tokens: int = 256,
    assistant: Any = None,
    targets: Mapping[str, LanguageModel] | None = None,
    done: Callable[[int], None] | None = None,
) -> list[Line]:
    """Decode greedily in every way, on each prompt in turn: plainly, with each draft, and by transformers' `generate`.

    ``assistant``, a model of transformers, is what its assisted generation drafts with; None leaves that out.  One
    untimed text comes first, and each prompt's plain one untimed, so that nothing is timed that happens once.
    ``targets`` are models of the same law that drafts of these names verify with, where they need one of their own.
    ``done`` is told after each prompt how many are through.  Drafts keep what they learned from one prompt to the next.
    """
    target, others = TransformersModel(loaded), targets or {}
    plainly = partial(_ours, target, None, max_tokens)
    ways: dict[str, Callable[[Sequence[int], Constrains], tuple[tuple[int, ...], Line]]] = {
        PLAIN: plainly,
        **{name: partial(_ours, others.get(name, target), draft, max_tokens) for name, draft in drafts.items()},
        TRANSFORMERS: lambda prompt, constraint: _theirs(loaded, prompt, constraint, max_tokens, {}),
        TRANSFORMERS_LOOKUP: lambda prompt, constraint: _theirs(
            loaded, prompt, constraint, max_tokens, {"prompt_lookup_num_tokens": 10}
        ),
    }
    if assistant is not None:
        ways[TRANSFORMERS_ASSISTED] = lambda prompt, constraint: _theirs(
            loaded, prompt, constraint, max_tokens, {"assistant_model": assistant}
        )
    lines = {name: Line(name) for name in ways}
    for name, way in ways.items():
        if prompts and name not in drafts:
            way(prompts[0], constraints[0])
    for number, (prompt, constraint) in enumerate(zip(prompts, constraints, strict=True)):
        # What is made of a grammar when it is first used would be counted to the way that comes first.
        plainly(prompt, constraint)
        plain: tuple[int, ...] | None = None
        for name, way in ways.items():
            began, busy = time.perf_counter(), time.process_time()
            tokens, one = way(prompt, constraint)
            seconds, busy = time.perf_counter() - began, time.process_time() - busy
            plain = tokens if plain is None else plain
            one = replace(one, seconds=seconds, processor_seconds=busy, different=int(tokens != plain))
            lines[name] = _added(lines[name], one)
        if done is not None:
            done(number + 1)
    return list(lines.values())


def _ours(
    target: LanguageModel, draft: Drafting | None, max_tokens: int, prompt: Sequence[int], constraint: Constrains
) -> tuple[tuple[int, ...], Line]:
    drafter, policy = (None, None) if draft is None else (draft.drafter, draft.policy)
    (text,), counts = speculate(
        0, target, [prompt], [constraint], drafter, max_tokens=max_tokens, greedy=True, policy=policy
    )
    return text.tokens, Line("", 1, counts.tokens, counts.passes, counts.drafted, counts.accepted)


def _theirs(
    loaded: LoadedModel, prompt: Sequence[int], constraint: Constrains, max_tokens: int, options: dict[str, Any]
) -> tuple[tuple[int, ...], Line]:
    passes = 0

    def count(*_: Any) -> None:
        nonlocal passes
        passes += 1

    hook = loaded.model.register_forward_pre_hook(count)
    ids = torch.tensor([list(prompt)], device=loaded.model.device)
    try:
        found = loaded.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            num_beams=1,
            max_new_tokens=max_tokens,
            pad_token_id=_padding(loaded),
            logits_processor=[GuidedLogitsProcessor(constraint, max_new_tokens=max_tokens)],
            **options,
        )
    finally:
        hook.remove()
    tokens = tuple(found[0, len(prompt) :].tolist())
    return tokens, Line("", 1, len(tokens), passes - 1, None if options else 0, None if options else 0)


def _padding(loaded: LoadedModel) -> int:
    padding = loaded.tokenizer.pad_token_id
    return int(min(loaded.vocabulary.eos_ids) if padding is None else padding)


def _added(line: Line, one: Line) -> Line:
    return replace(
        line,
        texts=line.texts + one.texts,
        tokens=line.tokens + one.tokens,
        passes=line.passes + one.passes,
        drafted=None if line.drafted is None or one.drafted is None else line.drafted + one.drafted,
        accepted=None if line.accepted is None or one.accepted is None else line.accepted + one.accepted,
        seconds=line.seconds + one.seconds,
        processor_seconds=line.processor_seconds + one.processor_seconds,
        different=line.different + one.different,
    )
