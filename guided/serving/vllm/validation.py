"""What is refused before the engine sees it: the front end compiles each request, and answers errors with HTTP 400.

The engine core can only fail a request, which a server answers with HTTP 500, so everything is found here.  vLLM calls
this on its renderer's threads, not on the loop that serves other requests.
"""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from typing import Any

from vllm.exceptions import VLLMValidationError

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError, UnsupportedError, VocabularyError
from guided.serving import metrics
from guided.serving.compilation import Compiler, compiler_for
from guided.serving.matcher import Matcher
from guided.serving.vllm.asked import WHOLE, asked, field_of, most_tokens
from guided.serving.vllm.configuration import NAME

__all__ = ["AUTO", "serves", "validate"]

AUTO = "GUIDED_VLLM_AUTO"
"""The environment variable by which ``backend="auto"`` stays vLLM's own choice: set it to 0."""

_log = logging.getLogger("vllm.guided")


def serves(config: Any, model_config: Any, tokenizer: Any) -> bool:
    """Whether requests of an engine with this configuration are ours: by name, or as what "auto" stands for."""
    if config is None or tokenizer is None or model_config.is_diffusion:
        return False
    if config.backend == NAME:
        return True
    if config.backend != "auto" or os.environ.get(AUTO, "1") == "0":
        return False
    return _stands_in(compiler_for(tokenizer, model_config.get_vocab_size()))


@lru_cache(maxsize=8)
def _stands_in(compiler: Compiler) -> bool:
    try:
        compiler.vocabularies.ending_with()
    except VocabularyError as error:
        _log.warning("guided: backend 'auto' is left to vLLM's own choice: %s", error)
        return False
    _log.info("guided: structured outputs of backend 'auto' are guided's (%s=0: vLLM's own choice)", AUTO)
    return True


def validate(sampling_params: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
    """Raise ``VLLMValidationError`` for a request that cannot be enforced exactly; else mark it as ours."""
    params = sampling_params.structured_outputs
    auto = config.backend == "auto"
    if params._backend not in (None, NAME) or (params._backend == NAME and auto and not params._backend_was_auto):
        raise VLLMValidationError(
            f"structured outputs are served by the engine's backend {config.backend!r}, not by {params._backend!r}",
            parameter="structured_outputs",
        )
    compiler = compiler_for(tokenizer, model_config.get_vocab_size())
    field = "structured_outputs"
    try:
        request = asked(params, config)
        field = field_of(request.kind)
        # What is made of the prompt is made where the prompt is, in the engine.
        constraint = None
        if not compiler.awaits_prompt(request):
            constraint = compiler.constraint(request, _ends(compiler, sampling_params))
        if most_tokens(sampling_params) is not None:
            field = f"extra_args.{WHOLE}"
            try:
                _check_budget(constraint, most_tokens(sampling_params), config)
            except GuidedError as error:
                metrics.refused(request.kind.value, type(error).__name__)
                raise
    except GuidedError as error:
        raise VLLMValidationError(f"guided: {error}", parameter=field) from error
    params._backend = NAME
    params._backend_was_auto = auto


def _check_budget(constraint: Constrains | None, most: int | None, config: Any) -> None:
    if config.reasoning_parser and not config.enable_in_reasoning:
        raise UnsupportedError(
            "how many tokens are left when reasoning ends is not known before", remedy=f"Ask without {WHOLE!r}."
        )
    if constraint is None:
        return
    try:
        Matcher(constraint, most)
    except LimitError as error:
        raise LimitError(error.what, where=error.where, remedy="Raise max_tokens.") from None


def _ends(compiler: Compiler, sampling_params: Any) -> set[int] | None:
    """The ids that will end the text, as far as they are known here: the engine adds the model's own."""
    own = compiler.vocabularies.ending_with().eos_ids
    asked_for = sampling_params.all_stop_token_ids
    return {*own, *asked_for} if asked_for else None
