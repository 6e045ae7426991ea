"""The logits processor for `transformers`: forbids what the grammar forbids, whatever the decoding method does.

It is a function of ``input_ids``: which tokens are allowed depends on the generated ids of a row alone, so beams may
permute rows and assisted decoding may go back.  What is kept between calls (`PrefixStates`, `SeenPrompts`) is a memo.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import LogitsProcessor

from guided import tokenset
from guided.constraint.batch import kept_rows
from guided.constraint.effects.shared_rows import KeptRow, with_address
from guided.constraint.prefixes import PrefixStates
from guided.constraint.protocol import Constrains, JudgesTokens
from guided.errors import GuidedError, VocabularyError
from guided.grammar.ir import Grammar
from guided.hf.constraints import constraints_for, first_masks, named_special_ids
from guided.hf.masking.apply import mask_own_scores, mask_scores, mask_threads
from guided.hf.masking.last_mask import LastMask, last_mask_of
from guided.hf.masking.prompt import RunningGenerates, SeenPrompts
from guided.hf.masking.rejection import Choosing, choose_by_rejection

__all__ = ["GuidedLogitsProcessor"]


class _Signed:
    """A method that has its signature at hand.

    Transformers asks for it at every step, and for that of an ordinary method makes one out of the function's: 25 us
    where it has to be read off the code, 13 us where the function has it, 7 us this way, on a cache of other things.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.__wrapped__ = method
        self.__doc__ = method.__doc__
        whole = inspect.signature(method)
        self._bound = whole.replace(parameters=list(whole.parameters.values())[1:])

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        if instance is None:
            return self.__wrapped__
        bound = partial(self.__wrapped__, instance)
        bound.__signature__ = self._bound  # type: ignore[attr-defined]
        return bound


class GuidedLogitsProcessor(LogitsProcessor):
    """Keeps every generated row in its grammar's language: ``model.generate(..., logits_processor=[processor])``.

    ``grammar`` is a grammar or compiled constraint for all rows, or a sequence of them: with ``n`` of them the rows
    must be a multiple ``k * n``, and row ``i`` belongs to number ``i // k``, which is how `generate` lays out beams and
    ``num_return_sequences``.  ``tokenizer`` is the model's tokenizer or a `Vocabulary`; None if all are compiled.

    ``max_new_tokens`` steers every row to a whole text, end-of-text token included, within that many tokens; pass the
    same number to `generate`.  A budget that no text fits raises `LimitError` here, before the model runs.

    One object serves any number of calls, decoding methods and threads.  In `generate` the prompt's length is known for
    certain.  In a loop of your own the first call's ids are the prompt and a call that does not continue a known prompt
    starts another; pass ``prompt_length`` (padding included) or call `reset` where a new prompt may be mistaken for the
    continuation of an old one (see `guided.hf.masking.prompt`).

    A database's masks take milliseconds.  Where greedy decoding or sampling is all that sees the scores in `generate`,
    a token is drawn and judged before a mask is made, and the scores leave that one: see `guided.hf.masking.rejection`.

    A row that holds a forbidden token may only end: beam search keeps such rows at score ``-inf`` and verification of
    drafts rejects them, and both need a row without NaN.

    Other processors may stand before it and after it.  In `generate` the mask is also the last one, but before nothing
    that transformers adds for itself.  They may leave no token that the grammar allows (``min_new_tokens``,
    ``suppress_tokens``, ``no_repeat_ngram_size``): then a `GuidedError` names them.  In a loop of your own such a row
    is all ``-inf``.

    >>> import guided.hf
    >>> loaded = guided.hf.load()
    >>> processor = guided.hf.GuidedLogitsProcessor(guided.choice(["yes", "no"]), loaded.tokenizer, max_new_tokens=8)
    >>> prompt = loaded.tokenizer("Answer:", return_tensors="pt")
    >>> ids = loaded.model.generate(**prompt, logits_processor=[processor], max_new_tokens=8, do_sample=False)
    >>> loaded.tokenizer.decode(ids[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True) in ("yes", "no")
    True
    """

    supports_continuous_batching = False

    def __init__(
        self,
        grammar: Grammar | Constrains | Sequence[Grammar | Constrains],
        tokenizer: object | None = None,
        *,
        max_new_tokens: int | None = None,
        prompt_length: int | None = None,
    ) -> None:
        self.constraints = constraints_for(grammar, tokenizer)
        self.vocabulary = self.constraints[0].vocabulary
        self.max_new_tokens = max_new_tokens
        self.prompt_length = prompt_length
        # Equal constraints share one memo: a batch of one grammar is the common case.
        memos = {id(constraint): PrefixStates(constraint) for constraint in self.constraints}
        self._states = [memos[id(constraint)] for constraint in self.constraints]
        judges = tuple(constraint for constraint in self.constraints if isinstance(constraint, JudgesTokens))
        self._judges = judges if len(judges) == len(self.constraints) else ()
        """The constraints, if all of them judge tokens."""
        self._prompts = SeenPrompts()
        self._running = RunningGenerates(lambda processors: last_mask_of(processors, self, self.vocabulary))
        self._end_row = with_address(tokenset.of_ids(self.vocabulary.eos_ids, self.vocabulary.n_words))
        self._has_text = np.diff(self.vocabulary.offsets) > 0
        self._checked_width: int | None = None
        self._shares: list[int] = []
        """The number of each row's constraint, in the last call."""
        self._first: list[KeptRow] | None = None
        if max_new_tokens is not None:
            self._first = [with_address(row) for row in first_masks(self.constraints, max_new_tokens)]

    @_Signed
    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """``scores`` (``[rows, width]``) with ``-inf`` for every forbidden token, as a new tensor.

        (Within `generate`, a copy that the loop made for this step and hands to this processor first is written to.)
        Ids at or above the vocabulary's size (padding of the model's matrix) are forbidden.  Raises `VocabularyError`
        when the scores are too narrow for the vocabulary.
        """
        call = self._running.of(self) if self.prompt_length is None else None
        if call is not None and call.other_tokenizer:
            # A draft in foreign ids: left alone, since what it comes to in our ids is verified by a later call.
            return scores
        n_rows, length = input_ids.shape
        owners = self._shares
        if len(owners) != n_rows:
            owners = self._shares = self._owners(n_rows)
        start = self._prompt_end(_as_array(input_ids), owners) if call is None else call.prompt_length
        if scores.shape[1] != self._checked_width:
            self._check_width(scores.shape[1])
        # A row that holds a forbidden token may only end: see above.
        states = [
            self._states[owner].after_bytes(text) or self.constraints[owner].end
            for text, owner in zip(_texts(input_ids, start), owners, strict=True)
        ]
        new = max(length - start, 0)
        # In place only what is surely ours: prompt lookup, for one, asks about several prefixes with one tensor.
        is_own = call is not None and call.scores_are_free
        if call is not None and call.choosing is not None and self._judges and (new or self._first is None):
            out = scores if is_own else torch.empty_like(scores)
            return self._choose(scores, out, call.choosing, states, new, owners)
        masks = self._masks(states, new, owners)
        if call is not None and isinstance(call.last, LastMask):
            live = [state != self.constraints[owner].end for state, owner in zip(states, owners, strict=True)]
            call.last.begin(input_ids, masks, live, start)
        return (mask_own_scores if is_own else mask_scores)(scores, masks, mask_threads(n_rows))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.constraints, self.max_new_tokens, self.prompt_length))

    def reset(self) -> None:
        """Forget the prompts of earlier hand-written loops: the next call's ids are a new prompt.

        Never needed with `generate`.
        """
        self._prompts.clear()

    def is_whole(self, generated: Sequence[int], index: int = 0) -> bool:
        """Is this a whole text of grammar number ``index``: generated ids, with or without end-of-text and padding?"""
        state = self._states[index].after(np.asarray(generated, np.int64))
        return state != 0 and self.constraints[index].is_accepting(state)

    def _choose(
        self,
        scores: torch.Tensor,
        out: torch.Tensor,
        choosing: Choosing,
        states: Sequence[int],
        new: int,
        owners: Sequence[int],
    ) -> torch.Tensor:
        """The scores after so many new tokens with one token left in most rows, the one that the loop takes."""
        left = self._left(new)
        judges = [
            None if state == constraint.end else partial(constraint.takes, state, budget=left)
            for state, constraint in zip(states, (self._judges[owner] for owner in owners), strict=True)
        ]

        def masks_of(rows: Sequence[int]) -> list[KeptRow]:
            return self._masks([states[row] for row in rows], new, [owners[row] for row in rows])

        return choose_by_rejection(scores, choosing, judges, masks_of, out)

    def _masks(self, states: Sequence[int], new: int, owners: Sequence[int]) -> list[KeptRow]:
        """The mask of each row's state after so many new tokens, not to be written to."""
        if self._first is not None and not new:
            return [self._first[owner] for owner in owners]
        # The start fits (checked at construction), so where no text fits, a token was taken that the budget forbade.
        late: list[int] = []
        own = [self.constraints[owner] for owner in owners]
        masks = kept_rows(own, states, [self._left(new)] * len(own), threads=mask_threads(len(own)), unfinishable=late)
        for row in late:
            masks[row] = self._end_row
        return masks

    def _left(self, new: int) -> int | None:
        """Tokens that may still come after so many."""
        return None if self.max_new_tokens is None else self.max_new_tokens - new

    def _owners(self, n_rows: int) -> list[int]:
        """The index of each row's constraint."""
        n_constraints = len(self.constraints)
        if n_rows % n_constraints:
            raise GuidedError(
                f"{n_rows} rows cannot be shared out among {n_constraints} grammars",
                where="GuidedLogitsProcessor",
                remedy="Pass one grammar for all rows, or exactly one for each prompt of the batch.",
            )
        each = n_rows // n_constraints
        return [row // each for row in range(n_rows)]

    def _prompt_end(self, ids: NDArray[np.int64], owners: Sequence[int]) -> int:
        if self.prompt_length is None:
            return self._prompts.length(ids, lambda length: self._continues(ids[:, length:], owners))
        if ids.shape[1] < self.prompt_length:
            raise GuidedError(
                f"prompt_length is {self.prompt_length}, but the call has only {ids.shape[1]} ids a row",
                where="GuidedLogitsProcessor",
                remedy="Give the length of the prompt as the model sees it, padding included.",
            )
        return self.prompt_length

    def _continues(self, generated: NDArray[np.int64], owners: Sequence[int]) -> bool:
        """Could these ids have been generated: is at least one row's text allowed, with no text after its end?

        One is enough, since beam search carries dead rows along, but never only dead ones.
        """
        for tokens, owner in zip(generated, owners, strict=True):
            state = self._states[owner].after(tokens)
            if state == 0:
                continue
            if state != self.constraints[owner].end:
                return True
            rest = tokens[int(np.argmax(np.isin(tokens, self.vocabulary.eos_ids))) :]
            rest = rest[(rest >= 0) & (rest < self.vocabulary.size)]
            if not self._has_text[rest].any():
                return True
        return False

    def _check_width(self, width: int) -> None:
        if width < self.vocabulary.size:
            lost = (np.flatnonzero(self._has_text[width:]) + width).tolist()
            lost += [end for end in self.vocabulary.eos_ids if end >= width]
            lost += [token for each in self.constraints for token in named_special_ids(each) if token >= width]
            if lost:
                raise VocabularyError(
                    f"the model scores {width} ids, but the vocabulary has text, an end or a special token that the"
                    f" grammar asks for at ids {lost[:5]}",
                    remedy="Use the tokenizer that belongs to this model.",
                )
        self._checked_width = width


def _as_array(ids: torch.Tensor) -> NDArray[np.int64]:
    return np.asarray(ids.numpy(force=True), np.int64)


def _texts(ids: torch.Tensor, start: int) -> list[bytes]:
    """What was generated in each row, eight bytes a token."""
    if ids.is_cpu and ids.dtype is torch.int64 and ids.is_contiguous():
        # Arrays of what changes at each step took a tenth of it, in no cache.
        rows, length = ids.shape
        begin, size = ids.data_ptr() + 8 * start, 8 * max(length - start, 0)
        return [ctypes.string_at(begin + 8 * length * row, size) for row in range(rows)]
    return [row.tobytes() for row in _as_array(ids)[:, start:]]


def _rebuild(
    constraints: Sequence[Constrains], max_new_tokens: int | None, prompt_length: int | None
) -> GuidedLogitsProcessor:
    return GuidedLogitsProcessor(constraints, max_new_tokens=max_new_tokens, prompt_length=prompt_length)
