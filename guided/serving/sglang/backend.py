"""`GuidedBackend`: SGLang's grammar backend (0.5.23), which compiles what requests ask for.

SGLang compiles on a pool of threads, once for each text, copies the grammar for each request, and aborts requests whose
grammar is an `InvalidGrammarObject` with its message.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
    register_vocab_mask_buffer,
)

from guided import tokenset
from guided.constraint.batch import mask_rows
from guided.errors import GuidedError, UnsupportedError
from guided.serving.compilation import compiler_for
from guided.serving.matcher import Matcher
from guided.serving.requests import Request, RequestKind
from guided.serving.sglang.asked import asked_json, asked_tag, content_of
from guided.serving.sglang.grammar import GuidedGrammar, allocate_masks, apply_masks, move_masks

__all__ = ["KEPT", "GuidedBackend"]

KEPT = 1024
"""Grammars kept for requests that come again; SGLang's own backends keep all."""


class GuidedBackend(BaseGrammarBackend):
    """The backend of one server.  ``vocab_size`` is the width of the model's logits; ``eos_ids`` the model's own."""

    def __init__(
        self, tokenizer: Any, vocab_size: int, eos_ids: Iterable[int] | None = None, whitespace: str | None = None
    ) -> None:
        super().__init__()
        self.cache: OrderedDict[Any, BaseGrammarObject] = OrderedDict()
        self.vocab_size = vocab_size
        self.whitespace = whitespace
        self._compiler = compiler_for(tokenizer, vocab_size)
        self._ends = None if eos_ids is None else tuple(eos_ids)
        self.vocabulary = self._compiler.vocabularies.ending_with(self._ends)

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a JSON Schema."""
        return self._compiled("json", lambda: asked_json(key_string, self.whitespace))

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a regular expression."""
        return self._compiled("regex", lambda: Request(RequestKind.REGEX, key_string))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a text in EBNF, GBNF or Lark, or of what the operator has named."""
        return self._compiled("ebnf", lambda: Request.of_grammar(key_string))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a structural tag, which is also what tool calls are."""
        return self._compiled("structural_tag", lambda: asked_tag(key_string, self.whitespace))

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        """Keep a grammar for requests that come again, and forget the oldest of too many."""
        self.cache[key] = value
        self.cache.move_to_end(key)
        while len(self.cache) > KEPT:
            self.cache.popitem(last=False)

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int, device: Any) -> torch.Tensor:
        """A buffer of masks for reuse."""
        masks: torch.Tensor = register_vocab_mask_buffer(name, allocate_masks(vocab_size, max_rows, device), max_rows)
        return masks

    def reserve_framing_tokens(self, token_ids: Sequence[int]) -> None:
        """Special tokens are never text here; raises `UnsupportedError` for a token of a frame that is."""
        texts = [token for token in token_ids if self.vocabulary.token_bytes(token)]
        if texts:
            raise UnsupportedError(
                f"the tokens {texts} frame messages, but are text to the tokenizer",
                remedy="Use a tokenizer in which they are special.",
            )

    def compile_framed_grammar(
        self, grammar: BaseGrammarObject, frame: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> BaseGrammarObject:
        """The grammar of a whole turn, in which an answer stands inside a frame."""
        request = grammar.request
        tag = json.dumps(frame(content_of(request)))
        return self._compiled("structural_tag", lambda: asked_tag(tag, request.whitespace))

    @property
    def is_support_token_filter(self) -> bool:
        """Strict thinking may forbid single tokens."""
        return True

    @staticmethod
    def set_token_filter(
        vocab_mask: torch.Tensor,
        token_ids: Sequence[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid tokens in a row; with ``reset_vocab_mask`` these alone, or all but these."""
        row = mask_rows(vocab_mask)[batch_idx]
        chosen = tokenset.of_ids(list(token_ids), len(row))
        if reset_vocab_mask:
            row[:] = 0 if is_allowed else np.uint32(0xFFFFFFFF)
        if is_allowed:
            row |= chosen
        else:
            row &= ~chosen

    allocate_vocab_mask = staticmethod(allocate_masks)
    move_vocab_mask = staticmethod(move_masks)
    apply_vocab_mask = staticmethod(apply_masks)

    def _compiled(self, kind: str, asked: Callable[[], Request]) -> BaseGrammarObject:
        """The grammar, or what SGLang answers with its message: `guided`'s own, with the place and the remedy."""
        try:
            request = asked()
            constraint = self._compiler.constraint(request, self._ends)
        except GuidedError as error:
            return InvalidGrammarObject(str(error))
        return GuidedGrammar(Matcher(constraint), request, GrammarStats(dispatch_type=kind))
