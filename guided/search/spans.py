"""`best_spans`: the spans of a passage that a model finds likeliest, exactly and all of them (Castel et al., 2022).

A reader that answers with a span of its passage is usually decoded greedily, and may then leave the passage or miss the
best span.  The score of the span from i to j is

    S(i, j) = sum over k from i to j of log p(x_k | prompt, x_i ... x_(k-1))  +  log p(end | prompt, x_i ... x_j)

One teacher-forced row for each start gives all its prefixes, so all n (n + 1) / 2 spans cost n rows, not n^2 texts.
(How Optimal is Greedy Decoding for Extractive Question Answering?, arXiv 2108.05857.)
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from guided.errors import GuidedError
from guided.lm.given import language_model
from guided.lm.model import LanguageModel, Sequences

__all__ = ["Span", "best_spans"]

SCORED_BYTES = 128 << 20
"""Logits that one forward pass may give: with 128,000 ids and float32, 260 positions."""


@dataclass(frozen=True)
class Span:
    """``passage[start:stop]``; ``score`` is its log-probability as an answer, the end included.

    >>> from guided.lm import TableModel
    >>> from guided.search import best_spans
    >>> model = TableModel(lambda tokens: [0.0, 0.0, 3.0, 3.0], width=4, eos_ids=[3])  # likes 2 and the end
    >>> best_spans(model, [0], [1, 2, 2, 0])[0]  # passage[1:2]
    Span(start=1, stop=2, score=-1.483469064267375)
    """

    start: int
    stop: int
    score: float


def best_spans(
    model: LanguageModel,
    prompt: Sequence[int],
    passage: Sequence[int],
    *,
    end_ids: Collection[int] | None = None,
    opening: Sequence[int] = (),
    longest: int | None = None,
    starts: Collection[int] | None = None,
    stops: Collection[int] | None = None,
    n_best: int = 1,
) -> list[Span]:
    """The ``n_best`` spans of ``passage`` with the highest scores, best first; the first in the passage among equals.

    ``prompt`` and ``passage`` are token ids; an encoder-decoder's prompt is the encoder's.  ``end_ids`` are the ids
    that close an answer (None: the model's end-of-text ids; for T5 its next sentinel), whose probabilities are added
    up; ``opening`` is what the answer begins with in any case (T5: its first sentinel).  ``longest`` bounds a span's
    tokens, which also bounds the cost: starts times ``longest`` positions, in passes of at most 128 MB of logits.
    ``starts`` and ``stops`` are the places where spans may begin and end (before and behind tokens, 0 to
    ``len(passage)``), say those between words; None: any.  A span is never empty.

    Raises `GuidedError` when there is no such span, or no id to end with.

    >>> from guided.lm import TableModel
    >>> from guided.search import best_spans
    >>> model = TableModel(lambda tokens: [0.0, 0.0, 3.0, 1.0], width=4, eos_ids=[3])
    >>> passage = [1, 2, 2, 0]
    >>> [passage[span.start : span.stop] for span in best_spans(model, [0], passage, n_best=3, longest=2)]
    [[2], [2], [2, 2]]
    """
    model = language_model(model)
    ends = sorted(model.eos_ids if end_ids is None else {int(end) for end in end_ids})
    if not ends or not all(0 <= end < model.width for end in ends):
        raise GuidedError(f"an answer cannot end with one of the ids {ends}", remedy="Pass end_ids of this model.")
    if n_best < 1 or (longest is not None and longest < 1):
        raise GuidedError("n_best and longest are at least 1", remedy="Leave them out, or pass larger ones.")
    tokens = [int(token) for token in passage]
    wanted = set(range(1, len(tokens) + 1) if stops is None else stops)
    limits = {
        start: max((stop for stop in wanted if start < stop <= _limit(start, longest, len(tokens))), default=0)
        for start in sorted(set(range(len(tokens)) if starts is None else starts))
        if 0 <= start < len(tokens)
    }
    rows = [(start, stop) for start, stop in limits.items() if stop]
    if not rows:
        raise GuidedError("no span of the passage is allowed", remedy="Check the passage, starts, stops and longest.")
    # A heap of the best so far; ties go to the span that comes first.
    best: list[tuple[float, int, int]] = []
    for start, scores in _scored(model, list(prompt), list(opening), tokens, rows, ends):
        for length, score in enumerate(scores.tolist(), 1):
            if start + length in wanted:
                entry = (score, -start, -(start + length))
                if len(best) < n_best:
                    heapq.heappush(best, entry)
                elif entry > best[0]:
                    heapq.heapreplace(best, entry)
    return [Span(-start, -stop, score) for score, start, stop in sorted(best, reverse=True)]


def _limit(start: int, longest: int | None, size: int) -> int:
    return size if longest is None else min(size, start + longest)


def _scored(
    model: LanguageModel,
    prompt: list[int],
    opening: list[int],
    passage: list[int],
    rows: list[tuple[int, int]],
    ends: list[int],
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """For each start, the scores of its spans of 1, 2, ... tokens up to its last stop."""
    positions = max(1, SCORED_BYTES // (8 * model.width))
    at = 0
    while at < len(rows):
        # As many rows as fit in one pass; a row too long for one is read in several.
        size = 1
        while at + size < len(rows) and sum(stop - start for start, stop in rows[at : at + size + 1]) <= positions:
            size += 1
        batch = rows[at : at + size]
        sequences = model.start([prompt] * size)
        if opening:
            sequences.extend([opening] * size)
        for (start, _), scores in zip(batch, _spans_of(sequences, passage, batch, ends, positions), strict=True):
            yield start, scores
        at += size


def _spans_of(
    sequences: Sequences, passage: list[int], batch: list[tuple[int, int]], ends: list[int], positions: int
) -> list[NDArray[np.float64]]:
    first = torch.log_softmax(sequences.last.logits.double(), -1)
    before = [first[row] for row in range(len(batch))]
    sums: list[list[float]] = [[] for _ in batch]
    so_far = [0.0] * len(batch)
    longest = max(stop - start for start, stop in batch)
    step = max(1, positions // len(batch))
    for offset in range(0, longest, step):
        pieces = [passage[start + offset : min(stop, start + offset + step)] for start, stop in batch]
        for row, scores in enumerate(sequences.extend(pieces)):
            if not pieces[row]:
                continue
            after = torch.log_softmax(scores.logits.double(), -1)
            known = torch.cat([before[row][None], after[:-1]])
            chosen = known[torch.arange(len(pieces[row])), torch.tensor(pieces[row])].cpu().numpy()
            closing = torch.logsumexp(after[:, ends], -1).cpu().numpy()
            running = so_far[row] + np.cumsum(chosen)
            sums[row].extend((running + closing).tolist())
            so_far[row] = float(running[-1])
            before[row] = after[-1]
    return [np.array(row) for row in sums]
