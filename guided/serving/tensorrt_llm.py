"""TensorRT-LLM's PyTorch back end: a factory of grammar matchers, in the place of its factory for XGrammar.

Written against ``tensorrt_llm/_torch/pyexecutor/grammar_matcher.py`` of November 2026, and not run: the package needs
an NVIDIA GPU.  `install` is to be called in every worker process, before the executor is made; then
``guided_decoding_backend="xgrammar"`` is guided.
"""

from __future__ import annotations

from typing import Any

from guided.errors import GuidedError
from guided.serving.compilation import Compiler
from guided.serving.matcher import Matcher
from guided.serving.requests import Request, RequestKind

__all__ = ["install", "matcher_factory"]

_KINDS = {
    "JSON_SCHEMA": RequestKind.JSON_SCHEMA,
    "REGEX": RequestKind.REGEX,
    "EBNF_GRAMMAR": RequestKind.GRAMMAR,
    "STRUCTURAL_TAG": RequestKind.STRUCTURAL_TAG,
}


def matcher_factory(interface: Any) -> Any:
    """A class with the interface of TensorRT-LLM's ``XGrammarMatcherFactory``; ``interface`` is its module.

    Its ``create`` raises ValueError, as TensorRT-LLM expects it, for what guided refuses.
    """

    class GuidedMatcher(interface.GrammarMatcher):  # type: ignore[misc]
        """Where one request stands."""

        def __init__(self, matcher: Matcher) -> None:
            super().__init__()
            self._matcher = matcher

        def accept_token(self, token_id: int) -> bool:
            return not self._matcher.is_over and self._matcher.accept(token_id)

        def rollback(self, num_tokens: int) -> None:
            self._matcher.rollback(num_tokens)

        def fill_next_token_bitmask(self, next_token_bitmask: Any, index: int) -> None:
            self._matcher.fill(next_token_bitmask[index])

        def is_terminated(self) -> bool:
            return self._matcher.is_over

    class GuidedMatcherFactory(interface.GrammarMatcherFactory):  # type: ignore[misc]
        """Compiles requests for the tokenizer of a ``GuidedDecodingConfig``."""

        def __init__(self, guided_decoding_config: Any, vocab_size_padded: int, max_num_draft_tokens: int = 0) -> None:
            super().__init__()
            if guided_decoding_config.tokenizer_str is None:
                raise ValueError("guided needs the tokenizer: GuidedDecodingConfig has no tokenizer_str")
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_str(guided_decoding_config.tokenizer_str)
            self._compiler = Compiler(tokenizer, vocab_size_padded)
            self._ends = guided_decoding_config.stop_token_ids

        def create(self, guided_decoding_params: Any) -> GuidedMatcher:
            kind, guide = guided_decoding_params.guide_type.name, guided_decoding_params.guide
            if kind != "JSON" and kind not in _KINDS:
                raise ValueError(f"guided knows no guide type {kind}")
            request = Request(RequestKind.JSON_SCHEMA, "true") if kind == "JSON" else Request(_KINDS[kind], guide)
            try:
                return GuidedMatcher(Matcher(self._compiler.constraint(request, self._ends)))
            except GuidedError as error:
                raise ValueError(f"guided: {error}") from error

    return GuidedMatcherFactory


def install() -> None:
    """Put the factory into TensorRT-LLM's modules that make matchers."""
    from tensorrt_llm._torch.pyexecutor import grammar_matcher, guided_decoder

    made = matcher_factory(grammar_matcher)
    grammar_matcher.XGrammarMatcherFactory = made
    guided_decoder.XGrammarMatcherFactory = made
