"""Which layers a model can best do without as its own draft: SWIFT's search (Xia et al., 2024, arXiv 2410.06916).

A set of skipped layers is judged by how often the greedy choice of the model without them is the token that the whole
model wrote, on texts of the whole model: one pass over each text, no decoding.  Candidates are random at first; every
few rounds the one that a linear model of what each layer is worth, fitted to the scores so far, holds most promising.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from guided.draft.models.sublayers import Skippable, Sublayer
from guided.errors import GuidedError
from guided.infer.chance import Random, chance_of
from guided.lm.model import LanguageModel

__all__ = ["SkipSearch", "agreement", "search_skips"]

SUGGESTED_EVERY = 4
"""Rounds for one suggestion of the linear model; the paper has 25, with a thousand rounds where here are dozens."""
CONSIDERED = 64
NOISE = 0.02
"""The spread of scores about the linear model, and with it how much is explored."""


@dataclass(frozen=True)
class SkipSearch:
    """What a search found.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> class Layers:  # four halves of blocks, of which the second alone matters
    ...     sublayers = tuple(draft.Sublayer(block, part) for block in (1, 2) for part in draft.Part)
    ...     def without(self, skipped):
    ...         broken = self.sublayers[1] in skipped
    ...         return TableModel.of({}, otherwise=[0.1, 0.1, 0.1, 0.7], eos_ids=[3]) if broken else model
    >>> found = draft.search_skips(0, Layers(), [[0]], [[1, 2, 0, 1]], share=0.5, rounds=10, good=1.0)
    >>> found.score, len(found.skipped), Layers.sublayers[1] in found.skipped
    (1.0, 2, False)
    """

    skipped: frozenset[Sublayer]
    score: float
    """The share of tokens at which the model without them agreed."""
    tried: int


def agreement(
    model: LanguageModel, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]], *, batch: int = 16
) -> float:
    """The share of the texts' tokens that are the model's greedy choice after what precedes them."""
    agreed = total = 0
    for first in range(0, len(prompts), batch):
        part = [(p, t) for p, t in zip(prompts[first : first + batch], texts[first : first + batch], strict=True) if t]
        if not part:
            continue
        sequences = model.start([prompt for prompt, _ in part])
        begun = sequences.last.logits.argmax(-1).tolist()
        found = sequences.extend([text[:-1] for _, text in part])
        for row, (_, text) in enumerate(part):
            chosen = [begun[row], *found[row].logits.argmax(-1).tolist()]
            agreed += sum(token == choice for token, choice in zip(text, chosen, strict=True))
            total += len(text)
    return agreed / total if total else 0.0


def search_skips(
    rng: Random,
    model: Skippable,
    prompts: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    *,
    share: float = 0.45,
    rounds: int = 60,
    good: float = 0.93,
    patience: int = 30,
) -> SkipSearch:
    """Search sets of ``share`` of the layers that can be skipped; ends at a score of ``good``, or without progress.

    ``texts`` are what the whole model wrote after ``prompts``.  Sets are tried once.  Raises `GuidedError` for a share
    that skips no layers or all.

    >>> import guided.hf
    >>> from guided import draft
    >>> from guided.lm import language_model
    >>> from guided.hf.skipped_layers import SkippedLayers
    >>> nano = guided.hf.load()
    >>> prompt = nano.tokenizer.encode("SELECT name FROM")
    >>> (text,), _ = draft.speculate(0, language_model(nano), [prompt], [None], greedy=True, max_tokens=6)
    >>> layers = SkippedLayers(language_model(nano))
    >>> found = draft.search_skips(0, layers, [prompt], [text.tokens], share=0.2, rounds=2)
    >>> found.tried <= 2, 0 <= found.score <= 1
    (True, True)
    """
    parts = list(model.sublayers)
    n = round(share * len(parts))
    if not 0 < n < len(parts):
        raise GuidedError(
            f"{share:.0%} of {len(parts)} layers are no set to search",
            where="search_skips",
            remedy="Give a share that leaves some layers and skips some, and a model whose layers can be skipped.",
        )
    chance = chance_of(rng)
    scores: dict[frozenset[int], float] = {}
    best: frozenset[int] = frozenset()
    since = 0

    def random_set() -> frozenset[int]:
        left = list(range(len(parts)))
        return frozenset(left.pop(chance.index([1.0] * len(left))) for _ in range(n))

    for number in range(rounds):
        candidates = {random_set() for _ in range(CONSIDERED)} - scores.keys()
        if not candidates:
            break
        ordered = sorted(candidates, key=sorted)
        suggested = number % SUGGESTED_EVERY == SUGGESTED_EVERY - 1
        chosen = _promising(ordered, scores, len(parts)) if suggested else ordered[chance.index([1.0] * len(ordered))]
        scores[chosen] = agreement(model.without(frozenset(parts[i] for i in chosen)), prompts, texts)
        since += 1
        if not best or scores[chosen] > scores[best]:
            best, since = chosen, 0
        if scores[best] >= good or since >= patience:
            break
    return SkipSearch(frozenset(parts[i] for i in best), scores[best], len(scores))


def _promising(
    candidates: Sequence[frozenset[int]], scores: dict[frozenset[int], float], n_parts: int
) -> frozenset[int]:
    """The candidate with the highest upper bound by Bayesian linear regression on which layers are skipped."""

    def features(sets: Sequence[frozenset[int]]) -> np.ndarray:
        return np.array([[1.0, *(float(i in one) for i in range(n_parts))] for one in sets])

    seen, values = features(list(scores)), np.array(list(scores.values()))
    precision = seen.T @ seen / NOISE**2 + np.eye(n_parts + 1)
    covariance = np.linalg.inv(precision)
    mean = covariance @ (seen.T @ values) / NOISE**2
    asked = features(candidates)
    bounds = asked @ mean + np.sqrt(np.einsum("ij,jk,ik->i", asked, covariance, asked))
    return candidates[int(bounds.argmax())]
