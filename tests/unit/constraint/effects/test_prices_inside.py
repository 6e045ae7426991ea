"""What tokens that stay inside a terminal are from its end, against the place of each by itself."""

from __future__ import annotations

import random

import pytest

import guided
from guided.automata.lexer.distances import bound_widest
from guided.constraint.effects.prices_inside import PricesInside
from guided.constraint.effects.token_effects import TokenEffects
from guided.constraint.engine.machine import ConstraintMachine
from guided.kernels.data.layout import FAR
from guided.kernels.masking.masks import ENOUGH
from tests import vocabularies
from tests.amounts import mostly_slow

PIECES = ["a", "b", "7", "@", ".", "-", "e\u0301", "\u4e2d", "\U0001f600", "\u2028", " ", "é"]


def _priced(listed: list[int]) -> tuple[int, dict[int, int]]:
    """The usual price, and the prices of the tokens that are listed."""
    usual, n_costlier, *rest = listed
    prices: dict[int, int] = {}
    price = -1
    for entry in rest:
        if entry < 0:
            price = ~entry
        else:
            prices[entry] = price
    costlier, cheaper = ([~entry for entry in part if entry < 0] for part in (rest[:n_costlier], rest[n_costlier:]))
    assert costlier == sorted(set(costlier), reverse=True) and cheaper == sorted(set(cheaper))
    assert all(price > usual for price in costlier) and all(price < usual for price in cheaper)
    return usual, prices


PATTERNS = [
    "^([a-b]+@)?[^@]{3,}[.]x$", "^(a[^b]{2}|[^7]{4})+-$", "^[a-z0-9é]+@([a-z]+[.])+[a-z]{2,9}$", "^.{5,}$",
    "^([^a]7)+\u4e2d.é$", "^([^\u4e2d]+\U0001f600)*$", "^[ab7]*7[ab7]* +$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", mostly_slow(PATTERNS, 3))
def test_each_token_is_as_far_as_its_place(pattern: str) -> None:
    tokens = sorted(
        {*vocabularies.random_tokens(random.Random(len(pattern)), PIECES, 300, 5), *(bytes([b]) for b in range(256))}
    )
    tokens += [
        text[:cut] for text in map(str.encode, PIECES) for cut in range(1, len(text)) if text[:cut] not in tokens
    ]
    vocabulary = vocabularies.of_tokens([token for token in dict.fromkeys(tokens) if b"\\" not in token and token])
    constraint = guided.Constraint(guided.json_schema({"type": "string", "pattern": pattern}), vocabulary)
    machine = constraint._machine
    assert isinstance(machine, ConstraintMachine)
    machine.begin_prices()
    # Of so few prices there is no room for all.
    machine.effects._surveys._hold_prices(8)
    compared = 0
    for text in (b'"', b'"a', b'"7a', b'"ab@b'):
        state = constraint.advance_bytes(constraint.start, text)
        if not state or len(machine.threads(state)) > 1:
            continue
        inside, continuation, _ = machine.threads(state)[0]
        behind = machine.token_costs.of(continuation)
        root = machine.effects.root
        machine.effects.need(1, root, inside)
        bound_widest(machine.states, inside)
        widest = int(machine.states.arrays.widest[inside])
        # Where that is not told all are listed.
        machine.states.arrays.widest[inside] = FAR
        machine.effects.need_near(1, root, inside)
        store = machine.effects.store
        at = store.find(1, root, inside | ENOUGH)
        first = int(store.arrays.list_first[at])
        usual, prices = _priced(store.arrays.listed[first : first + int(store.arrays.list_count[at])].tolist())
        for token in range(vocabulary.size):
            data = vocabulary.token_bytes(token)
            after = constraint.advance(state, token) if data else 0
            if not after or len(machine.threads(after)) > 1 or machine.threads(after)[0][1] != continuation:
                continue
            compared += 1
            left = machine.token_costs.to_end(after) - behind
            assert prices.get(token, usual) == left <= widest, (text, data)
    assert compared > 20


def test_bytes_that_characters_lack_are_counted() -> None:
    texts = [
        b"a",
        b"\xc3",
        b"\xe4",
        b"\xe4\xb8",
        "\u4e2d".encode(),
        b"\xf0",
        b"\xf0\x9f",
        b"\xf0\x9f\x98",
        b"b\xf0\x9f",
    ]
    texts += ["\U0001f600".encode(), b"\x80", b"\xe4\xb8\x80\xc3"]
    vocabulary = vocabularies.of_tokens(texts)
    surveys = TokenEffects.of(vocabulary)._surveys
    assert PricesInside(vocabulary, surveys)._lacks()[: len(texts)].tolist() == [
        0, 1, 2, 1, 0, 3, 2, 1, 2, 0, 0, 1,
    ]  # fmt: skip
