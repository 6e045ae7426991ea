"""Other engines beside a constraint: what each allows at every place of random texts, byte by byte."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

import guided
from guided import Grammar
from tests.vocabularies import SINGLE_BYTES, of_tokens

END = len(SINGLE_BYTES)
"""The id of the end of text."""


class Matcher(Protocol):
    """An engine in the middle of a text."""

    def allowed(self) -> set[int]:
        """The bytes that may come, and `END`."""
        ...

    def read(self, byte: int) -> None:
        """Go on by a byte that is allowed."""
        ...


class _Xgrammar:
    def __init__(self, compiled: Any) -> None:
        import xgrammar

        self.engine: Any = xgrammar
        self.matcher = self.engine.GrammarMatcher(compiled)

    def allowed(self) -> set[int]:
        if self.matcher.is_terminated():
            return set()
        bits = self.engine.allocate_token_bitmask(1, END + 1)
        self.matcher.fill_next_token_bitmask(bits)
        return _ids(bits[0].numpy().view(np.uint32))

    def read(self, byte: int) -> None:
        assert self.matcher.accept_token(byte)


def xgrammar_matchers(grammar: Any) -> Callable[[], Matcher]:
    """Makes matchers of a grammar of XGrammar's over single bytes."""
    import xgrammar

    engine: Any = xgrammar
    info = engine.TokenizerInfo([*SINGLE_BYTES, b"</s>"], vocab_type=engine.VocabType.RAW, stop_token_ids=[END])
    compiled = engine.GrammarCompiler(info).compile_grammar(grammar)
    return lambda: _Xgrammar(compiled)


class _Bytes:
    """A tokenizer whose tokens are the single bytes, as llguidance asks for one."""

    eos_token_id = END
    bos_token_id = None
    tokens = (*SINGLE_BYTES, b"</s>")
    special_token_ids = (END,)

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


class _Llguidance:
    def __init__(self, tokenizer: Any, text: str) -> None:
        import llguidance

        engine: Any = llguidance
        self.matcher = engine.LLMatcher(tokenizer, engine.grammar_from("lark", text), log_level=0)
        assert not self.matcher.is_error(), self.matcher.get_error()

    def allowed(self) -> set[int]:
        if self.matcher.is_stopped():
            return {END}
        found = _ids(np.frombuffer(self.matcher.compute_bitmask(), np.uint32)) - {END}
        return found | {END} if self.matcher.is_accepting() else found

    def read(self, byte: int) -> None:
        assert self.matcher.consume_token(byte), self.matcher.get_error()


def llguidance_matchers(text: str) -> Callable[[], Matcher]:
    """Makes matchers of a text in llguidance's dialect of Lark over single bytes."""
    import llguidance

    engine: Any = llguidance
    tokenizer = engine.LLTokenizer(engine.TokenizerWrapper(_Bytes()), n_vocab=END + 1)
    return lambda: _Llguidance(tokenizer, text)


def _ids(words: Any) -> set[int]:
    return {bit for bit in range(END + 1) if int(words[bit >> 5]) >> (bit & 31) & 1}


def assert_same_masks(
    grammar: Grammar, engine: Callable[[], Matcher], seed: str, texts: int = 6, steps: int = 25
) -> None:
    """What a grammar allows is what the engine allows along random texts.

    The engine may allow more in the middle of a character, and bytes that begin none: here texts are UTF-8.
    """
    constraint = guided.compile(grammar, of_tokens(SINGLE_BYTES))
    random_source = random.Random(seed)
    for _ in range(texts):
        matcher, state, read = engine(), constraint.start, b""
        for _ in range(steps):
            row = np.zeros(END // 32 + 1, np.uint32)
            constraint.fill_mask(state, row)
            ours, theirs = _ids(row), matcher.allowed()
            assert ours <= theirs, (read, ours - theirs)
            assert not _is_text(read) or not {bit for bit in theirs - ours if bit < 128 or bit == END}, (read, theirs)
            going_on = sorted(ours - {END})
            if not going_on:
                break
            byte = random_source.choice([bit for bit in going_on if 32 <= bit < 127] or going_on)
            matcher.read(byte)
            state = constraint.advance(state, byte)
            read += bytes([byte])


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
