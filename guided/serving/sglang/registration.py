"""The backend's name in SGLang (0.5.23), and reasoning before the constrained text.

SGLang wraps its own backends for models that reason, but not those of its registry, so this does it for ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend, register_grammar_backend
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.srt.runtime_context import get_serving

from guided.errors import LimitError
from guided.serving.matcher import Matcher
from guided.serving.sglang.asked import WHOLE
from guided.serving.sglang.backend import GuidedBackend
from guided.serving.sglang.grammar import GuidedGrammar

__all__ = ["NAME", "install", "make_backend", "set_budget"]

NAME = "guided"
"""``--grammar-backend guided``."""


READY = "sglang.srt.constrained.grammar_manager.GrammarManager._apply_request_reasoning_config"
"""What SGLang calls for each request whose grammar is at hand, compiled now or before."""


def install() -> None:
    """Register the backend, once a process."""
    if NAME in GRAMMAR_BACKEND_CHOICES:
        return
    add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, make_backend)
    HookRegistry.register(READY, set_budget, HookType.AFTER)


def make_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None = None
) -> BaseGrammarBackend:
    """The backend that SGLang asks its registry for, wrapped where the server reads reasoning off its model."""
    serving = get_serving()
    whitespace = serving.constrained_json_whitespace_pattern
    if whitespace is None and serving.constrained_json_disable_any_whitespace:
        whitespace = "compact"
    backend = GuidedBackend(tokenizer, vocab_size, eos_token_ids or None, whitespace)
    if not serving.reasoning_parser:
        return backend
    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    return ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking)


def set_budget(result: None, manager: Any, request: Any) -> None:
    """Steer a request that asks for it (`WHOLE`) to a whole text within its ``max_new_tokens``; abort it if none fits.

    Not where a model reasons first: how many tokens that leaves is not known.
    """
    grammar, sampling = request.grammar, request.sampling_params
    if not isinstance(grammar, GuidedGrammar) or not (sampling.custom_params or {}).get(WHOLE):
        return
    try:
        grammar.matcher = Matcher(grammar.matcher.constraint, sampling.max_new_tokens)
    except LimitError as error:
        request.set_finish_with_abort(f"{error.what}. Raise max_new_tokens.")
