"""vLLM's structured-output backend and grammar (its ``v1/structured_output/backend_types.py``; 0.32 and 0.33 alike).

The engine core's scheduler owns one backend and calls a grammar for each request: drafts are validated, accepted for
their masks and taken back; what was sampled is accepted.  Reasoning before the constrained text is the scheduler's
affair: a grammar does not see those tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

from guided import tokenset
from guided.constraint.batch import kept_rows, mask_rows, write_rows
from guided.constraint.effects.shared_rows import KeptRow
from guided.errors import GuidedError
from guided.serving import metrics
from guided.serving.compilation import compiler_for
from guided.serving.matcher import Matcher, kept_masks, step
from guided.serving.requests import Request
from guided.serving.vllm.applying import StepMasks, everything
from guided.serving.vllm.asked import asked, asked_by_name, most_tokens
from guided.tokenset import n_words

__all__ = ["GuidedBackend", "GuidedGrammar"]

_log = logging.getLogger("vllm.guided")


class GuidedGrammar(StructuredOutputGrammar):
    """One request's place in its constraint.

    A token of the mask that was written last is only noted when it is accepted: the next step takes it, with those of
    the other requests (`GuidedBackend.fill_step`), or whatever else is asked here.

    Where a limit of work is met in the middle of a text the request fails, and no other: its mask then holds only the
    ends of text, and the token that is sampled from it is not accepted.
    """

    __slots__ = ("_matcher", "_noted", "_shown", "failed")

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self.failed = False
        self._noted = -1
        self._shown: KeptRow | None = None
        """The mask of the next token, where a step has written it."""

    @property
    def matcher(self) -> Matcher:
        """The place behind all tokens that were accepted."""
        if self._noted >= 0:
            self._settle()
        return self._matcher

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Go on by tokens that were sampled; False fails the request.  What follows the end of the text is let pass."""
        shown = self._shown
        if shown is not None and len(tokens) == 1:
            token = tokens[0]
            if self._matcher.stay(token) is not None:
                return True
            self._shown = None
            ends = self._matcher.constraint.vocabulary.eos_ids
            if 0 <= token < 32 * shown[1].size and token not in ends and tokenset.contains(shown[1], token):
                self._noted = token
                return True
        self._shown = None
        matcher = self.matcher
        if self.failed:
            return False
        try:
            for token in tokens:
                if matcher.is_over:
                    break
                if not matcher.accept(token):
                    _log.error("guided: token %d of request %s is not allowed here", token, request_id)
                    return False
        except GuidedError as error:
            self._fail(error)
            return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The tokens of a draft that are allowed, up to the first that is not; none after the end of the text."""
        matcher = self.matcher
        if self.failed or matcher.is_over:
            return []
        end = matcher.constraint.end
        state = matcher.state
        try:
            for n, token in enumerate(tokens):
                state = matcher.constraint.advance(state, token) if token >= 0 else 0
                if not state:
                    return tokens[:n]
                if state == end:
                    return tokens[: n + 1]
        except GuidedError:
            # A draft costs more than may be spent on a token: the model can do without.
            return tokens[:n]
        return tokens

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens that were accepted."""
        self.matcher.rollback(num_tokens)
        self._shown = None

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask of the next token to a row."""
        write_rows([self.kept_row()], mask_rows(bitmask)[batch_index : batch_index + 1])

    def kept_row(self) -> KeptRow:
        """The mask of the next token, which must not be written to."""
        matcher = self.matcher
        if not self.failed:
            try:
                return matcher.kept_row()
            except GuidedError as error:
                self._fail(error)
        (ends,) = kept_rows([matcher.constraint], [matcher.constraint.end], [None])
        return ends

    def show(self) -> None:
        """Make the mask of the next token, for the next step to find."""
        mask = self.kept_row()
        self._shown = None if self.failed else mask

    def is_terminated(self) -> bool:
        """Whether an end-of-text token was accepted: those are never only noted."""
        return self._matcher.is_over

    def reset(self) -> None:
        """Begin the text again."""
        self._noted, self._shown = -1, None
        self._matcher.reset()
        self.failed = False

    def _settle(self) -> None:
        """Take the step that was noted, alone."""
        token, self._noted = self._noted, -1
        try:
            if not self._matcher.accept(token):
                raise GuidedError(f"token {token} of a mask is not in the language")
        except GuidedError as error:
            self._fail(error)

    def _fail(self, error: GuidedError) -> None:
        self.failed = True
        metrics.failed()
        _log.error("guided: a request fails in the middle of its text: %s", error)


class GuidedBackend(StructuredOutputBackend):
    """The backend of one engine; all requests of a grammar share its tables."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int, always: bool = False) -> None:
        self.vllm_config = vllm_config
        self.always = always
        """Is every text constrained from its first token on, as without a reasoner, of whom vLLM asks by request?"""
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self.config = vllm_config.structured_outputs_config
        self.compiler = compiler_for(tokenizer, vocab_size)
        self._masks: torch.Tensor | None = None
        self._rows: NDArray[np.uint32] | None = None
        self._written: list[GuidedGrammar | None] = []
        """Whose masks the rows hold."""

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> GuidedGrammar:
        """The grammar of a kind of request and its text; see `compile_request`, which knows more of it."""
        return self._grammar(asked_by_name(request_type.name, grammar_spec, self.config), stop_token_ids)

    def compile_request(self, sampling_params: Any, prompt_ids: Sequence[int] | None = None) -> GuidedGrammar:
        """The grammar of a request, with its own choices for white space and objects, behind its prompt.

        Raises `GuidedError`: the request then fails in the engine.  `validation` refuses the same before that.
        """
        request = asked(sampling_params.structured_outputs, self.config)
        prompt = self.tokenizer.decode(prompt_ids) if prompt_ids and request.is_made_of_prompts else None
        return self._grammar(request, sampling_params.all_stop_token_ids, most_tokens(sampling_params), prompt)

    def _grammar(
        self,
        request: Request,
        stop_token_ids: Iterable[int] | None,
        most: int | None = None,
        prompt: str | None = None,
    ) -> GuidedGrammar:
        grammar = GuidedGrammar(Matcher(self.compiler.constraint(request, stop_token_ids, prompt), most))
        # Here in vLLM's pool, so that the first step need not wait for it.
        grammar.show()
        return grammar

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """The masks of a step, ``int32[max_num_seqs, words]``, all ones; the view onto it is made here, once."""
        self._masks = torch.full((max_num_seqs, n_words(self.vocab_size)), -1, dtype=torch.int32)
        self._rows = mask_rows(self._masks)
        self._written = []
        return self._masks

    def fill_step(self, grammars: Sequence[GuidedGrammar | None], masks: torch.Tensor, threads: int = 1) -> None:
        """Write the masks of a step, one row a request; None, and a text that is over, is a row without constraint.

        Between two steps nobody else may write to the masks that were allocated last: a row whose text has gone on by
        characters of a string only is left as it is.
        """
        is_own = masks is self._masks and self._rows is not None
        rows = self._rows if is_own and self._rows is not None else mask_rows(masks)
        written = self._written if is_own else []
        self._written = [*grammars] if is_own else []
        kept: list[KeptRow | None] = [None] * len(grammars)
        asked: list[tuple[int, GuidedGrammar]] = []
        noted: list[tuple[int, GuidedGrammar]] = []
        for row, grammar in enumerate(grammars):
            stands = row < len(written) and written[row] is grammar
            if grammar is None:
                kept[row] = None if stands else everything(rows.shape[1])
            elif grammar._shown is not None:
                kept[row] = None if stands else grammar._shown
            elif grammar._noted >= 0:
                noted.append((row, grammar))
            elif grammar.is_terminated():
                kept[row] = everything(rows.shape[1])
            else:
                asked.append((row, grammar))
        if noted:
            found = step([grammar._matcher for _, grammar in noted], [grammar._noted for _, grammar in noted])
            for (row, grammar), mask in zip(noted, found, strict=True):
                if mask is None:
                    asked.append((row, grammar))
                else:
                    grammar._noted = -1
                    kept[row] = grammar._shown = mask
        if asked:
            for (row, grammar), mask in zip(asked, _kept(asked, threads), strict=True):
                kept[row] = mask
                grammar._shown = None if grammar.failed else mask
        write_rows(kept, rows[: len(grammars)], threads)

    def written(self, n: int) -> StepMasks:
        """The first ``n`` rows of the masks that were allocated last."""
        assert self._rows is not None
        return self._rows[:n].view(np.int32, StepMasks)

    def destroy(self) -> None:
        """Nothing is held that outlives the backend."""


def _kept(asked: Sequence[tuple[int, GuidedGrammar]], threads: int) -> list[KeptRow]:
    """The masks of grammars, each alone where one of them comes to a limit, so that it fails alone."""
    try:
        matchers = [grammar.matcher for _, grammar in asked]
        if not any(grammar.failed for _, grammar in asked):
            return kept_masks(matchers, threads)
    except GuidedError:
        pass
    return [grammar.kept_row() for _, grammar in asked]
