"""Masks of LALR grammars over a vocabulary whose tries are large enough that most of them is never walked.

Each mask is compared with what every token does by itself.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.grammar import library
from guided.kernels.masking.lexed import FAR_RANGE
from tests import vocabularies
from tests.amounts import each

WORDS = 5_000


def vocabulary() -> guided.Vocabulary:
    """Bytes, words with and without a space before, some that begin as keywords do, and words among signs."""
    rng = random.Random(8)
    keywords = [
        b"select",
        b"from",
        b"if",
        b"else",
        b"int",
        b"return",
        b"while",
        b"and",
        b"not",
        b"lambda",
        b"for",
        b"in",
    ]
    signs = [b"(", b")", b"()", b");", b" {", b"++", b"->", b"==", b" = ", b"[", b"]", b",", b".", b" *", b"/*", b"//"]
    tokens = {*vocabularies.SINGLE_BYTES}
    tokens.update(
        keywords, signs, [b" " + word for word in keywords], [b"  ", b"    ", b"\n\n", b"\n    ", b'"', b'",']
    )
    while len(tokens) < WORDS:
        word = bytes(rng.choice(b"abcdefghilmnorstuw_EIS019") for _ in range(rng.randrange(2, 7)))
        kind = rng.randrange(10)
        if kind == 0:
            chosen = rng.choice(keywords)
            word = chosen[: rng.randrange(1, len(chosen) + 1)] + word[: rng.randrange(4)]
        if kind < 5:
            word = b" " + word
        if kind in (4, 5):
            word = word + rng.choice(signs)
        if kind == 6:
            word = rng.choice(signs) + word
        tokens.add(word)
    return vocabularies.of_tokens(sorted(tokens))


VOCABULARY = vocabulary()


@pytest.mark.parametrize(
    "name", each(["c_program", "sqlite_select", "python_expression", "arithmetic", "pddl_plan"], 2)
)
def test_masks_are_what_each_token_does(name: str) -> None:
    constraint = Constraint(guided.grammar(name), VOCABULARY)
    machine = constraint._machine
    assert machine.lexed
    assert machine.effects.root > 4 * FAR_RANGE
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    texts = [text for text in library.examples(name)[0] if len(text) < 120][:4]
    compared = 0
    for text in texts:
        state = constraint.start
        for place, byte in enumerate(text.encode()):
            if place % 5 in (0, 3):
                constraint.fill_mask(state, row)
                after = machine.advance_each(state, list(range(VOCABULARY.size - 1)))
                allowed = np.unpackbits(row.view(np.uint8), bitorder="little")[: VOCABULARY.size - 1]
                wrong = np.flatnonzero(allowed != (np.array(after) > 0))
                assert not wrong.size, (text, place, [VOCABULARY.tokens[token] for token in wrong.tolist()[:8]])
                compared += 1
            state = constraint.advance_bytes(state, bytes([byte]))
        assert constraint.is_accepting(state)
    assert compared > 6


def test_lexers_share_the_core_of_their_tries() -> None:
    """Places of a grammar whose lexers differ in their keywords keep what they have in common once."""
    constraint = Constraint(guided.grammar("c_program"), VOCABULARY)
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    state = constraint.start
    for byte in b"int f(int a) { if (a) return a + 1; while (a) { a = f(a); } }":
        constraint.fill_mask(state, row)
        state = constraint.advance_bytes(state, bytes([byte]))
    effects = constraint._machine.effects
    known = effects.store
    whole = [
        i for i in range(known._n_effects) if known.arrays.key_high[i] == effects.root and known.arrays.key_state[i] > 0
    ]
    cores = {key: core for key, core in effects._cores.items() if key[1] == effects.root}
    assert len(whole) > 3 * len(cores) > 0
