"""Terminals that may end behind every character: what is left of tokens is a trie that holds one at many nodes."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.testing import check_constraint

LONGEST = 120
"""The rests of ``a`` to ``a...a`` are 7,000, more than the vocabulary's own tokens and what is kept free for more."""

WORDS: list[bytes | None] = [b"a" * n for n in range(1, LONGEST)]
WORDS += [b"(", b")", b"a(", b"aa)a", b"a(aa)", b"b", b"aab", None]

GRAMMAR = 'root ::= item root | item\nitem ::= "(" root ")" | [a]+'


@pytest.fixture(scope="module")
def constraint():
    vocabulary = guided.Vocabulary.from_tokens(WORDS, eos_ids=[len(WORDS) - 1])
    return guided.compile(guided.gbnf(GRAMMAR), vocabulary)


def allowed(constraint, state):
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    constraint.fill_mask(state, row)
    return {token for token in range(len(WORDS)) if row[token >> 5] >> (token & 31) & 1}


def begins_a_text(text: bytes) -> bool:
    depth, before = 0, b""
    for byte in (text[at : at + 1] for at in range(len(text))):
        if byte == b"b" or (byte == b")" and (depth == 0 or before == b"(")):
            return False
        depth += {b"(": 1, b")": -1}.get(byte, 0)
        before = byte
    return True


@pytest.mark.parametrize("before", [b"", b"a", b"(", b"(a", b"((a", b"(a)(", b"a" * 300])
def test_masks_are_those_of_the_language(constraint, before):
    state = constraint.advance_bytes(constraint.start, before)
    expected = {token for token, word in enumerate(WORDS) if word is not None and begins_a_text(before + word)}
    if begins_a_text(before) and before and before.count(b"(") == before.count(b")"):
        expected.add(len(WORDS) - 1)
    assert allowed(constraint, state) == expected


def test_the_contracts_hold(constraint):
    check_constraint(constraint)


def test_rests_hold_each_token_once(constraint):
    """Ends behind ends would hold a token as often as there are ways to come there: 2 to the power of its length."""
    tries = constraint._machine.effects.tries
    every = np.arange(1, tries.arrays.end[1], dtype=np.int32)
    for _ in range(3):
        low, high = tries.merge(every)
        offset = tries.arrays.token_offset[low : high + 1]
        for node in range(high - low):
            held = tries.arrays.token_ids[offset[node] : offset[node + 1]].tolist()
            assert len(held) == len(set(held))
        assert offset[-1] - offset[0] < LONGEST * LONGEST
        every = np.arange(low, high, dtype=np.int32)
