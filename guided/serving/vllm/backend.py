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

from guided.constraint.batch import mask_rows
from guided.errors import GuidedError
from guided.serving import metrics
from guided.serving.compilation import compiler_for
from guided.serving.matcher import Matcher, fill_rows
from guided.serving.requests import Request
from guided.serving.vllm.asked import asked, asked_by_name, most_tokens
from guided.tokenset import n_words

__all__ = ["GuidedBackend", "GuidedGrammar"]

_log = logging.getLogger("vllm.guided")


class GuidedGrammar(StructuredOutputGrammar):
    """One request's place in its constraint.

    Where a limit of work is met in the middle of a text the request fails, and no other: its mask then holds only the
    ends of text, and the token that is sampled from it is not accepted.
    """

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.failed = False

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Go on by tokens that were sampled; False fails the request.  What follows the end of the text is let pass."""
        if self.failed:
            return False
        matcher = self.matcher
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
        if self.failed or self.matcher.is_over:
            return []
        end = self.matcher.constraint.end
        state = self.matcher.state
        try:
            for n, token in enumerate(tokens):
                state = self.matcher.constraint.advance(state, token) if token >= 0 else 0
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

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask of the next token to a row."""
        self.fill(mask_rows(bitmask)[batch_index])

    def fill(self, row: NDArray[np.uint32]) -> None:
        """Write the mask of the next token to ``uint32[words]``."""
        matcher = self.matcher
        if not self.failed:
            try:
                if matcher.most_tokens is None and row.shape[0] == matcher.constraint.vocabulary.n_words:
                    matcher.constraint.fill_mask(matcher.state, row)
                else:
                    matcher.fill(row)
                return
            except GuidedError as error:
                self._fail(error)
        row[:] = 0
        matcher.constraint.fill_mask(matcher.constraint.end, row[: matcher.constraint.vocabulary.n_words])

    def is_terminated(self) -> bool:
        """Whether an end-of-text token was accepted."""
        return self.matcher.is_over

    def reset(self) -> None:
        """Begin the text again."""
        self.matcher.reset()
        self.failed = False

    def _fail(self, error: GuidedError) -> None:
        self.failed = True
        metrics.failed()
        _log.error("guided: a request fails in the middle of its text: %s", error)


class GuidedBackend(StructuredOutputBackend):
    """The backend of one engine; all requests of a grammar share its tables."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config = vllm_config
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self.config = vllm_config.structured_outputs_config
        self.compiler = compiler_for(tokenizer, vocab_size)
        self._masks: torch.Tensor | None = None
        self._rows: NDArray[np.uint32] | None = None

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
        return GuidedGrammar(Matcher(self.compiler.constraint(request, stop_token_ids, prompt), most))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """The masks of a step, ``int32[max_num_seqs, words]``, all ones; the view onto it is made here, once."""
        self._masks = torch.full((max_num_seqs, n_words(self.vocab_size)), -1, dtype=torch.int32)
        self._rows = mask_rows(self._masks)
        return self._masks

    def fill_step(self, grammars: Sequence[GuidedGrammar | None], masks: torch.Tensor, threads: int = 1) -> None:
        """Write the masks of a step, one row a request; None, and a text that is over, is a row without constraint."""
        rows = self._rows if masks is self._masks and self._rows is not None else mask_rows(masks)
        rows = rows[: len(grammars)]
        bound = [grammar for grammar in grammars if grammar is not None and not grammar.matcher.is_over]
        if len(bound) == len(grammars) and not any(grammar.failed for grammar in bound):
            try:
                fill_rows([grammar.matcher for grammar in bound], rows, threads)
                return
            except GuidedError:
                # One of them came to a limit: below it fails alone.
                pass
        for grammar, row in zip(grammars, rows, strict=True):
            if grammar is None or grammar.matcher.is_over:
                row[:] = 0xFFFFFFFF
            else:
                grammar.fill(row)

    def destroy(self) -> None:
        """Nothing is held that outlives the backend."""
