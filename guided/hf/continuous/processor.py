"""`ContinuousProcessor`: masks for transformers' continuous batching, by request.

Importing this module imports that of transformers, which releases before 5.23 may not have.

What transformers 5.23.0 does (`generation/continuous_batching`): before each pass, on the host, processors get the
requests of which a token will be drawn and return one int32 for each; after the pass, possibly inside a CUDA graph,
they get scores and these numbers.  So masks go to rows of one fixed buffer on the model's device before the pass, and
the numbers are those rows.  Row 0 allows everything: it serves requests without a grammar, and the padding of graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from guided import tokenset
from guided.constraint.batch import fill_masks
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf.constraints import constraints_for, first_masks
from guided.hf.masking.apply import allocate_masks, apply_masks, mask_threads
from guided.vocab import Vocabulary, vocabulary_of

try:
    from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor
except ImportError as error:
    raise UnsupportedError(
        "this release of transformers has no logits processors by request in its continuous batching",
        remedy="Install transformers 5.23, or call guided.generate with the list of prompts.",
    ) from error

__all__ = ["ContinuousProcessor", "RequestGrammar"]

KNOWN_STATES = 4096
"""Requests whose states are remembered; those of others are found again from their tokens."""

FREE = 0
"""The row that allows everything."""

TRUNCATING = ("Temperature", "TopK", "TopP")
"""Processors (by the beginning of their names behind ``ContinuousBatching``) that leave a token wherever there is
one."""


class RequestGrammar:
    """A compiled grammar as requests carry it.

    transformers copies the arguments of requests that it forks or starts over; this is never copied.
    """

    def __init__(self, constraint: Constrains) -> None:
        self.constraint = constraint

    def __deepcopy__(self, memo: object) -> RequestGrammar:
        return self

    def __repr__(self) -> str:
        return f"RequestGrammar({self.constraint!r})"


class ContinuousProcessor(ContinuousBatchingLogitsProcessor):
    """A grammar for each request of continuous batching: ``manager.add_request(ids, grammar=processor.grammar(...))``.

    ``tokenizer`` is the model's tokenizer or a `Vocabulary`, ``width`` the number of ids that the model scores.  Attach
    it to a manager before that starts::

        manager = model.init_continuous_batching(generation_config, ContinuousBatchingConfig(use_async_batching=False))
        processor = ContinuousProcessor(tokenizer, model.config.vocab_size)
        processor.attach(manager)
        manager.start()
        manager.add_request(ids, max_new_tokens=64, grammar=processor.grammar(guided.regex("[0-9]+"), 64))

    A request's text is steered to its end within the request's ``max_new_tokens``.  A request whose masks cannot be
    made (a `LimitError`) ends at once and carries the message as its error; the others go on.
    """

    def __init__(self, tokenizer: object, width: int, eos_ids: Sequence[int] | None = None) -> None:
        self.vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else vocabulary_of(tokenizer, eos_ids)
        self.width = width
        self.supported_kwargs = {"grammar": RequestGrammar}
        self.ignored_kwargs = ()
        self._words = max(tokenset.n_words(width), self.vocabulary.n_words)
        ends = tokenset.of_ids(self.vocabulary.eos_ids, self._words)
        self._end_row = torch.from_numpy(ends.view(np.int32))
        # By request: the tokens seen, the last of them, the state after them.
        self._states: dict[str, tuple[int, int, int]] = {}
        self._rows: torch.Tensor | None = None
        self._host: torch.Tensor | None = None

    def grammar(self, grammar: Any, max_new_tokens: int | None = None) -> RequestGrammar:
        """A grammar, a compiled constraint, or what stands for one, as the argument ``grammar`` of requests.

        Raises `LimitError` when no text fits ``max_new_tokens``, which should be the request's.
        """
        constraint = constraints_for(grammar, self.vocabulary)[0]
        if max_new_tokens is not None:
            first_masks([constraint], max_new_tokens)
        return RequestGrammar(constraint)

    def attach(self, manager: Any) -> None:
        """Put this before all processors of a `ContinuousBatchingManager` that has not started.

        Raises `UnsupportedError` for a manager that prepares a pass before it knows the token of the last, and for
        processors after which no allowed token may be left.
        """
        config = manager.continuous_batching_config
        if config.use_async_batching:
            raise UnsupportedError(
                "with asynchronous batching a pass is prepared before the last token is known",
                remedy="Pass ContinuousBatchingConfig(use_async_batching=False).",
            )
        found = manager.logit_processor
        if self in found.logits_processor:
            return
        if manager.batch_processor is not None:
            raise GuidedError("the manager has started", remedy="Attach the processor before start() and warmup().")
        for other in found.logits_processor:
            name = type(other).__name__
            if not name.removeprefix("ContinuousBatching").startswith(TRUNCATING):
                raise UnsupportedError(
                    f"{name} may leave no token that a grammar allows",
                    remedy="Take it out of the generation configuration, or use guided.generate.",
                )
        found.logits_processor.insert(0, self)
        found.tensors_required += 1
        found.do_processing = True
        found._retrieve_processors_kwargs()
        self._allocate(min(config.max_requests_per_batch, config.max_batch_tokens or 1 << 30), manager.model.device)

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Everything is allowed where nobody says otherwise."""
        int32_tensor.fill_(FREE)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """Write the masks of the requests to the buffer; their rows, ``int32[n]``."""
        given = [(number, each.state) for number, each in enumerate(requests_with_new_token)]
        held = [(number, state) for number, state in given if "grammar" in state.logit_processor_kwargs]
        numbers = torch.full((len(given),), FREE, dtype=torch.int32)
        if not held:
            return numbers
        numbers[[number for number, _ in held]] = torch.arange(1, len(held) + 1, dtype=torch.int32)
        assert self._host is not None and self._rows is not None
        self._fill([state for _, state in held], self._host[: len(held)])
        rows = self._rows[1 : len(held) + 1]
        rows.copy_(self._host[: len(held)], non_blocking=True)
        if rows.is_cuda:
            # The pass runs on another stream.
            torch.cuda.current_stream(rows.device).synchronize()
        return numbers

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """``scores`` (``[n, width]``) with ``-inf``, in place, for what the requests' masks forbid."""
        assert self._rows is not None
        return apply_masks(scores, self._rows[tensor_arg[: len(scores)]], threads=mask_threads(len(scores)))

    def _allocate(self, n_rows: int, device: torch.device) -> None:
        self._host = allocate_masks(n_rows, 32 * self._words, pinned=device.type == "cuda")
        self._rows = torch.zeros((n_rows + 1, self._words), dtype=torch.int32, device=device)
        self._rows[FREE] = -1

    def _fill(self, requests: Sequence[Any], out: torch.Tensor) -> None:
        """The masks of the requests, one a row."""
        owners = [request.logit_processor_kwargs["grammar"].constraint for request in requests]
        states, left = [], []
        for request, owner in zip(requests, owners, strict=True):
            generated = _generated(request)
            # Behind a forbidden token, which only another processor lets through, there is nothing but the end.
            states.append(self._state(request.request_id, owner, generated) or owner.end)
            most = request.max_new_tokens
            # Where a request starts over, its budget is what was left then, and counts the tokens since.
            left.append(None if most is None else most - len(request.generated_tokens))
        late: list[int] = []
        fill_masks(owners, states, out, threads=mask_threads(len(out)), budgets=left, unfinishable=late)
        for number in late:
            out[number] = self._end_row
            # Once more, for what it has to say.
            try:
                fill_masks([owners[number]], [states[number]], out[number : number + 1].clone(), budgets=[left[number]])
            except LimitError as error:
                requests[number].error = str(error)

    def _state(self, request_id: str, owner: Constrains, generated: Sequence[int]) -> int:
        """The state after a request's tokens: that of the last pass, and the tokens since."""
        seen, last, state = self._states.pop(request_id, (0, -1, owner.start))
        if seen > len(generated) or (seen and generated[seen - 1] != last) or not seen:
            seen, state = 0, owner.start
        for token in generated[seen:]:
            if state not in (0, owner.end):
                state = owner.advance(state, token)
        # An id may be used again for another request, which has no tokens at first.
        if len(self._states) >= KNOWN_STATES:
            del self._states[next(iter(self._states))]
        self._states[request_id] = len(generated), generated[-1] if generated else -1, state
        return state


def _generated(request: Any) -> Sequence[int]:
    """The tokens of a request so far, also of those that it began with when it was started over."""
    own: Sequence[int] = request.generated_tokens
    if request._true_initial_tokens:
        own = [*request.initial_tokens[request._true_initial_tokens :], *own]
    return own
