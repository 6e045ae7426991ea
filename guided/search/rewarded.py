"""Rewards as searches: DeAL and block-wise best-of-K of `guided.steer`, under a grammar and in the shape of searches.

The algorithms are `guided.steer.deal` and `guided.steer.best_of_blocks`, which need no grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from guided.constraint.protocol import Constrains
from guided.lm.given import language_model
from guided.lm.model import NOTHING, LanguageModel, Needs, Sequences
from guided.lm.wrapped import WrappedModel
from guided.search.beam import check_sizes
from guided.search.result import Found, Hypothesis, SearchCost, data_of
from guided.steer.blocks import Value, best_of_blocks
from guided.steer.lookahead import deal

__all__ = ["block_search", "deal_search"]


def deal_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    heuristic: Value,
    weight: float = 1.0,
    look_ahead: int = 8,
    width: int = 4,
    expand: int = 8,
    n_best: int = 1,
    max_tokens: int = 256,
) -> Found:
    """Beams ranked by ``log p + weight heuristic(text and its greedy roll-out)``: DeAL, Huang et al. 2024.

    ``heuristic`` is a `TextReward`, or a function from token sequences (prompt included) to a number each; it judges
    the ``expand`` likeliest allowed tokens after each of ``width`` hypotheses with the ``look_ahead`` tokens that the
    model writes after them.  ``score`` is the log-probability over all ids, ``rank_score`` what texts were ranked by.
    A step costs up to ``width * expand * (1 + look_ahead)`` rows.  ``weight=0`` is beam search.  Raises `RewardError`
    for a heuristic that fails, `LimitError` where the language has no text of ``max_tokens`` tokens.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> def many_b(texts):
    ...     return [float(text.count(1)) for text in texts]
    >>> search.deal_search(model, [0], language, heuristic=many_b, look_ahead=1, max_tokens=6)[0].text
    'bbbb'
    """
    check_sizes(width, n_best)
    counted = _Counted(model)
    beams = deal(
        counted,
        prompt,
        heuristic,
        n_beams=width,
        top_k=expand,
        look_ahead=look_ahead,
        weight=weight,
        max_new_tokens=max_tokens,
        constraint=constraint,
    )
    texts = (
        Hypothesis(beam.tokens, data_of(constraint.vocabulary, beam.tokens), beam.log_probability, beam.score)
        for beam in beams[:n_best]
    )
    return Found(tuple(texts), counted.cost())


def block_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    value: Value,
    blocks: int = 8,
    block_tokens: int = 16,
    max_tokens: int = 256,
    seed: int | np.random.Generator | None = None,
    unit: Callable[[tuple[int, ...]], bool] | None = None,
) -> Found:
    """Draw ``blocks`` continuations of some tokens, keep the one of greatest value, go on: Mudgal et al. 2023.

    The one search here that draws: tokens come from the allowed ones, and ``seed`` decides them.  ``value`` is a
    `TextReward`, or a function from token sequences (prompt included) to a number each.  Finds one text; ``score`` is
    its log-probability over all ids, ``rank_score`` its value.  A step costs ``blocks`` rows.  ``blocks=1`` is masked
    sampling, blocks as long as the text are best-of-K.  ``unit`` says of a block's tokens whether a step ends with
    them, and the block with it, for the rewards of steps.  Raises `RewardError` for a value that fails,
    `LimitError` where the language has no text of ``max_tokens`` tokens.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> def many_b(texts):
    ...     return [float(text.count(1)) for text in texts]
    >>> found = search.block_search(model, [0], language, value=many_b, blocks=8, block_tokens=2, max_tokens=6, seed=0)
    >>> found[0].text, found[0].rank_score
    ('abbb', 3.0)
    """
    counted = _Counted(model)
    found = best_of_blocks(
        counted,
        prompt,
        value,
        np.random.default_rng(seed),
        n_blocks=blocks,
        block_tokens=block_tokens,
        max_new_tokens=max_tokens,
        constraint=constraint,
        unit=unit,
    )
    data = data_of(constraint.vocabulary, found.tokens)
    return Found((Hypothesis(found.tokens, data, found.log_probability, found.value),), counted.cost())


class _Counted(WrappedModel):
    """A model that knows what was computed after the prompt was read."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(language_model(model))
        self._passes = self._positions = 0

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> Sequences:
        sequences = self.model.start(prompts, needs)
        self._passes, self._positions = self.calls.passes, self.calls.positions
        return sequences

    def cost(self) -> SearchCost:
        return SearchCost(self.calls.passes - self._passes, self.calls.positions - self._positions)
