"""States of live languages that are forgotten and read again: the same numbers, masks and ends."""

from __future__ import annotations

import random

import numpy as np
import pytest

from guided.constraint.attributed.constraint import AttributedConstraint
from guided.constraint.limits import Limits
from guided.constraint.states import States
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.schema import Column, DatabaseSchema, Table
from tests.vocabularies import of_tokens, with_bytes

SCHEMA = DatabaseSchema((Table("singer", (Column("name"), Column("age"))), Table("song", (Column("title"),))))


def step(value: tuple[int, ...], byte: int) -> tuple[int, ...] | None:
    return None if byte == 0 else (*value, byte)


@pytest.mark.parametrize("most", [1, 4, 64])
def test_a_number_keeps_its_meaning(most):
    rng = random.Random(0)
    states = States((), step, 2, most)
    texts = {2: ()}
    for _ in range(400):
        before = rng.choice(list(texts))
        data = bytes(rng.randrange(4) for _ in range(rng.randrange(1, 4)))
        found = states.after(before, data)
        assert (found is None) is (0 in data)
        if found is not None:
            assert texts.setdefault(found, texts[before] + tuple(data)) == texts[before] + tuple(data)
    assert all(states.value(number) == text for number, text in texts.items())


def test_few_values_are_kept():
    states = States((), step, 2, 8)
    at = 2
    for byte in range(1, 200):
        at = states.after(at, bytes([byte]))
    assert len(states) == 200
    assert len(states._recent[0]) + len(states._older[0]) <= 8 + 2
    assert states.value(at) == tuple(range(1, 200))
    assert states.after(2, b"") == 2


def test_masks_are_those_of_a_constraint_that_forgets_nothing():
    vocabulary = of_tokens(with_bytes([b"SELECT", b" name", b" FROM", b" singer", b"(*", b", ", b" age", b"a("]))
    whole = AttributedConstraint(query_language(SCHEMA), vocabulary)
    short = AttributedConstraint(query_language(SCHEMA), vocabulary, Limits(live_states=2))
    rng = random.Random(1)
    rows = np.zeros((2, vocabulary.n_words), np.uint32)
    places = [(whole.start, short.start)]
    for _ in range(120):
        one, other = rng.choice(places[-20:])
        whole.fill_mask(one, rows[0])
        short.fill_mask(other, rows[1])
        assert (rows[0] == rows[1]).all()
        assert whole.is_accepting(one) == short.is_accepting(other)
        ids = [
            id_
            for id_ in range(vocabulary.size)
            if rows[0][id_ >> 5] >> (id_ & 31) & 1 and id_ not in vocabulary.eos_ids
        ]
        token = rng.choice(ids)
        places.append((whole.advance(one, token), short.advance(other, token)))
    assert len(whole._states) > 30
