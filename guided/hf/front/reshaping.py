"""Transformers' own logits processors in decoding with drafts: where each of them stands beside the grammar's mask.

In transformers' loop processors come first, the grammar last of them, and then what a configuration says of
temperature and truncation, which sees allowed tokens only.  Drafts keep that law, so they keep that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

from guided.errors import GuidedError, UnsupportedError
from guided.lm import LanguageModel
from guided.steer import Declaration, Seen, Steerer

__all__ = ["AFTER", "ProcessorReshaping", "nothing_left"]

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


OPTIONS = {
    "EncoderNoRepeatNGramLogitsProcessor": "encoder_no_repeat_ngram_size",
    "ForcedBOSTokenLogitsProcessor": "forced_bos_token_id",
    "ForcedEOSTokenLogitsProcessor": "forced_eos_token_id",
    "MinLengthLogitsProcessor": "min_length",
    "MinNewTokensLengthLogitsProcessor": "min_new_tokens",
    "NoBadWordsLogitsProcessor": "bad_words_ids",
    "NoRepeatNGramLogitsProcessor": "no_repeat_ngram_size",
    "PrefixConstrainedLogitsProcessor": "prefix_allowed_tokens_fn",
    "SequenceBiasLogitsProcessor": "sequence_bias",
    "SuppressTokensAtBeginLogitsProcessor": "begin_suppress_tokens",
    "SuppressTokensLogitsProcessor": "suppress_tokens",
}
"""The options of `generate` that make processors which forbid tokens."""


class ProcessorReshaping:
    """`guided.draft.loop.reshaping.Reshaping` by processors of transformers, for the rows of one call.

    ``ids`` are the call's, ``int64[rows, length]`` with padding, since processors count it.  Raises `UnsupportedError`
    for processors that are not known to be functions of a row's ids and scores.
    """

    def __init__(self, processors: Sequence[Any], ids: torch.Tensor) -> None:
        self._ids = ids
        self._before: list[Any] = []
        self._after: list[Any] = []
        self._asked: list[Any] = []
        """Processors that speak elsewhere, and may leave nothing there."""
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
                    " a pair of models.",
                )

    @property
    def changes_all(self) -> bool:
        """Does anything come before the mask?"""
        return bool(self._before or self._asked)

    def __bool__(self) -> bool:
        return bool(self._before or self._after or self._asked)

    def as_steerer(self) -> tuple[Steerer, ProcessorReshaping]:
        """What comes before the mask as the first of steerers, and the rest.

        The rest still says of a text that it cannot go on, and why.
        """
        rest = ProcessorReshaping(self._after, self._ids)
        rest._asked = self._before
        return _ProcessorsFirst(self), rest

    def nothing_left(self, row: int, emitted: Sequence[int], allowed: torch.Tensor) -> GuidedError:
        """The error for a text after which the processors leave none of the tokens ``bool[V]`` that the mask allows."""
        return nothing_left(self._asked or self._before, self._extended(row, emitted), row, allowed)

    def before(self, row: int, emitted: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """The scores ``[V]`` after the processors that come before the mask."""
        if not self._before:
            return logits
        return _through(self._before, self._extended(row, emitted), logits.expand(len(self._ids), -1))[row]

    def _extended(self, row: int, emitted: Sequence[int]) -> torch.Tensor:
        """``int64[rows, length]``: every row is this one, since processors may hold a number for each row of a call."""
        ids = torch.cat([self._ids[row], torch.tensor(emitted, dtype=self._ids.dtype, device=self._ids.device)])
        return ids.expand(len(self._ids), -1)

    def after(self, row: int, emitted: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """The scores ``[V]`` after temperature and truncation."""
        return _through(self._after, self._ids[row : row + 1], logits[None])[0]


@dataclass(frozen=True, eq=False)
class _ProcessorsFirst:
    """Processors as a steerer, so that others speak after them."""

    processors: ProcessorReshaping

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, and where its prompt ends."""
        return Declaration(text=True, prompt_end=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The logits as the processors leave them."""
        places = zip(seen.rows, seen.texts, seen.prompt_lengths, logits, strict=True)
        return torch.stack([self.processors.before(row, text[end:], scores) for row, text, end, scores in places])


def _through(processors: Sequence[Any], ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    for processor in processors:
        scores = processor(ids, scores)
    return scores


def nothing_left(
    processors: Sequence[Any], ids: torch.Tensor, row: int, allowed: torch.Tensor, text: str | None = None
) -> GuidedError:
    """The error for a row of ``ids`` after which processors forbid all tokens ``bool[V]`` that the grammar allows.

    Each is asked once more, about even scores, so that those which forbid some of them are named.
    """
    names: list[str] = []
    for each in processors:
        try:
            scores = each(ids, torch.zeros((len(ids), len(allowed)), device=ids.device))[row]
        except Exception:  # Whatever else it needs: it is named where no other is.
            continue
        if bool((torch.isneginf(scores) & allowed.to(scores.device)).any()):
            names.append(type(each).__name__)
    names = names or [type(each).__name__ for each in processors if type(each) not in AFTER]
    options = [OPTIONS[name] for name in names if name in OPTIONS]
    after = "" if text is None else f" after {text!r}" if text else " at the beginning"
    remedy = f"Leave out {' and '.join(options) or 'what forbids them'}"
    if {"min_new_tokens", "min_length"} & set(options):
        remedy += ", or ask for fewer tokens"
    return GuidedError(
        f"{' and '.join(names)} {'forbids' if len(names) == 1 else 'together forbid'} every token that the grammar"
        f" allows{after}",
        where=f"row {row} of generate",
        remedy=f"{remedy}, or use a grammar with texts that {'it allows' if len(names) == 1 else 'they allow'}.",
    )
