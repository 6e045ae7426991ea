"""Where the backend is put into vLLM, which has no registry of backends: the places that choose one by its name.

These are wrapped, by the names and arguments they have in 0.32 and 0.33; each does what it did wherever the backend is
not ours:

* ``SamplingParams._validate_structured_outputs`` refuses requests in the front end;
* ``AsyncLLM.__init__`` (a server's front) and ``StructuredOutputManager.__init__`` (the engine core) begin to load
  kernels where the backend is asked for by name, on a thread of their own; not before other processes are started;
* ``StructuredOutputManager.grammar_init`` and ``_create_grammar`` make the backend and compile in its thread pool;
* ``StructuredOutputManager.grammar_bitmask`` fills the masks of a step by one call, where there are no drafts;
* ``StructuredOutputManager.accept_tokens`` notes a token that was sampled from a mask of its grammar;
* ``apply_grammar_bitmask`` of the worker puts masks onto scores in memory by our kernel, where they are our backend's,
  in the same process;
* ``BeamSearchOfflineMixin._init_beam_search_structured_output`` makes a backend for beams;
* ``validate_structural_tag_payload`` of the server asks XGrammar about structural tags, whatever the backend.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import threading
from collections.abc import Mapping
from functools import partial, wraps
from typing import Any

from guided.errors import GuidedError
from guided.serving.vllm.configuration import NAME, widen_backends

__all__ = ["install"]

ROWS_A_THREAD = 16
"""Masks of a step for which another thread is asked, as many as vLLM gives one."""

MOST_THREADS = 8
"""As vLLM has it, together with half of the processors."""

_NONE: Mapping[int, int] = {}


def install() -> None:
    """Wrap vLLM's methods; does nothing the second time.

    All that is wrapped is looked up first, so that nothing is half installed where something is missing.
    """
    from vllm.entrypoints.generate.base import protocol
    from vllm.entrypoints.generate.beam_search.offline import BeamSearchOfflineMixin
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.structured_output import StructuredOutputManager, utils

    wrapped: list[tuple[Any, str, Any]] = [
        (SamplingParams, "_validate_structured_outputs", _validating),
        (AsyncLLM, "__init__", _starting),
        (StructuredOutputManager, "__init__", _starting),
        (StructuredOutputManager, "grammar_init", _initialising),
        (StructuredOutputManager, "_create_grammar", _creating),
        (StructuredOutputManager, "grammar_bitmask", _masking),
        (StructuredOutputManager, "accept_tokens", _accepting),
        (utils, "apply_grammar_bitmask", _applying),
        (BeamSearchOfflineMixin, "_init_beam_search_structured_output", _searching),
        (protocol, "validate_structural_tag_payload", _reading),
    ]
    methods = [getattr(owner, name) for owner, name, _ in wrapped]
    if any(hasattr(method, "of_guided") for method in methods):
        return
    widen_backends()
    for (owner, name, wrap), method in zip(wrapped, methods, strict=True):
        ours: Any = wraps(method)(wrap(method))
        ours.of_guided = True
        setattr(owner, name, ours)
    runner: Any = sys.modules.get("vllm.v1.worker.gpu_model_runner")
    if runner is not None:
        # It has taken the function by its name.
        runner.apply_grammar_bitmask = utils.apply_grammar_bitmask


def _validating(method: Any) -> Any:
    def validated(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        from guided.serving.vllm.validation import serves, validate

        if self.structured_outputs is None or not serves(structured_outputs_config, model_config, tokenizer):
            method(self, model_config, structured_outputs_config, tokenizer)
        else:
            validate(self, model_config, structured_outputs_config, tokenizer)

    return validated


def _starting(method: Any) -> Any:
    def started(self: Any, vllm_config: Any, *args: Any, **options: Any) -> None:
        method(self, vllm_config, *args, **options)
        tokenizer = getattr(getattr(self, "input_processor", self), "tokenizer", None)
        if vllm_config.structured_outputs_config.backend == NAME and tokenizer is not None:
            size = vllm_config.model_config.get_vocab_size()
            threading.Thread(target=_warm, args=(tokenizer, size), name="guided-warm-up", daemon=True).start()

    return started


def _warm(tokenizer: Any, size: int) -> None:
    from guided.serving.compilation import compiler_for

    # A request tells its own error, to the user who can read it.
    with contextlib.suppress(GuidedError):
        compiler_for(tokenizer, size).warm()


def _initialising(method: Any) -> Any:
    def initialised(self: Any, request: Any) -> None:
        asked = request.structured_output_request
        if asked is not None and self.backend is None and asked.params._backend == NAME:
            from guided.serving.vllm.backend import GuidedBackend

            size = self.vllm_config.model_config.get_vocab_size()
            self.backend = GuidedBackend(self.vllm_config, self.tokenizer, size)
        method(self, request)

    return initialised


def _creating(method: Any) -> Any:
    def created(self: Any, request: Any) -> Any:
        from guided.serving.vllm.backend import GuidedBackend

        if isinstance(self.backend, GuidedBackend):
            return self.backend.compile_request(request.sampling_params, request.prompt_token_ids)
        return method(self, request)

    return created


def _masking(method: Any) -> Any:
    threads = max(1, min(multiprocessing.cpu_count() // 2, MOST_THREADS))

    def masked(self: Any, requests: Any, structured_output_request_ids: Any, scheduled_spec_decode_tokens: Any) -> Any:
        backend, ids = self.backend, structured_output_request_ids
        if not ids or not hasattr(backend, "fill_again") or self.vllm_config.num_speculative_tokens:
            return method(self, requests, ids, scheduled_spec_decode_tokens)
        if self._grammar_bitmask is None:
            self._grammar_bitmask = backend.allocate_token_bitmask(self.vllm_config.scheduler_config.max_num_seqs)
        n_threads = min(len(ids) // ROWS_A_THREAD or 1, threads)
        asked = [*map(requests.__getitem__, ids)]
        if asked == backend.requests:
            backend.fill_again(n_threads)
            return backend.written(len(ids))
        backend.fill_step(asked, partial(_grammar, self), self._grammar_bitmask, n_threads)
        return backend.written(len(ids))

    return masked


def _grammar(manager: Any, request: Any) -> Any:
    """The grammar of a request's next token, None while it reasons."""
    if manager._get_constraint_bounds(request, ()).constraint_start:
        return None
    asked = request.structured_output_request
    # As vLLM has it behind the first token, of which it is not told; else it would read the prompt again.
    asked.reasoning_ended = True
    return asked.grammar


def _accepting(method: Any) -> Any:
    def accepted(self: Any, request: Any, new_token_ids: list[int]) -> Any:
        backend = self.backend
        line = getattr(backend, "lines", _NONE).get(id(request))
        # The mask that it was sampled from was of its grammar.
        if line is not None and len(new_token_ids) == 1 and backend.note(line, new_token_ids[0]):
            return True
        return method(self, request, new_token_ids)

    return accepted


def _applying(method: Any) -> Any:
    def applied(scheduler_output: Any, grammar_output: Any, input_batch: Any, logits: Any) -> None:
        if logits.is_cpu and len(input_batch.req_ids) == len(logits):
            from guided.serving.vllm.applying import StepMasks, apply_step

            # Masks of our own type are one a request: with drafts vLLM asks for each grammar's by itself.
            masks = grammar_output.grammar_bitmask
            if isinstance(masks, StepMasks):
                apply_step(masks, grammar_output.structured_output_request_ids, input_batch.req_ids, logits)
                return
        method(scheduler_output, grammar_output, input_batch, logits)

    return applied


def _searching(method: Any) -> Any:
    def searched(self: Any, structured_outputs: Any, tokenizer: Any) -> Any:
        from guided.serving.vllm.validation import serves

        config = self.llm_engine.vllm_config.structured_outputs_config
        if not serves(config, self.model_config, tokenizer):
            return method(self, structured_outputs, tokenizer)
        from vllm import SamplingParams
        from vllm.v1.structured_output.request import get_structured_output_key

        from guided.serving.vllm.backend import GuidedBackend
        from guided.serving.vllm.validation import validate

        validate(SamplingParams(structured_outputs=structured_outputs), self.model_config, config, tokenizer)
        backend = GuidedBackend(self.llm_engine.vllm_config, tokenizer, self.model_config.get_vocab_size())
        return backend, get_structured_output_key(structured_outputs), backend.allocate_token_bitmask(1)

    return searched


def _reading(method: Any) -> Any:
    """A tag that XGrammar cannot read may be one of ours; the engine, which knows its backend, checks it again."""

    def read(payload: Any, *, parameter: str) -> None:
        from vllm.exceptions import VLLMValidationError

        from guided.serving.requests import Request, RequestKind

        try:
            method(payload, parameter=parameter)
        except VLLMValidationError as error:
            try:
                Request(RequestKind.STRUCTURAL_TAG, payload).grammar()
            except GuidedError as ours:
                raise VLLMValidationError(f"guided: {ours}", parameter=parameter) from error

    return read
