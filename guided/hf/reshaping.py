"""Transformers' own logits processors in decoding with drafts: where each of them stands beside the grammar's mask.

In transformers' loop processors come first, the grammar last of them, and then what a configuration says of
temperature and truncation, which sees allowed tokens only.  Drafts keep that law, so they keep that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import (
    EpsilonLogitsWarper,
    EtaLogitsWarper,
    LogitNormalization,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from guided.errors import UnsupportedError

__all__ = ["ProcessorReshaping"]

BEFORE = (
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensLogitsProcessor,
)
"""Functions of a row's ids and scores: the same whatever other rows are and whatever was asked before."""

AFTER = (
    EpsilonLogitsWarper,
    EtaLogitsWarper,
    LogitNormalization,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)
"""Functions of the scores alone."""


class ProcessorReshaping:
    """`guided.draft.reshaping.Reshaping` by processors of transformers, for the rows of one call.

    ``ids`` are the call's, ``int64[rows, length]`` with padding, since processors count it.  Raises `UnsupportedError`
    for processors that are not known to be functions of a row's ids and scores.
    """

    def __init__(self, processors: Sequence[Any], ids: torch.Tensor) -> None:
        self._ids = ids
        self._before: list[Any] = []
        self._after: list[Any] = []
        for processor in processors:
            # Exact classes: what a subclass does is unknown.
            if type(processor) in AFTER:
                self._after.append(processor)
            elif type(processor) in BEFORE and not self._after:
                self._before.append(processor)
            else:
                raise UnsupportedError(
                    f"drafts cannot be verified under {type(processor).__name__}, which may keep a state of its own,"
                    " and neither can two models take turns",
                    where="drafts",
                    remedy="Steer with steer=[...] and constrain with the grammar, or decode without draft= and"
                    " EntropyAdaptive.",
                )

    @property
    def changes_all(self) -> bool:
        """Does anything come before the mask?"""
        return bool(self._before)

    def __bool__(self) -> bool:
        return bool(self._before or self._after)

    def before(self, row: int, emitted: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """The scores ``[V]`` after the processors that come before the mask."""
        if not self._before:
            return logits
        ids = torch.cat([self._ids[row], torch.tensor(emitted, dtype=self._ids.dtype, device=self._ids.device)])
        # Processors may hold a number for each row of the call: every row is this one, and the answer is its own.
        n_rows = len(self._ids)
        return _through(self._before, ids.expand(n_rows, -1), logits.expand(n_rows, -1))[row]

    def after(self, row: int, emitted: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """The scores ``[V]`` after temperature and truncation."""
        return _through(self._after, self._ids[row : row + 1], logits[None])[0]


def _through(processors: Sequence[Any], ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    for processor in processors:
        scores = processor(ids, scores)
    return scores
