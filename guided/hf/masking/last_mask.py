"""`LastMask`: the grammar's last word in one `generate`, behind all processors, and an error where nothing is left.

Transformers runs processors in an order of its own: those of ``no_repeat_ngram_size`` and the like before the given
ones, a user's own after them.  Together with the grammar they may forbid every token, and then loops take token 0, or
fail on a distribution of NaN.  So `GuidedLogitsProcessor` puts this at the end of the list that a `generate` has made
for itself, wherever something else than temperature and truncation is in it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch
from transformers import LogitsProcessor

from guided.constraint.effects.shared_rows import KeptRow
from guided.errors import GuidedError
from guided.hf.front.reshaping import AFTER, nothing_left
from guided.hf.masking.apply import mask_scores
from guided.vocab import Vocabulary

__all__ = ["LastMask", "last_mask_of"]

SHOWN = 60
"""Bytes of the text that an error shows."""


class LastMask(LogitsProcessor):
    """Masks again what `owner` masked in the same step, and raises `GuidedError` for a text that cannot go on.

    ``live`` rows are those whose text the grammar allows and that have not ended.
    """

    def __init__(self, owner: object, processors: Sequence[Any], vocabulary: Vocabulary) -> None:
        self.owner = owner
        self._others = [each for each in processors if each is not owner]
        self._vocabulary = vocabulary
        self._step: tuple[torch.Tensor, list[KeptRow], list[bool], int] | None = None

    def begin(self, input_ids: torch.Tensor, masks: list[KeptRow], live: list[bool], prompt_length: int) -> None:
        """What the owner found in this step."""
        self._step = (input_ids, masks, live, prompt_length)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """``scores`` with the mask, as a new tensor.  Raises an error that says why where no token is left."""
        step, self._step = self._step, None
        if step is None or step[0] is not input_ids:
            return scores
        _, masks, live, prompt_length = step
        masked = mask_scores(scores, masks)
        empty = [row for row, none_left in enumerate(_empty(masked)) if none_left and live[row]]
        if empty:
            caller = sys._getframe(1).f_back
            found = _hopeless(caller, input_ids, empty, live)
            if found is not None:
                even = mask_scores(torch.zeros_like(scores), masks)
                raise self._error(input_ids, ~torch.isneginf(even[found]), found, prompt_length)
        return masked

    def _error(self, input_ids: torch.LongTensor, allowed: torch.Tensor, row: int, prompt_length: int) -> GuidedError:
        """What is said of a row that cannot go on, of which the grammar allows these tokens."""
        data = b"".join(
            self._vocabulary.token_bytes(token) or b""
            for token in input_ids[row, prompt_length:].tolist()
            if 0 <= token < self._vocabulary.size
        )
        return nothing_left(self._others, input_ids, row, allowed, data[-SHOWN:].decode("utf-8", errors="replace"))


def last_mask_of(processors: list[Any], owner: object, vocabulary: Vocabulary) -> LastMask | None:
    """The last mask of a list of processors that `generate` made; added where it is wanted and not there yet."""
    found = next((each for each in processors if isinstance(each, LastMask) and each.owner is owner), None)
    if found is None and any(each is not owner and type(each) not in AFTER for each in processors):
        found = LastMask(owner, list(processors), vocabulary)
        processors.append(found)
    return found


def _empty(masked: torch.Tensor) -> list[bool]:
    found: list[bool] = torch.isneginf(masked.amax(dim=-1)).tolist()
    return found


def _hopeless(loop: FrameType | None, input_ids: torch.Tensor, empty: list[int], live: list[bool]) -> int | None:
    """A row without which the loop that runs cannot give a text of its prompt; None where others are left, or it is not
    known whether this row will be.

    Beams may die as long as others live or have ended.  Of drafts those are judged that greedy verification accepts;
    draws from nothing fail in torch.
    """
    names = {} if loop is None else loop.f_locals
    if "is_sent_finished" in names and "num_beams" in names:
        beams = int(names["num_beams"])
        ended = names["is_sent_finished"].any(dim=-1).tolist()
        for prompt, done in enumerate(ended):
            rows = range(prompt * beams, (prompt + 1) * beams)
            if not done and all(row in empty or not live[row] for row in rows):
                return next((row for row in rows if row in empty), None)
        return None
    if "candidate_input_ids" in names and "new_logits" in names:
        at = input_ids.shape[1] - int(names["cur_len"])
        drafted = names["candidate_input_ids"][0, names["cur_len"] : input_ids.shape[1]]
        chosen = names["new_logits"][0, :at].argmax(dim=-1)
        sure = at == 0 or (not names["do_sample"] and torch.equal(chosen.to(drafted), drafted))
        return empty[0] if sure else None
    return empty[0] if "next_token_logits" in names else None
