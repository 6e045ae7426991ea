"""What is noted of the nodes of tries, and tries that are merged, against the tokens themselves."""

from __future__ import annotations

import random

import numpy as np
import pytest

from guided.constraint.effects.token_tries import MANY_CHILDREN, TokenTries
from tests import vocabularies
from tests.amounts import each

LETTERS = ["a", "b", "é", "\u2028", "日", "\n", '"', *map(chr, range(0x61, 0x75))]


def below(tries: TokenTries, low: int, high: int) -> set[tuple[bytes, int]]:
    """All tokens of a range of nodes, with the bytes from its beginning."""
    arrays, found = tries.arrays, set()
    node = low
    while node < high:
        byte, end = bytes([arrays.byte[node]]), int(arrays.end[node])
        found |= {
            (byte, int(token)) for token in arrays.token_ids[arrays.token_offset[node] : arrays.token_offset[node + 1]]
        }
        found |= {(byte + rest, token) for rest, token in below(tries, node + 1, end)}
        node = end
    return found


def random_tries(seed: int) -> tuple[random.Random, list[bytes], TokenTries]:
    rnd = random.Random(seed)
    tokens = sorted(vocabularies.random_tokens(rnd, LETTERS, 300, 4) | {b"\xc3", b"\xe2\x80", b"a" * 300})
    return rnd, tokens, TokenTries(vocabularies.of_tokens(tokens))


@pytest.mark.parametrize("seed", each(range(6), 2))
def test_nodes_know_their_height_and_children(seed):
    _, tokens, tries = random_tries(seed)
    arrays = tries.arrays
    assert below(tries, 1, tries.root) == {(data, token) for token, data in enumerate(tokens)}
    tables = 0
    for node in range(tries.root):
        low, high = node + 1, int(arrays.end[node])
        if node:
            rests = [len(rest) for rest, _ in below(tries, low, high)]
            assert arrays.height[node] == min(1 + max(rests, default=0), 255)
        children = []
        while low < high:
            children.append(low)
            low = int(arrays.end[low])
        table = int(arrays.fan[node + 1]) - 1 if children else -1
        assert (table >= 0) == (len(children) >= MANY_CHILDREN)
        if table >= 0:
            tables += 1
            assert np.flatnonzero(arrays.children[table]).tolist() == [arrays.byte[child] for child in children]
            assert [arrays.children[table, arrays.byte[child]] for child in children] == children
    assert tables


@pytest.mark.parametrize("seed", each(range(6), 2))
def test_a_merged_trie_holds_what_is_below_each_of_its_nodes(seed):
    rnd, _, tries = random_tries(seed)
    inner = [node for node in range(1, tries.root) if tries.arrays.end[node] > node + 1]
    for _ in range(20):
        nodes = sorted(rnd.sample(inner, min(len(inner), rnd.choice([2, 3, 40]))))
        allowed = None
        if rnd.random() < 0.5:
            allowed = np.array([rnd.random() < 0.7 for _ in range(256)], np.uint8)
        low, high = tries.merge(np.array(nodes, np.int32), allowed)
        # A token is once in a trie, and below a node that is below another it has two rests.
        expected = {each for node in nodes for each in below(tries, node + 1, int(tries.arrays.end[node]))}
        if allowed is not None:
            expected = {(rest, token) for rest, token in expected if allowed[rest[0]]}
        assert below(tries, low, high) == expected
        bytes_of = [int(tries.arrays.byte[node]) for node in children_of(tries, low, high)]
        assert bytes_of == sorted({*bytes_of})


def children_of(tries: TokenTries, low: int, high: int) -> list[int]:
    found = []
    while low < high:
        found.append(low)
        low = int(tries.arrays.end[low])
    return found
