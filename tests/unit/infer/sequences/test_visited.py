"""The trie of visited prefixes: values against their definition, rows within their budget, and a copy that says the same."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.infer.sequences.exploration import Exploration
from guided.infer.sequences.visited import ROOT, Row, Visited
from tests.tolerances import DOUBLE
from tests.twin.tiny_problems import problem


@given(st.integers(1, 400), st.data())
def test_rows_give_back_their_tokens(width, data):
    ids = sorted(data.draw(st.sets(st.integers(0, width - 1))))
    row = Row(np.array(ids, np.int32), np.arange(len(ids), dtype=np.float32), width)
    assert row.ids.tolist() == ids and row.ids.dtype == np.int32
    # The shorter of both forms: an id and a word of bits take four bytes each.
    assert row.nbytes == 4 * len(ids) + 4 * min(len(ids), -(-width // 32))


def test_a_row_of_nearly_all_tokens_is_small():
    row = Row(np.arange(3, 128_000, dtype=np.int32), np.zeros(127_997, np.float32), 128_000)
    assert row.nbytes == 127_997 * 4 + 16_000


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=12), st.integers(0, 10**6))
def test_values_are_what_they_are_defined_to_be(paths, seed):
    rng = np.random.default_rng(seed)
    trie = Visited(1 << 20)
    rows = {}
    dead = set()

    def expand(node):
        if not trie.is_expanded(node):
            ids = np.flatnonzero(rng.random(4) < 0.7).astype(np.int32)
            rows[node] = Row(ids, np.log(rng.dirichlet(np.ones(5))[ids] + 1e-12), 4)
            trie.expand(node, rows[node])

    before = {}
    for path in paths:
        node = ROOT
        for token in path:
            if node in dead:
                break
            expand(node)
            if token not in rows[node].ids:
                break
            known = trie.child(node, token)
            kill = known < 0 and rng.random() < 0.2
            log_value = -math.inf if kill else 0.0
            node = known if known >= 0 else trie.add(node, rows[node], token, None, log_value=log_value)
            if kill:
                dead.add(node)
        trie.settle([node])
        now = {at: float(trie.log_value[at]) for at in range(len(trie))}
        assert all(now[at] <= before[at] + 1e-12 for at in before), "values fall"
        before = now

    def value(node):
        if node in dead:
            return 0.0
        if node not in rows:
            return 1.0
        weights = zip(rows[node].ids.tolist(), rows[node].log_weights.tolist(), strict=True)
        return math.fsum(
            math.exp(w) * (value(trie.child(node, t)) if trie.child(node, t) >= 0 else 1.0) for t, w in weights
        )

    for node in range(len(trie)):
        if paths:
            assert math.exp(trie.log_value[node]) == pytest.approx(value(node), abs=DOUBLE)
        if node in rows and node not in dead:
            shares = np.exp(trie.weights(node, rows[node])).sum()
            assert shares == pytest.approx(value(node), abs=DOUBLE)
    copy = pickle.loads(pickle.dumps(trie))
    assert len(copy) == len(trie) and copy.n_rows == 0
    for node in range(len(trie)):
        assert copy.tokens(node) == trie.tokens(node) and copy.children(node) == trie.children(node)
        assert copy.log_value[node] == trie.log_value[node]


def test_values_far_below_rounding_keep_their_digits():
    """Nearly all mass dies: a difference of sums would be noise."""
    trie = Visited(1 << 20)
    row = Row(np.arange(2, dtype=np.int32), np.log(np.array([1.0, 1e-30])), 2)
    trie.expand(ROOT, row)
    trie.add(ROOT, row, 0, None, log_value=-math.inf)
    trie.settle([ROOT])
    assert trie.log_value[ROOT] == pytest.approx(math.log(1e-30), abs=DOUBLE)


def test_rows_stay_within_their_budget_and_are_read_again():
    tiny = problem("[ab]*", seed=1, max_tokens=6)
    plain = Exploration(*tiny.arguments, max_tokens=6)
    poor = Exploration(*tiny.arguments, max_tokens=6, memory=60)
    for exploration in (plain, poor):
        node = ROOT
        for token in (0, 1, 2, 0):
            [row] = exploration.rows([node])
            node = exploration.child(node, row, token)
    assert poor.trie.n_rows <= 2 < plain.trie.n_rows
    nodes = list(range(4)) * 2
    before = poor.model.calls.positions
    for a, b in zip(plain.rows(nodes), poor.rows(nodes), strict=True):
        assert a.ids.tolist() == b.ids.tolist() and a.log_weights.tolist() == b.log_weights.tolist()
    assert poor.model.calls.positions > before
    none = Exploration(*tiny.arguments, max_tokens=6, memory=0)
    assert none.rows([ROOT])[0].ids.tolist() == plain.rows([ROOT])[0].ids.tolist() and none.trie.n_rows == 0


@given(st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=1, max_size=8), st.integers(1, 4))
def test_any_order_of_prefixes_reads_what_the_model_says(paths, batch):
    tiny = problem("[ab]*", seed=3, max_tokens=9)
    exploration = Exploration(*tiny.arguments, max_tokens=9, batch=batch)
    nodes = []
    for path in paths:
        node = ROOT
        for token in path:
            known = exploration.trie.child(node, token)
            node = known if known >= 0 else exploration.trie.attach(node, token, None, 0.0)
        nodes.append(node)
    for chosen in (nodes, nodes[::-1], nodes[:1]):
        for node, found in zip(chosen, exploration.log_probs(chosen), strict=True):
            tokens = exploration.trie.tokens(node)
            np.testing.assert_allclose(found, tiny.model.logprobs(tiny.prompt + tokens), atol=DOUBLE)


def test_only_new_tokens_are_computed():
    tiny = problem("[ab]*", seed=3, max_tokens=9)
    exploration = Exploration(*tiny.arguments, max_tokens=9)
    calls = tiny.model.calls
    node = ROOT
    leaves = []
    for token in (0, 1, 0, 1):
        [row] = exploration.rows([node])
        leaves.append(exploration.child(node, row, 2))
        node = exploration.child(node, row, token)
    assert (calls.passes, calls.positions) == (4, 1 + 3)
    exploration.rows(leaves)
    # Four prefixes that part from the one that is held: one pass, one token each.
    assert (calls.passes, calls.positions) == (5, 4 + 4)
