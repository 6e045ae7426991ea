"""The compiled constraint against Lark itself: it accepts what Lark parses, and Lark parses what it generates."""

from __future__ import annotations

import random

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.errors import UnsupportedError
from guided.grammar.ir import Lexing
from tests import vocabularies
from tests.amounts import crossed
from tests.oracle.test_lark_acceptance import ALL, NOT_LALR, WORDS, _parsers, _parses
from tests.twin.sentences import Sampler

TOKENS = [*vocabularies.SINGLE_BYTES]
TOKENS += [word.encode() for word in WORDS if len(word) > 1] + [b" = ", b"if ", b'": ', b'"a"', b"12", b"e + ", b"\n\n"]
VOCABULARY = vocabularies.of_tokens(TOKENS)
LOOKS_BEHIND = {"boundaries"}
MODES = [Lexing.CONTEXTUAL, Lexing.DYNAMIC]


def accepts(constraint: Constraint, text: str) -> bool:
    return constraint.is_accepting(constraint.advance_bytes(constraint.start, text.encode()))


def generate(constraint: Constraint, rng: random.Random) -> str:
    """A text under random token weights, steered to an end by a random budget."""
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    state, data = constraint.start, b""
    budget = constraint.shortest_completion(state) + 1 + rng.randrange(30)
    while True:
        constraint.fill_budget_mask(state, row, budget)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        weights = [1 if token < 32 or 127 <= token < 256 else 20 for token in allowed]
        token = rng.choices(allowed.tolist(), weights)[0]
        state = constraint.advance(state, token)
        if state == constraint.end:
            return data.decode()
        data += TOKENS[token]
        budget -= 1


def check(name: str, mode: Lexing, count: int) -> None:
    if mode is Lexing.CONTEXTUAL and name in NOT_LALR:
        pytest.skip("not LALR(1)")
    grammar = guided.lark(ALL[name], lexing=mode)
    if name in LOOKS_BEHIND:
        with pytest.raises(UnsupportedError, match="before its own start"):
            guided.compile(grammar, VOCABULARY)
        return
    constraint, parser = guided.compile(grammar, VOCABULARY), _parsers(ALL[name], mode)
    sampler, rng = Sampler(grammar, 2, WORDS), random.Random(3)
    for _ in range(count):
        text = sampler.text()
        assert accepts(constraint, text) == _parses(parser, text), text
        text = generate(constraint, rng)
        assert _parses(parser, text), text


@pytest.mark.parametrize(("mode", "name"), crossed(MODES, sorted(set(ALL) - {"python_like"}), share=6))
def test_some(name: str, mode: Lexing) -> None:
    check(name, mode, 12)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(ALL))
def test_ten_thousand(name: str, mode: Lexing) -> None:
    check(name, mode, 10_000)
