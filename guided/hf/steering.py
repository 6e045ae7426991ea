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
from guided.hf.masking.prompt import RunningGenerate, SeenPrompts, running_generate
from guided.lm.given import language_model
from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import Steerer
from guided.steer.layout import Layout
from guided.steer.plan import Plan, look_in
from guided.steer.rows import BranchRows
from guided.steer.stack import Stack

__all__ = ["SteeringLogitsProcessor"]

Tokens = tuple[int, ...]


class SteeringLogitsProcessor(LogitsProcessor):
    """Steers every generated row by a stack, or by one steerer.

    ``model`` is the generating model as a `LanguageModel`: steerers that need it on another prompt, its layers or its
    hidden states run it beside `generate`, which has none of these to give; for steerers that need other models or
    texts only, it is never run.  Encoder-decoder models are not supported.

    With a grammar, put its processor before this one: plausible sets and candidates are then of allowed tokens, and
    some are always left (after a `Mixture`, which may bring tokens back, put it once more).

    Inside `generate` the prompt's end and its padding are known: the attention mask says which ids are none of the
    prompt's.  In a loop of your own the first call's ids are the prompt, or pass ``prompt_length`` (padding included);
    and ``pad_token_id`` says which ids at the beginning of a row are padding, as it does inside `generate` where no
    mask was given.  Without it, rows that look padded with the model's padding or end-of-text id are refused; an id
    that no prompt begins with, such as -1, says that nothing is padding.

    One object serves any number of calls and threads, one call at a time.  Where calls of several loops alternate, each
    of them computes its rows again.

    >>> import guided.hf
    >>> from guided.hf import SteeringLogitsProcessor
    >>> from guided.lm import language_model
    >>> from guided.steer import Momentum
    >>> loaded = guided.hf.load()
    >>> steering = SteeringLogitsProcessor(Momentum(), language_model(loaded))
    >>> prompt = loaded.tokenizer("Answer:", return_tensors="pt")
    >>> loaded.model.generate(**prompt, logits_processor=[steering], max_new_tokens=3, do_sample=False).shape
    torch.Size([1, 8])
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
        model = language_model(model)
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
        self.plan = Plan(model, self.stack.steerers, same_tokenizer=same_tokenizer)
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
        call = running_generate(self)
        if call is not None and call.other_tokenizer:
            # A draft in foreign ids: what it comes to in our ids is steered when it is verified.
            return scores
        if scores.shape[1] != self.plan.model.width:
            raise VocabularyError(
                f"the scores are of {scores.shape[1]} ids, the model is of {self.plan.model.width}",
                where="SteeringLogitsProcessor",
                remedy="Pass the model that generates.",
            )
        if self.prompt_length is not None:
            end = min(self.prompt_length, ids.shape[1])
        elif call is not None:
            end = call.prompt_length
        else:
            end = self._prompts.length(ids, lambda length: True)
        prompts = self._unpadded(ids[:, :end], call)
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

    def _unpadded(self, prompts: NDArray[np.int64], call: RunningGenerate | None) -> list[Tokens]:
        """Each row's prompt without its padding; the last token stays, whatever it is.

        Raises `GuidedError` where rows look padded and nothing says whether they are.
        """
        kept = np.ones(prompts.shape, np.bool_)
        mask = None if call is None else call.attention_mask
        if mask is not None and len(mask) == len(prompts):
            known = mask[:, : prompts.shape[1]].detach().cpu().numpy() != 0
            kept[:, : known.shape[1]] = known
        elif self.pad_token_id is not None:
            if call is None or not call.mask_given:
                kept = np.arange(prompts.shape[1]) >= _n_leading(prompts, self.pad_token_id)[:, None]
        elif mask is not None:
            raise GuidedError(
                f"{len(prompts)} rows have an attention mask of {len(mask)} rows",
                where="SteeringLogitsProcessor",
                remedy="Pass pad_token_id=, the id that prompts are padded with.",
            )
        elif call is None:
            self._check_whole(prompts)
        kept[:, -1:] = True
        return [tuple(row[own].tolist()) for row, own in zip(prompts, kept, strict=True)]

    def _check_whole(self, prompts: NDArray[np.int64]) -> None:
        """Raise `GuidedError` for prompts that look padded."""
        for token in sorted(_padding_ids(self.plan.model)):
            leading = _n_leading(prompts, token)
            # One such id before every prompt is the beginning of a text.
            if leading.max() > 1 or leading.min() != leading.max():
                raise GuidedError(
                    f"row {leading.argmax()} begins with the model's padding id {token}",
                    where="SteeringLogitsProcessor",
                    remedy=f"Pass pad_token_id={token} if that is padding, pad_token_id=-1 if it is the prompt's own.",
                )


def _n_leading(prompts: NDArray[np.int64], token: int) -> NDArray[np.int64]:
    """How often each row repeats a token at its beginning."""
    counts: NDArray[np.int64] = np.logical_and.accumulate(prompts == token, axis=1).sum(axis=1)
    return counts


def _padding_ids(model: LanguageModel) -> set[int]:
    """What batches for this model are padded with: the padding ids that are declared, or an end-of-text id."""
    network = getattr(model, "model", None)
    holders = [
        getattr(model, "tokenizer", None),
        *(getattr(network, name, None) for name in ("generation_config", "config")),
    ]
    declared = {getattr(holder, "pad_token_id", None) for holder in holders}
    return {int(token) for token in declared if token is not None} | set(model.eos_ids)


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
