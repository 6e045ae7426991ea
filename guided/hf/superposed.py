"""Superposed decoding: several drafts out of one row of the model, which is fed the mixture of their last tokens.

Shen et al., "Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass" (NeurIPS 2024,
arXiv 2405.18400): the input of a step is the sum of the drafts' token embeddings, weighed by the drafts' probabilities,
so k drafts cost what one text costs; an n-gram model says which of the shared next tokens suits which draft.
Reconstructed from the paper and checked against the facts of its code (weights, geometric interpolation, penalty); the
grammar, of which each draft has its own state, is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, UnsupportedError
from guided.hf.language_model import wrapped
from guided.lm import LanguageModel, next_logits
from guided.search.result import Found, Hypothesis, SearchCost, data_of

__all__ = ["superposed_search"]

PENALTY = 200.0
"""What a step costs a draft of which the n-gram model knows no next token: its code's default."""


class _Draft(NamedTuple):
    """A text that is written; ``score`` is what drafts are compared by."""

    score: float
    tokens: tuple[int, ...]
    state: int


def superposed_search(
    model: Any,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    drafts: int = 3,
    n_grams: LanguageModel | None = None,
    alpha: float = 0.5,
    penalty: float = PENALTY,
    n_best: int = 1,
    max_tokens: int = 256,
) -> Found:
    """The ``n_best`` of up to ``drafts`` texts that are written side by side, one row of the model a step.

    Drafts grow by their sums of log-probabilities of the shared distribution, to the power ``1 - alpha`` and times that
    of ``n_grams`` after the draft itself to the power ``alpha`` where it is given; a draft of whose allowed tokens it
    knows none pays ``penalty``.  What is shared is no one text's own distribution: texts are ranked by these sums
    (``rank_score``), and ``score`` is what the model says of the whole text, read once more at the end.
    With one draft and no n-grams this is greedy decoding under the grammar.  ``model`` is a `LoadedModel` or a decoder
    of transformers.  Fewer texts come back where drafts were crowded out.  ``cost`` counts a pass of one position for
    each step, and the last one.  Raises `UnsupportedError` for encoder-decoder models, `GuidedError` for numbers below
    1 and an ``alpha`` that is no share, and `LimitError` where the language has no text of ``max_tokens`` tokens.
    """
    if drafts < 1 or not 1 <= n_best <= drafts or not 0 <= alpha < 1 or max_tokens < 1:
        raise GuidedError(f"{drafts} drafts, {n_best} texts, alpha {alpha}, {max_tokens} tokens", remedy="See the doc.")
    ready = wrapped(model)
    network = ready.model
    if network.config.is_encoder_decoder:
        raise UnsupportedError("superposed decoding mixes a decoder's inputs", remedy="Use a decoder-only model.")
    embeddings = network.get_input_embeddings()
    ids = torch.tensor([list(prompt)], device=network.device)
    cache: Any = None
    live = [_Draft(0.0, (), constraint.start)]
    done: list[_Draft] = []
    bits = np.zeros(constraint.vocabulary.n_words, np.uint32)
    passes = 0
    with torch.no_grad():
        while live:
            if cache is None:
                out = network(input_ids=ids, use_cache=True)
            else:
                out = network(inputs_embeds=_mixed(embeddings, live), past_key_values=cache, use_cache=True)
                passes += 1
            cache = out.past_key_values
            shared = torch.log_softmax(out.logits[0, -1].double(), -1).cpu().numpy()
            said = _said(shared, live, prompt, n_grams, alpha)
            unknown = (1 - alpha) * shared - penalty
            grown: list[_Draft] = []
            for draft, logs in zip(live, said, strict=True):
                constraint.fill_budget_mask(draft.state, bits, max_tokens - len(draft.tokens))
                allowed = tokenset.flags(bits, constraint.vocabulary.size)
                grown += _grown(draft, logs, allowed, constraint, drafts) or _grown(
                    draft, unknown, allowed, constraint, drafts
                )
            grown.sort(key=lambda draft: (-draft.score, draft.tokens))
            ends = set(constraint.vocabulary.eos_ids)
            done += [draft for draft in grown[: 2 * drafts] if draft.tokens[-1] in ends]
            done = sorted(done, key=lambda draft: (-draft.score, draft.tokens))[:drafts]
            live = [draft for draft in grown[: 2 * drafts] if draft.tokens[-1] not in ends][:drafts]
            if len(done) == drafts and live and live[0].score <= done[-1].score:
                # Scores only fall: nothing that is live can still come among them.
                break
    best = done[:n_best]
    scores = _scored(ready, prompt, [draft.tokens for draft in best])
    texts = tuple(
        Hypothesis(draft.tokens, data_of(constraint.vocabulary, draft.tokens), score, draft.score)
        for draft, score in zip(best, scores, strict=True)
    )
    return Found(texts, SearchCost(passes + bool(best), passes + sum(len(draft.tokens) - 1 for draft in best)))


def _mixed(embeddings: Any, live: Sequence[_Draft]) -> torch.Tensor:
    """``[1, 1, d]``: the last tokens' embeddings, weighed by the drafts' probabilities."""
    rows = embeddings(torch.tensor([draft.tokens[-1] for draft in live], device=embeddings.weight.device))
    weights = torch.softmax(torch.tensor([draft.score for draft in live], dtype=torch.float64), 0)
    mixed: torch.Tensor = (weights.to(rows)[:, None] * rows).sum(0)
    return mixed[None, None]


def _said(
    shared: NDArray[np.float64],
    live: Sequence[_Draft],
    prompt: Sequence[int],
    n_grams: LanguageModel | None,
    alpha: float,
) -> list[NDArray[np.float64]]:
    """The log weights of each draft's next tokens."""
    if n_grams is None:
        return [shared] * len(live)
    logits = next_logits(n_grams, [(*prompt, *draft.tokens) for draft in live])
    own = torch.log_softmax(logits.double(), -1).cpu().numpy()
    width = min(shared.size, own.shape[1])
    found = np.full((len(live), shared.size), -math.inf)
    found[:, :width] = (1 - alpha) * shared[:width] + alpha * own[:, :width]
    return list(found)


def _grown(
    draft: _Draft, logs: NDArray[np.float64], allowed: NDArray[np.bool_], constraint: Constrains, drafts: int
) -> list[_Draft]:
    """The draft with its likeliest allowed tokens, twice as many as there are drafts, as some may end."""
    size = min(logs.size, allowed.size)
    tokens = np.flatnonzero(allowed[:size] & (logs[:size] > -math.inf))
    best = tokens[np.argsort(-logs[tokens], kind="stable")[: 2 * drafts]].tolist()
    return [
        _Draft(draft.score + float(logs[token]), (*draft.tokens, token), constraint.advance(draft.state, token))
        for token in best
    ]


def _scored(ready: LanguageModel, prompt: Sequence[int], texts: Sequence[tuple[int, ...]]) -> list[float]:
    """The model's own log-probabilities of whole texts, in one pass."""
    if not texts:
        return []
    sequences = ready.start([list(prompt)])
    first = sequences.last.logits
    sequences.select([0] * len(texts))
    scored = sequences.extend([text[:-1] for text in texts])
    found = []
    for text, scores in zip(texts, scored, strict=True):
        logits = torch.cat([first, scores.logits]) if len(text) > 1 else first
        logs = torch.log_softmax(logits.double(), -1)
        found.append(float(logs[range(len(text)), list(text)].sum()))
    return found
