"""The engines that are compared, behind one small interface: compile a schema, start an instance, mask and step.

Each adapter is as thin as its library allows, so that a time is the library's own plus one Python call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Protocol

import numpy as np

__all__ = ["ENGINES", "Compiled", "Engine", "Matcher", "open_engines", "read"]


class Matcher(Protocol):
    """One text in progress: masks and steps alternate."""

    def mask(self) -> None:
        """Compute the mask of the present place into a row that the matcher keeps."""

    def allows(self, token: int) -> bool:
        """Is the token in the mask that was computed last?"""

    def step(self, token: int) -> None:
        """Take a token; raises when it is not allowed."""


class Compiled(Protocol):
    """A schema that is ready."""

    def start(self) -> Matcher:
        """A matcher at the beginning of a text."""


class Engine(Protocol):
    """A library with a vocabulary loaded."""

    name: str

    def compile(self, schema: Any) -> Compiled:
        """A JSON Schema, ready; raises what the library raises for what it does not serve."""

    def batch(self, rows: int, threads: int) -> Any:
        """Rows of masks and logits: ``fill(matchers)`` and ``apply()``; None when the library has no such thing."""


class GuidedEngine:
    name = "guided"

    def __init__(self, tokenizer: Any) -> None:
        import guided

        self.guided = guided
        self.vocabulary = guided.Vocabulary.from_tokenizer(tokenizer)
        self.width = self.vocabulary.size
        self.row = np.zeros(self.vocabulary.n_words, np.uint32)

    def compile(self, schema: Any) -> _GuidedCompiled:
        constraint = self.guided.compile(self.guided.json_schema(schema), self.vocabulary)
        return _GuidedCompiled(constraint, self.row)

    def compile_anew(self, text: str, *, is_gbnf: bool) -> _GuidedCompiled:
        """A grammar in GBNF or Lark's notation; `guided.compile` would remember what earlier texts have come by."""
        front = self.guided.gbnf if is_gbnf else self.guided.lark
        return _GuidedCompiled(self.guided.Constraint(front(text), self.vocabulary), self.row)

    def batch(self, rows: int, threads: int) -> _GuidedBatch:
        return _GuidedBatch(self.guided, self.width, rows, threads)

    def reads_in_other_order(self, schema: Any, tokens: list[int]) -> bool:
        """Is the instance in the language once the declared members may come in any order?"""
        constraint = self.guided.compile(self.guided.json_schema(schema, order="any"), self.vocabulary)
        state = constraint.start
        for token in tokens:
            state = constraint.advance(state, token)
        return state != 0 and bool(constraint.is_accepting(state))


class _GuidedCompiled:
    def __init__(self, constraint: Any, row: Any) -> None:
        self.constraint = constraint
        self.row = row

    def start(self) -> _GuidedMatcher:
        return _GuidedMatcher(self.constraint, self.row)


class _GuidedMatcher:
    def __init__(self, constraint: Any, row: Any) -> None:
        self.constraint = constraint
        self.row = row
        self.state = constraint.start

    def mask(self) -> None:
        self.constraint.fill_mask(self.state, self.row)

    def allows(self, token: int) -> bool:
        return bool(int(self.row[token >> 5]) >> (token & 31) & 1)

    def step(self, token: int) -> None:
        self.state = self.constraint.advance(self.state, token)
        if not self.state:
            raise AssertionError(f"the mask allows token {token}, advance does not")


class _GuidedBatch:
    def __init__(self, guided: Any, width: int, rows: int, threads: int) -> None:
        import torch

        self.guided, self.threads = guided, threads
        self.masks = guided.allocate_masks(rows, width)
        self.logits = torch.zeros(rows, width)

    def fill(self, matchers: Sequence[Any]) -> None:
        constraints, states = [one.constraint for one in matchers], [one.state for one in matchers]
        self.guided.fill_masks(constraints, states, self.masks, threads=self.threads)

    def apply(self) -> None:
        self.guided.apply_masks(self.logits, self.masks, threads=self.threads)


class LlguidanceEngine:
    name = "llguidance"

    def __init__(self, tokenizer: Any) -> None:
        import llguidance.hf
        import llguidance.numpy

        self.llguidance = llguidance
        self.fill = llguidance.numpy.fill_next_token_bitmask
        self.vocabulary = llguidance.hf.from_tokenizer(tokenizer)
        self.width = self.vocabulary.vocab_size
        self.row = llguidance.numpy.allocate_token_bitmask(1, self.width)

    def compile(self, schema: Any) -> _LlguidanceCompiled:
        new = self.llguidance.LLMatcher
        fresh = new(self.vocabulary, new.grammar_from_json_schema(json.dumps(schema)))
        if fresh.is_error():
            raise ValueError(fresh.get_error())
        return _LlguidanceCompiled(self, fresh)

    def compile_anew(self, text: str, *, is_gbnf: bool) -> _LlguidanceCompiled:
        """A grammar in GBNF or Lark's notation."""
        from llguidance.gbnf_to_lark import gbnf_to_lark

        new = self.llguidance.LLMatcher
        fresh = new(self.vocabulary, new.grammar_from_lark(gbnf_to_lark(text) if is_gbnf else text))
        if fresh.is_error():
            raise ValueError(fresh.get_error())
        return _LlguidanceCompiled(self, fresh)

    def batch(self, rows: int, threads: int) -> _LlguidanceBatch:
        return _LlguidanceBatch(self.llguidance, self.width, rows, threads)


class _LlguidanceCompiled:
    def __init__(self, engine: LlguidanceEngine, fresh: Any) -> None:
        self.engine, self.fresh = engine, fresh

    def start(self) -> _LlguidanceMatcher:
        return _LlguidanceMatcher(self.engine, self.fresh.deep_copy())


class _LlguidanceMatcher:
    def __init__(self, engine: LlguidanceEngine, matcher: Any) -> None:
        self.fill, self.row, self.matcher = engine.fill, engine.row, matcher

    def mask(self) -> None:
        self.fill(self.matcher, self.row, 0)

    def allows(self, token: int) -> bool:
        return bool(int(self.row[0, token >> 5]) >> (token & 31) & 1)

    def step(self, token: int) -> None:
        self.matcher.consume_token(token)


class _LlguidanceBatch:
    """Its own parallel fill; its masks go onto the logits through xgrammar's CPU kernel, the quickest of the peers'."""

    def __init__(self, llguidance: Any, width: int, rows: int, threads: int) -> None:
        import torch
        import xgrammar

        self.executor = llguidance.LLExecutor(threads)
        self.fill_all = llguidance.numpy.fill_next_token_bitmask_par
        self.masks = llguidance.numpy.allocate_token_bitmask(rows, width)
        self.tensor = torch.from_numpy(self.masks)
        self.logits = torch.zeros(rows, width)
        self.apply_all = xgrammar.apply_token_bitmask_inplace

    def fill(self, matchers: Sequence[Any]) -> None:
        self.fill_all(self.executor, [(one.matcher, i) for i, one in enumerate(matchers)], self.masks)

    def apply(self) -> None:
        self.apply_all(self.logits, self.tensor)


class XgrammarEngine:
    name = "xgrammar"

    def __init__(self, tokenizer: Any, *, remembers: bool = False) -> None:
        import xgrammar

        self.xgrammar = xgrammar
        self.width = len(tokenizer)
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=self.width)
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=remembers)
        self.row = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def compile(self, schema: Any) -> _XgrammarCompiled:
        grammar = self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)
        return _XgrammarCompiled(self, grammar)

    def batch(self, rows: int, threads: int) -> _XgrammarBatch:
        return _XgrammarBatch(self.xgrammar, self.width, rows, threads)


class _XgrammarCompiled:
    def __init__(self, engine: XgrammarEngine, grammar: Any) -> None:
        self.engine, self.grammar = engine, grammar

    def start(self) -> _XgrammarMatcher:
        return _XgrammarMatcher(self.engine.xgrammar.GrammarMatcher(self.grammar), self.engine.row)


class _XgrammarMatcher:
    def __init__(self, matcher: Any, row: Any) -> None:
        self.matcher, self.row = matcher, row
        self.words = row.numpy()

    def mask(self) -> None:
        self.matcher.fill_next_token_bitmask(self.row)

    def allows(self, token: int) -> bool:
        return bool(int(self.words[0, token >> 5]) >> (token & 31) & 1)

    def step(self, token: int) -> None:
        if not self.matcher.accept_token(token):
            raise AssertionError(f"the mask allows token {token}, accept_token does not")


class _XgrammarBatch:
    def __init__(self, xgrammar: Any, width: int, rows: int, threads: int) -> None:
        import torch

        self.matcher = xgrammar.BatchGrammarMatcher(max_threads=threads)
        self.masks = xgrammar.allocate_token_bitmask(rows, width)
        self.logits = torch.zeros(rows, width)
        self.apply_all = xgrammar.apply_token_bitmask_inplace

    def fill(self, matchers: Sequence[Any]) -> None:
        self.matcher.batch_fill_next_token_bitmask([one.matcher for one in matchers], self.masks)

    def apply(self) -> None:
        self.apply_all(self.logits, self.masks)


class OutlinesEngine:
    name = "outlines-core"

    def __init__(self, tokenizer: Any) -> None:
        import outlines_core

        import guided

        # What each id says, from our reading of the tokenizer: theirs knows only tokenizers by their name on the hub.
        texts = guided.Vocabulary.from_tokenizer(tokenizer).tokens
        spelled: dict[bytes, list[int]] = {}
        for token, text in enumerate(texts):
            if text is not None:
                spelled.setdefault(text, []).append(token)
        self.outlines_core = outlines_core
        self.vocabulary = outlines_core.Vocabulary(tokenizer.eos_token_id, spelled)
        self.width = len(texts)
        self.row = np.zeros((len(texts) + 31) // 32, np.uint32)

    def compile(self, schema: Any) -> _OutlinesCompiled:
        pattern = self.outlines_core.json_schema.build_regex_from_schema(json.dumps(schema))
        return _OutlinesCompiled(self, self.outlines_core.Index(pattern, self.vocabulary))

    def batch(self, rows: int, threads: int) -> None:
        return None


class _OutlinesCompiled:
    def __init__(self, engine: OutlinesEngine, index: Any) -> None:
        self.engine, self.index = engine, index

    def start(self) -> _OutlinesMatcher:
        return _OutlinesMatcher(self.engine.outlines_core.Guide(self.index), self.engine.row)


class _OutlinesMatcher:
    def __init__(self, guide: Any, row: Any) -> None:
        self.guide, self.row = guide, row

    def mask(self) -> None:
        self.guide.write_mask_into(self.row.ctypes.data, self.row.size, self.row.itemsize)

    def allows(self, token: int) -> bool:
        return bool(int(self.row[token >> 5]) >> (token & 31) & 1)

    def step(self, token: int) -> None:
        self.guide.advance(token, return_tokens=False)


ENGINES: dict[str, Any] = {one.name: one for one in (GuidedEngine, LlguidanceEngine, XgrammarEngine, OutlinesEngine)}

PACKAGES = {"guided": "guided", "llguidance": "llguidance", "xgrammar": "xgrammar", "outlines-core": "outlines_core"}
"""What each engine imports."""


def open_engines(names: Sequence[str], tokenizer: Any, *, remembers: bool = False) -> list[Engine]:
    """The engines by name, over one tokenizer; those whose package is missing are left out.

    ``remembers`` lets xgrammar's compiler keep what it compiled, as it does by default; the others do so by themselves.
    """
    from importlib.util import find_spec

    found: list[Engine] = []
    for name in names:
        if find_spec(PACKAGES[name]) is None:
            continue
        found.append(ENGINES[name](tokenizer, remembers=remembers) if name == "xgrammar" else ENGINES[name](tokenizer))
    return found


def read(
    matcher: Matcher, tokens: Sequence[int], end: int, times: list[float], clock: Callable[[], float] = perf_counter
) -> bool:
    """Feed an instance and then the end of text, ``end``; one time in microseconds per token that was asked about."""
    for token in tokens:
        began = clock()
        matcher.mask()
        allowed = matcher.allows(token)
        if allowed:
            matcher.step(token)
        times.append((clock() - began) * 1e6)
        if not allowed:
            return False
    matcher.mask()
    return matcher.allows(end)
