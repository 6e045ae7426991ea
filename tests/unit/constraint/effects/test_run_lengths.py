"""Rows of runs within bounds, against each token's length."""

from __future__ import annotations

import random

import numpy as np

from guided.automata.lexer.states import StateTable
from guided.constraint.effects.effect_store import EffectStore
from guided.constraint.effects.run_lengths import RunLengths
from guided.constraint.effects.surveys import Surveys
from guided.constraint.effects.token_tries import TokenTries
from guided.grammar.regular.expr import json_string
from guided.grammar.regular.texts import CONTENT
from guided.kernels.masking.effects import DENSE
from guided.vocab.vocabulary import Vocabulary
from tests import vocabularies


def words(seed: random.Random) -> list[str]:
    return sorted(token.decode() for token in vocabularies.random_tokens(seed, "abcéഀ", 6000, 12))


def kept_of(store: EffectStore, vocabulary: Vocabulary, index: int) -> set[int]:
    effects = store.arrays
    first = int(effects.list_first[index])
    kept = set(effects.listed[first : first + int(effects.list_count[index])].tolist())
    mask = int(effects.mask[index])
    if mask >= 0:
        bits = np.unpackbits(effects.masks[mask].view(np.uint8), bitorder="little")
        kept |= set(np.flatnonzero(bits).tolist())
    return kept


def test_rows_hold_the_tokens_within_the_bound_in_whatever_order_they_are_asked_for():
    seed, table = random.Random(4), StateTable()
    tokens = words(seed)
    vocabulary = vocabularies.of_tokens(token.encode() for token in tokens)
    tries, store = TokenTries(vocabulary), EffectStore(vocabulary.n_words)
    state = table.add(json_string(CONTENT))
    found = Surveys(table, tries, store).survey(1, tries._n_nodes, state, state)
    assert found is not None
    lengths = RunLengths(found, 0, None, store, tries)
    dense = 0
    for bound in (7, 12, 3, 6, 5, 1, 2, 40, 4, 11, 0, -1, 6):
        index = lengths.add(1, tries._n_nodes, 1000 + bound, 0, bound, bound)
        expected = {i for i, token in enumerate(tokens) if bound < 0 or len(token) <= bound}
        assert kept_of(store, vocabulary, index) == expected
        dense += len(expected) > DENSE
    assert dense > 6
