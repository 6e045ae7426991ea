"""The fewest tokens that spell a text, against trying all ways."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from guided.kernels.tokens.tokenize import fewest_tokens
from tests import vocabularies


@pytest.mark.parametrize("seed", range(10))
def test_no_spelling_has_fewer_tokens(seed):
    rnd = random.Random(seed)
    tokens = sorted(vocabularies.random_tokens(rnd, "abc", rnd.randint(3, 12), 4))
    trie = vocabularies.of_tokens(tokens).trie

    @cache
    def fewest(text: bytes) -> float:
        ways = [1 + fewest(text[len(token) :]) for token in tokens if text.startswith(token)]
        return 0 if not text else min(ways, default=float("inf"))

    outcomes = set()
    for _ in range(60):
        text = bytes(rnd.choices(b"abc", k=rnd.randint(0, 12)))
        room = np.zeros((3, len(text) + 1), np.int32)
        arrays = trie.byte, trie.end, trie.token_offset, trie.token_ids
        n = fewest_tokens(*arrays, np.frombuffer(text, np.uint8), room)
        expected = fewest(text)
        assert n == (-1 if expected == float("inf") else expected), text
        if n >= 0:
            assert b"".join(tokens[token] for token in room[0, :n]) == text
        outcomes.add(n >= 0)
    assert True in outcomes
