"""A stack of steerers as a logits processor: ``model.generate(..., logits_processor=[processor])``.

It is a function of ``input_ids``: the other models' and prompts' rows are brought to whatever ids a call has, by
forking, rolling back and appending.  What they hold between calls is a memo, so beams may permute rows, and prompt
lookup and assistants may go back.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import LogitsProcessor

from guided.errors import GuidedError, UnsupportedError, VocabularyError
from guided.hf.prompt import SeenPrompts, running_generate
from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import Steerer
from guided.steer.layout import Layout
from guided.steer.rows import BranchRows
from guided.steer.stack import Plan, Stack, look_in

__all__ = ["SteeringLogitsProcessor"]

Tokens = tuple[int, ...]


class SteeringLogitsProcessor(LogitsProcessor):
    """Steers every generated row by a stack, or by one steerer.

    ``model`` is the generating model as a `LanguageModel`: steerers that need it on another prompt, its layers or its
    hidden states run it beside `generate`, which has none of these to give; for steerers that need other models or
    texts only, it is never run.  Encoder-decoder models are not supported.

    With a grammar, put its processor before this one: plausible sets and candidates are then of allowed tokens, and
    some are always left (after a `Mixture`, which may bring tokens back, put it once more).

    ``pad_token_id`` says which ids at the beginning of a row are padding; None where prompts have one length, or begin
    with that id themselves.  The prompt's end is known inside `generate`; in a loop of your own the first call's ids
    are the prompt, or pass ``prompt_length`` (padding included).

    One object serves any number of calls and threads, one call at a time.  Where calls of several loops alternate, each
    of them computes its rows again.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        stack: Stack | Steerer | Sequence[Steerer],
        model: LanguageModel,
        *,
        pad_token_id: int | None = None,
        prompt_length: int | None = None,
        same_tokenizer: bool = False,
    ) -> None:
        if isinstance(stack, Stack):
            self.stack = stack
        else:
            self.stack = Stack([stack] if isinstance(stack, Steerer) else stack)
        if self.stack.adaptive is not None:
            raise UnsupportedError(
                "transformers' loop runs the large model at every step, which entropy adaptive decoding is to save",
                where="SteeringLogitsProcessor",
                remedy="Use guided.generate(..., steer=[...]), or Stack(...).over(model).",
            )
        if model.can.encoder:
            raise GuidedError(
                "an encoder-decoder model cannot be steered by a logits processor, which does not see its input",
                where="SteeringLogitsProcessor",
                remedy="Use Stack(...).over(model).",
            )
        self.plan = Plan(model, self.stack, same_tokenizer=same_tokenizer)
        self.pad_token_id = pad_token_id
        self.prompt_length = prompt_length
        self._follower = _Follower(self.plan.layout(Needs(), with_base=False))
        self._prompts = SeenPrompts()
        self._lock = threading.Lock()

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """The steered scores ``[rows, width]``, as a new tensor.

        Raises `VocabularyError` when the scores are not as wide as the model's.
        """
        ids = np.ascontiguousarray(input_ids.detach().cpu().numpy(), np.int64)
        call = running_generate(self) if self.prompt_length is None else None
        if call is not None and call.other_tokenizer:
            # A draft in foreign ids: what it comes to in our ids is steered when it is verified.
            return scores
        if scores.shape[1] != self.plan.model.width:
            raise VocabularyError(
                f"the scores are of {scores.shape[1]} ids, the model is of {self.plan.model.width}",
                where="SteeringLogitsProcessor",
                remedy="Pass the model that generates.",
            )
        if call is not None:
            end = call.prompt_length
        elif self.prompt_length is not None:
            end = min(self.prompt_length, ids.shape[1])
        else:
            end = self._prompts.length(ids, lambda length: True)
        prompts = [self._unpadded(row[:end]) for row in ids]
        texts = [prompt + tuple(row[end:].tolist()) for prompt, row in zip(prompts, ids, strict=True)]
        with self._lock, torch.no_grad():
            runs = self._follower.follow(prompts, texts)
            rows = range(len(texts))
            logits = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
            steered = self.plan.steer(
                logits,
                self._follower.layout,
                [run.last(rows) for run in runs],
                tuple(texts),
                tuple(len(prompt) for prompt in prompts),
                look_in(runs, rows),
            )
        return steered.to(scores.dtype) if steered is not scores else scores.clone()

    def reset(self) -> None:
        """Forget the prompts of earlier hand-written loops, and all rows; never needed with `generate`."""
        with self._lock:
            self._prompts.clear()
            self._follower = _Follower(self._follower.layout)

    def _unpadded(self, prompt: NDArray[np.int64]) -> Tokens:
        """A prompt without its padding; its last token stays, whatever it is."""
        start = 0
        if self.pad_token_id is not None:
            while start < len(prompt) - 1 and prompt[start] == self.pad_token_id:
                start += 1
        return tuple(prompt[start:].tolist())


class _Follower:
    """The rows of all branches, brought to any texts that begin with their prompts."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._runs: list[BranchRows] = []
        self._prompts: list[Tokens] = []
        self._texts: list[Tokens] = []

    def follow(self, prompts: Sequence[Tokens], texts: Sequence[Tokens]) -> list[BranchRows]:
        """The runs, their row ``i`` at the end of ``texts[i]``, which begins with ``prompts[i]``."""
        if not self.layout.runs:
            return []
        sources = [self._source(prompt, text) for prompt, text in zip(prompts, texts, strict=True)]
        known = [source for source in sources if source is not None]
        try:
            if len(known) < len(sources):
                self._runs = [BranchRows(run, prompts) for run in self.layout.runs]
                lengths = [len(prompt) for prompt in prompts]
            else:
                lengths = [length for _, length in known]
                rows = [row for row, _ in known]
                for run in self._runs:
                    if rows != list(range(len(self._texts))):
                        run.select(rows)
                    if any(length < len(self._texts[row]) for row, length in known):
                        run.crop(lengths)
            rest = [text[length:] for text, length in zip(texts, lengths, strict=True)]
            if any(rest):
                for run in self._runs:
                    run.extend(rest)
        except BaseException:
            # Half moved rows are nobody's.
            self._runs, self._prompts, self._texts = [], [], []
            raise
        self._prompts, self._texts = list(prompts), list(texts)
        return self._runs

    def _source(self, prompt: Tokens, text: Tokens) -> tuple[int, int] | None:
        """The known row of this prompt that has most of this text, and how much; None without such a row."""
        best: tuple[int, int] | None = None
        for row, (known_prompt, known) in enumerate(zip(self._prompts, self._texts, strict=True)):
            if known_prompt != prompt:
                continue
            if known == text[: len(known)]:
                common = len(known)
            else:
                pairs = zip(known, text)
                common = next((n for n, (left, right) in enumerate(pairs) if left != right), min(len(known), len(text)))
            if best is None or common > best[1]:
                best = (row, common)
        return best
