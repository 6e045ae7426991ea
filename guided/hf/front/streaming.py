"""Streamers and stopping criteria of transformers where its own loop does not run: told and asked after each token."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from transformers import GenerationMixin
from transformers.generation.stopping_criteria import (
    EosTokenCriteria,
    MaxLengthCriteria,
    MaxTimeCriteria,
    StopStringCriteria,
)

from guided.errors import UnsupportedError

if TYPE_CHECKING:
    from guided.draft.loop.speculate import Watch

__all__ = ["ends_streamer", "watch_of_call", "with_stop_strings"]

F = TypeVar("F", bound=Callable[..., Any])

_GENERATE_CODE = inspect.unwrap(GenerationMixin.generate).__code__

ROW_BY_ROW = (EosTokenCriteria, MaxLengthCriteria, MaxTimeCriteria, StopStringCriteria)
"""Functions of a row's own ids, and of the clock."""


class _Ended:
    """A streamer whose end is certain: whoever reads it hears so once."""

    def __init__(self, streamer: Any) -> None:
        self._streamer = streamer
        self._ended = False

    def put(self, value: torch.Tensor) -> None:
        """Pass tokens on."""
        self._streamer.put(value)

    def end(self) -> None:
        """Pass the first end on."""
        if not self._ended:
            self._ended = True
            self._streamer.end()


def ends_streamer(function: F) -> F:
    """Make a function end its argument ``streamer=`` however it returns: whoever reads it elsewhere waits for that.

    A ``custom_generate`` is not handed the streamer of its call by transformers (5.23); it gets it here.
    """

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        given = options.get("streamer") or _streamer_of(sys._getframe(1))
        if given is None:
            return function(*arguments, **options)
        if isinstance(given, _Ended):  # who made it ends it
            return function(*arguments, **{**options, "streamer": given})
        options["streamer"] = streamer = _Ended(given)
        try:
            return function(*arguments, **options)
        finally:
            streamer.end()

    return called  # type: ignore[return-value]


def _streamer_of(caller: FrameType) -> Any:
    return caller.f_locals.get("streamer") if caller.f_code is _GENERATE_CODE else None


def with_stop_strings(options: dict[str, Any], tokenizer: Any) -> dict[str, Any]:
    """Options of `generate` with ``stop_strings`` as a criterion: a ``custom_generate`` gets no tokenizer for them."""
    found = dict(options)
    strings = found.pop("stop_strings", None)
    if strings is not None:
        found["stopping_criteria"] = [*(found.get("stopping_criteria") or ()), StopStringCriteria(tokenizer, strings)]
    return found


def watch_of_call(
    streamer: Any, criteria: Sequence[Any], input_ids: torch.Tensor, max_length: int, eos_ids: frozenset[int]
) -> Watch | None:
    """What a call's streamer and criteria come to for rows that begin with ``input_ids``; None: nothing.

    Criteria are asked as the loop of transformers asks them: after every token, with the ids so far.  Raises
    `UnsupportedError` for several rows with a streamer, whose rows go on at once, or with criteria that are not known
    to look at each row for itself.
    """
    asked = [each for each in criteria if not _is_known(each, max_length, eos_ids)]
    if streamer is None and not asked:
        return None
    if len(input_ids) > 1:
        if streamer is not None:
            raise UnsupportedError(
                "a streamer takes one text, and with drafts those of a batch go on at different speeds",
                where="drafts",
                remedy="Pass one prompt to each call, and no n.",
            )
        for criterion in asked:
            if type(criterion) not in ROW_BY_ROW:
                raise UnsupportedError(
                    f"{type(criterion).__name__} may look at all rows, and with drafts those of a batch go on at"
                    " different speeds",
                    where="drafts",
                    remedy="Pass one prompt to each call, or leave out draft=.",
                )

    def watch(row: int, emitted: Sequence[int]) -> bool:
        new = torch.tensor(emitted, dtype=input_ids.dtype, device=input_ids.device)
        if streamer is not None:
            streamer.put(new[-1:].cpu())
        ids = torch.cat([input_ids[row], new])[None]
        answers = [bool(criterion(ids, None).all()) for criterion in asked]  # all are asked: some keep count
        return any(answers)

    return watch


def _is_known(criterion: Any, max_length: int, eos_ids: frozenset[int]) -> bool:
    """Does decoding end there anyway?"""
    if type(criterion) is MaxLengthCriteria:
        return int(criterion.max_length) >= max_length
    return type(criterion) is EosTokenCriteria and eos_ids.issuperset(criterion.eos_token_id.tolist())
