"""vLLM's structured-output backend and grammar (its ``v1/structured_output/backend_types.py``; 0.32 and 0.33 alike).

The engine core's scheduler owns one backend and calls a grammar for each request: drafts are validated, accepted for
their masks and taken back; what was sampled is accepted.  Reasoning before the constrained text is the scheduler's
affair: a grammar does not see those tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

from guided.constraint.batch import kept_rows, mask_rows, write_rows
from guided.constraint.constraint import Constraint
from guided.constraint.effects.shared_rows import KeptRow
from guided.errors import GuidedError
from guided.serving import metrics
from guided.serving.compilation import compiler_for
from guided.serving.matcher import Matcher, kept_masks, step
from guided.serving.requests import Request
from guided.serving.tracks import FREE, Entry, Place, Tracks, entry, tokens_of
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

    __slots__ = ("_first", "_late", "_matcher", "failed", "place")

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self.failed = False
        self._first: Entry | None = None
        """What a line holds of it, where that was found before the first step."""
        self.place: Place | None = None
        """Where the request is among those of a step, while it is."""
        self._late = b""
        """Tokens of which the matcher was not told when it was no more: mostly nobody asks again."""

    @property
    def matcher(self) -> Matcher:
        """The place behind all tokens that were accepted."""
        place = self.place
        if place is not None:
            place.leave()
            token = place.noted
            if token >= 0:
                place.forget()
                self._settle(token)
        elif self._late:
            self._matcher.note_all(tokens_of(self._late))
            self._late = b""
        return self._matcher

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Go on by tokens that were sampled; False fails the request.  What follows the end of the text is let pass."""
        if len(tokens) == 1 and self.place is not None and self.place.note(tokens[0]):
            return True
        matcher = self._moved()
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

    def _moved(self) -> Matcher:
        """The matcher, which is to move: the mask will be another."""
        matcher = self.matcher
        self._first = None
        if self.place is not None:
            self.place.forget()
        return matcher

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The tokens of a draft that are allowed, up to the first that is not; none after the end of the text."""
        matcher = self.matcher
        if self.failed or matcher.is_over:
            return []
        end = matcher.constraint.end
        n = 0
        try:
            state = matcher.state
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
        self._moved().rollback(num_tokens)

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
        """Make the mask of the next token, and what kernels go on by, for the first step to find."""
        if isinstance(self._matcher.constraint, Constraint):
            # The first of a vocabulary takes 60 ms and more where that has 128,000 tokens.
            _ = self._matcher.constraint.track_parts
        mask = self.kept_row()
        self._first = None if self.failed else entry(self._matcher, mask)

    def sit(self, tracks: Tracks) -> int:
        """Take a place among the requests of a step: its line."""
        self.place = tracks.take(self._first or entry(self.matcher, None))
        self._first = None
        return self.place.line

    def leave(self, tracks: Tracks) -> None:
        """Give it back, if there is one."""
        if self.place is not None:
            self._late = tracks.give_back(self.place)
            self.place = None

    def is_terminated(self) -> bool:
        """Whether an end-of-text token was accepted: those are never only noted."""
        return self._matcher.is_over

    def reset(self) -> None:
        """Begin the text again."""
        self._moved().reset()
        self.failed = False

    def _settle(self, token: int) -> None:
        """Take the step that was noted, alone."""
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

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config = vllm_config
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self.config = vllm_config.structured_outputs_config
        self.compiler = compiler_for(tokenizer, vocab_size)
        self._masks: torch.Tensor | None = None
        self._rows: NDArray[np.uint32] | None = None
        self._shown = np.zeros((0, 0), np.int32).view(StepMasks)
        self._tracks: Tracks | None = None
        self._by_line: dict[int, GuidedGrammar] = {}
        self.requests: list[Any] = []
        """Those of the last step, where each has a grammar: the next one's may be the same, and then `fill_again` is
        enough."""
        self._asked: list[Any] = []
        """Those of the last step: while they are here, their ids are nobody else's."""
        self.lines: dict[int, int] = {}
        """By the ids of its requests, the lines of those that have a grammar, for `note`."""
        self.note: Callable[[int, int], bool] = _notes_nothing
        """Note the token that is sampled for a line; False for what more has to be done for."""

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
        if self._tracks is not None:
            self._seat([], _nothing, self._tracks)
        self._masks = torch.full((max_num_seqs, n_words(self.vocab_size)), -1, dtype=torch.int32)
        self._rows = mask_rows(self._masks)
        self._shown = self._rows[:0].view(np.int32, StepMasks)
        self._tracks = Tracks(*self._rows.shape)
        self.note = self._tracks.note
        return self._masks

    def fill_step(
        self,
        requests: Sequence[Any],
        grammar_of: Callable[[Any], GuidedGrammar | None],
        masks: torch.Tensor,
        threads: int = 1,
    ) -> None:
        """Write the masks of a step, one row a request; None, and a text that is over, is a row without constraint.

        Between two steps nobody else may write to the masks that were allocated last: a row whose mask stays is left as
        it is.  There a request that had a grammar in the last step is not asked for it again.
        """
        if masks is not self._masks or self._tracks is None:
            others = mask_rows(masks)[: len(requests)]
            write_rows(_rows_of([*map(grammar_of, requests)], others.shape[1], threads), others, threads)
            return
        self._seat(requests, grammar_of, self._tracks)
        self.fill_again(threads)

    def fill_again(self, threads: int = 1) -> None:
        """Write the masks of a step of the same requests as the last one."""
        tracks, rows = self._tracks, self._rows
        assert tracks is not None and rows is not None
        left = tracks.go_on()
        if left:
            self._take(left, rows.shape[1], threads)
        tracks.copy(rows)

    def _seat(self, requests: Sequence[Any], grammar_of: Callable[[Any], GuidedGrammar | None], tracks: Tracks) -> None:
        """Give those requests their rows; most were in the last step, and those are hardly touched."""
        known, self.requests = self.lines, []
        ids = [*map(id, requests)]
        lines = [*map(known.get, ids)]
        others = [(i, grammar_of(requests[i])) for i, line in enumerate(lines) if line is None]
        for gone in known.keys() - ids:
            self._by_line.pop(known.pop(gone)).leave(tracks)
        order = [FREE if line is None else line for line in lines]
        for i, grammar in others:
            if grammar is not None:
                line = known[ids[i]] = order[i] = grammar.sit(tracks)
                self._by_line[line] = grammar
        tracks.seat(order)
        self._asked = [*requests]
        if FREE not in order:
            self.requests = self._asked

    def _take(self, left: Sequence[int], words: int, threads: int) -> None:
        """Take the tokens, and make the masks, that kernels alone cannot."""
        asked: list[GuidedGrammar] = []
        noted: list[tuple[GuidedGrammar, int]] = []
        for line in left:
            grammar = self._by_line[line]
            place = _place(grammar)
            place.leave()
            if place.noted >= 0:
                noted.append((grammar, place.noted))
            else:
                asked.append(grammar)
        if noted:
            found = step([grammar._matcher for grammar, _ in noted], [token for _, token in noted])
            for (grammar, _), mask in zip(noted, found, strict=True):
                if mask is None:
                    asked.append(grammar)
                else:
                    _place(grammar).enter(mask)
        if asked:
            for grammar, mask in zip(asked, _rows_of(asked, words, threads), strict=True):
                _place(grammar).enter(mask, moves=not (grammar.failed or grammar.is_terminated()))

    def written(self, n: int) -> StepMasks:
        """The first ``n`` rows of the masks that were allocated last."""
        if len(self._shown) != n:
            assert self._rows is not None
            self._shown = self._rows[:n].view(np.int32, StepMasks)
        return self._shown

    def destroy(self) -> None:
        """Nothing is held that outlives the backend."""


def _notes_nothing(line: int, token: int) -> bool:
    return False


def _nothing(request: Any) -> None:
    """No request has a grammar."""


def _place(grammar: GuidedGrammar) -> Place:
    assert grammar.place is not None
    return grammar.place


def _rows_of(grammars: Sequence[GuidedGrammar | None], words: int, threads: int) -> list[KeptRow]:
    """The masks of a step's rows, each alone where one of them comes to a limit, so that it fails alone."""
    kept = [everything(words)] * len(grammars)
    asked = [(i, each) for i, each in enumerate(grammars) if each is not None and not each.is_terminated()]
    try:
        matchers = [grammar.matcher for _, grammar in asked]
        if not any(grammar.failed for _, grammar in asked):
            for (i, _), row in zip(asked, kept_masks(matchers, threads), strict=True):
                kept[i] = row
            return kept
    except GuidedError:
        pass
    for i, grammar in asked:
        kept[i] = grammar.kept_row()
    return kept
