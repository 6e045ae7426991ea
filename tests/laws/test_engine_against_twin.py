"""The engine against the Earley twin on random grammars: alive, accepting, next bytes and masks, at every prefix."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guided
from guided.constraint.constraint import Constraint
from guided.grammar.ir import Choice, Grammar, Lexing, Reference, Repetition, Rule, Sequence, Terminal
from guided.grammar.regular.expr import EPSILON, alternation
from tests.amounts import Refusals, mostly_slow, some
from tests.twin.earley import Recogniser
from tests.twin.random_grammars import ALPHABET, C, random_grammar, spell

TOKENS = [bytes([byte]) for byte in ALPHABET] + [
    b"ab", b"ba", b"aa", b"abab", b"a,", b",b", b"a,b", b"bb,a", b"c,c", b"abc", b"aaaaaa", b"ababab,ab,a", b"x", b"ax",
]  # fmt: skip
VOCABULARY = guided.Vocabulary.from_tokens([*TOKENS, None, b"<end>"], eos_ids=[len(TOKENS) + 1])


def fork(twin: Recogniser) -> Recogniser:
    """A recogniser that goes on from here without disturbing ``twin`` (earlier columns are never changed)."""
    other = object.__new__(Recogniser)
    other.table, other.start = twin.table, twin.start
    other.columns, other.flight = list(twin.columns), set(twin.flight)
    return other


def compare(grammar: Grammar, rnd: random.Random, prefixes: int) -> None:
    """Explore ``prefixes`` live prefixes of the language and compare all that can be seen there."""
    assert grammar.lexing is Lexing.NONE
    twin = Recogniser(grammar)
    try:
        constraint = Constraint(grammar, VOCABULARY)
    except guided.UnsatisfiableError:
        assert not twin.alive, f"refused as empty, but it is not: {spell(grammar)}"
        return
    frontier = [(b"", constraint.start, twin)]
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    for _ in range(prefixes):
        if not frontier:
            return
        text, state, twin = frontier.pop(rnd.randrange(len(frontier)) if rnd.random() < 0.7 else -1)
        where = f"after {text!r} of {spell(grammar)}"
        assert constraint.is_accepting(state) == twin.accepting, f"accepting {where}: the twin says {twin.accepting}"
        after = {}
        for byte in ALPHABET:
            following = fork(twin).feed(bytes([byte]))
            then = constraint.advance_bytes(state, bytes([byte]))
            assert (then != 0) == following.alive, f"{chr(byte)!r} {where}: the twin says {following.alive}"
            if then:
                after[byte] = then
                frontier.append((text + bytes([byte]), then, following))
        constraint.fill_mask(state, row)
        for token, data in enumerate(TOKENS):
            alive = data[0] in after and fork(twin).feed(data).alive
            allowed = bool(int(row[token >> 5]) >> (token & 31) & 1)
            assert allowed == alive, f"token {data!r} {where}: the twin says {alive}"
            assert (constraint.advance(state, token) != 0) == alive, f"advance {data!r} {where}"


@given(st.randoms(use_true_random=False))
@settings(max_examples=some(150, 4))
def test_random_grammars(rnd):
    compare(random_grammar(rnd), rnd, prefixes=12)


@pytest.mark.parametrize("seed", mostly_slow(range(150), 20))
def test_seeded_grammars(seed):
    rnd = random.Random(seed)
    compare(random_grammar(rnd), rnd, prefixes=25)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, 100))
def test_many_grammars(first):
    # One in some hundred is so ambiguous that a step is refused, by name; what was compared until then was equal.
    with Refusals(most=0.04) as refusals:
        for seed in range(first, first + 100):
            rnd = random.Random(seed)
            with refusals.trial(guided.LimitError):
                compare(random_grammar(rnd, depth=4, rules=5), rnd, prefixes=40)


def test_more_room_at_once_than_tables_keep_free():
    """A grammar so ambiguous that one closure adds more than a thousand rows."""
    pair = Sequence((Reference(0), Terminal(alternation((C, EPSILON)), "c?")))
    body = Repetition(Choice((Reference(0), Reference(0))), 0, 4, pair)
    constraint = Constraint(Grammar((Rule("r0", body),), 0), VOCABULARY)
    state = constraint.start
    for _ in range(26):
        state = constraint.advance_bytes(state, b"c")
        assert constraint.is_accepting(state)
