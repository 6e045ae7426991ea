"""Where the prompt ends and the generated text begins, in the ids that a logits processor is handed.

`transformers` calls a processor with prompt and generated ids in one row and does not say how long the prompt is.
A processor that remembers "the length of the first call" is wrong in the second `generate`, and one that compares with
what it saw before cannot tell a longer prompt from a continued text.  So there are three ways, the certain ones first:

1. The caller says it (``prompt_length=``).
2. Inside `generate` the answer is on the stack: the outermost running `GenerationMixin.generate` that was given this
   very processor has computed the length of its prompt (``input_ids_length``) before the first call.  Outermost, since
   assisted decoding lets the assistant `generate` with the same processor and the text so far as its prompt.
3. In a loop written by hand there is only the history: see `SeenPrompts`.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import GenerationMixin, LogitsProcessor, LogitsProcessorList

from guided.hf.masking.rejection import Choosing

__all__ = ["RunningGenerate", "RunningGenerates", "SeenPrompts", "running_generate"]

_GENERATE_CODE = inspect.unwrap(GenerationMixin.generate).__code__
_LIST_CODE = inspect.unwrap(LogitsProcessorList.__call__).__code__


def _code(name: str) -> CodeType | None:
    """The code of a loop; it is not public, and where it is missing, each step looks through the stack."""
    return getattr(inspect.unwrap(getattr(GenerationMixin, name, object)), "__code__", None)


_SAMPLE_CODE = _code("_sample")
_LOOPS = (_SAMPLE_CODE, _code("_beam_search"), _code("_assisted_decoding"))

KNOWN_PROMPTS = 64
"""How many interleaved hand-written loops are told apart; the least recently used prompt is forgotten beyond that."""


@dataclass(frozen=True)
class RunningGenerate:
    """What the outermost `generate` on the stack says."""

    prompt_length: int
    """Length of the prompt that it decodes from, in tokens; 0 when it was given embeddings."""
    other_tokenizer: bool
    """True while its assistant drafts with a tokenizer of its own: the ids of such a call are not our ids."""
    scores_are_free: bool = False
    """True where the scores are surely a copy that transformers made for this step and that nobody else has seen.

    So it is in the loop of greedy decoding and sampling for the first processor of all, unless raw logits are kept.
    """
    attention_mask: torch.Tensor | None = None
    """That of the prompts, ``[rows, prompt_length]``; None where it hides nothing."""
    mask_given: bool = False
    """True where the caller gave the mask; else transformers made it, of ones where it knows no padding id."""
    last: LogitsProcessor | None = None
    """What the processor added at the end of the list that `generate` made for one of its loops."""
    choosing: Choosing | None = None
    """How the loop takes a token where nothing else sees the scores behind the processor; None: not known."""


def running_generate(processor: object) -> RunningGenerate | None:
    """The `generate` call on this thread's stack that was given ``processor``, None outside of one.

    Costs 6 us inside `generate`, 3 us elsewhere at a stack depth of 100.  A release of transformers that renames the
    local variables read here turns the answer into None; a test of ours fails then.
    """
    return _looked_up(processor, sys._getframe(1))[0]


class RunningGenerates:
    """`running_generate` for one processor, to be asked by its ``__call__``: found once in each `generate`.

    In the loops of `generate` the answer goes with the list of processors, which it makes anew; what it costs to look
    through the stack and its local variables at each step is mostly what is in no cache.  ``last_of`` is shown each
    such list once, and may add to it what is to run last.
    """

    def __init__(self, last_of: Callable[[LogitsProcessorList], LogitsProcessor | None]) -> None:
        self._last_of = last_of
        self._last: tuple[weakref.ref[LogitsProcessorList], RunningGenerate] | None = None

    def of(self, processor: object) -> RunningGenerate | None:
        """The same as `running_generate`, and whether the scores of this call are free."""
        caller = sys._getframe(2)
        loop = caller.f_back
        if caller.f_code is not _LIST_CODE or loop is None or loop.f_code not in _LOOPS:
            return running_generate(processor)
        processors: Any = caller.f_locals["self"]
        last = self._last
        if last is not None and last[0]() is processors:
            return last[1]
        call, names = _looked_up(processor, caller)
        made = names.get("prepared_logits_processor") is processors and names.get("logits_processor") is not processors
        if call is None or not made:
            return call
        config = names.get("generation_config")
        sampling = loop.f_code is _SAMPLE_CODE
        if sampling and processors[0] is processor and config is not None and not config.output_logits:
            call = replace(call, scores_are_free=True)
        call = replace(call, last=self._last_of(processors))
        if sampling and config is not None:
            behind = processors[[each is processor for each in processors].index(True) + 1 :]
            call = replace(call, choosing=Choosing.of(behind, config))
        self._last = weakref.ref(processors), call
        return call


def _looked_up(processor: object, frame: FrameType | None) -> tuple[RunningGenerate | None, Mapping[str, Any]]:
    """The answer and the local variables of that `generate`."""
    names: Mapping[str, Any] = {}
    n_found = 0
    while frame is not None:
        if frame.f_code is _GENERATE_CODE:
            found = frame.f_locals  # all of them are gathered at each look
            given = found.get("logits_processor") or ()
            if "input_ids_length" in found and any(item is processor for item in given):
                names = found
                n_found += 1
        frame = frame.f_back
    if not n_found:
        return None, names
    mode = names.get("generation_mode_kwargs") or {}
    foreign = n_found > 1 and mode.get("assistant_tokenizer") is not None
    # None stands for ones alone; the mask that grows with the text is the decoding method's own.
    mask = names.get("model_kwargs", {}).get("attention_mask")
    given = bool(names.get("kwargs_has_attention_mask"))
    return RunningGenerate(names["input_ids_length"], foreign, attention_mask=mask, mask_given=given), names


class SeenPrompts:
    """The prompts of the loops seen so far, for callers that are not `generate`.

    A call continues a known prompt when each of its rows begins with one of that prompt's rows and at least one row's
    remainder is text that the grammar allows; the most recently used such prompt wins.  Any other call is a new
    prompt, all of it.  So rows may be permuted, repeated, dropped, rewound and extended by several tokens; what stays
    uncertain is a new prompt that is a known one followed by text that the grammar happens to allow.
    """

    def __init__(self) -> None:
        self._known: list[tuple[int, frozenset[bytes]]] = []
        self._lock = threading.Lock()

    def length(self, ids: NDArray[np.int64], continues: Callable[[int], bool]) -> int:
        """The prompt length of ``ids`` (``int64[rows, length]``); ``continues(n)``: do the ids after ``n`` fit?"""
        width: int = ids.shape[1]
        with self._lock:
            known = list(self._known)
        for run in known:
            length, prompts = run
            if length <= width and prompts.issuperset(_rows(ids[:, :length])) and continues(length):
                self._use(run)
                return length
        self._use((width, frozenset(_rows(ids))))
        return width

    def _use(self, run: tuple[int, frozenset[bytes]]) -> None:
        with self._lock:
            if run in self._known:
                self._known.remove(run)
            self._known.insert(0, run)
            del self._known[KNOWN_PROMPTS:]

    def clear(self) -> None:
        """Forget every prompt: the next call is a new one."""
        with self._lock:
            self._known.clear()


def _rows(ids: NDArray[np.int64]) -> list[bytes]:
    return [row.tobytes() for row in ids]
