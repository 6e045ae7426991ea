"""Masks under a token budget: what they allow can be ended in time, and far from the end they are the masks without."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

import guided
from guided.automata.lexer.distances import minimum
from guided.constraint.constraint import Constraint
from guided.constraint.engine.completion import Completions
from guided.constraint.engine.machine import ConstraintMachine
from guided.errors import LimitError
from guided.hf.loading import load
from guided.testing import brute_force_mask
from tests import vocabularies
from tests.amounts import Refusals, each, mostly_slow, some

LETTERS = [*vocabularies.SINGLE_BYTES]
MERGED = [
    *vocabularies.OBJECT_PIECES,
    b"\\u",
    b"\\ud83d",
    b"00",
    b"[[",
    b"]]",
    b", ",
    b'\\"',
    b'":"',
]
VOCABULARY = guided.Vocabulary.from_tokens([*LETTERS, *MERGED, None], eos_ids=[len(LETTERS) + len(MERGED)])

SCHEMAS = {
    "optional members cost what they require": {
        "properties": {
            "name": {"type": "string"},
            "n": {"type": "object", "properties": {"name": {"enum": ["long enough to matter"]}}, "required": ["name"]},
        },
        "additionalProperties": False,
        "type": "object",
    },
    "members without a declaration": {"type": "object", "properties": {"name": {"minLength": 3}}, "required": ["name"]},
    "alternatives that share a beginning": {
        "anyOf": [
            {"type": "array", "items": {"type": "integer", "minimum": 100}, "minItems": 2},
            {"type": "array", "items": {"type": "string", "pattern": "^(ab|c){2,}$"}, "maxItems": 1},
        ]
    },
    "recursive": {
        "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 1, "maxItems": 3}},
        "anyOf": [{"$ref": "#/$defs/node"}, {"const": None}],
    },
    "distinct items": {"type": "array", "items": {"enum": ["name", "na", "me"]}, "uniqueItems": True},
    "counted members": {"type": "object", "minProperties": 2, "properties": {"name": {"type": "null"}}},
    "names of a pattern": {
        "type": "object",
        "properties": {"na": {"type": "null"}},
        "patternProperties": {"^(a|me)+-$": {"type": "boolean"}},
        "additionalProperties": False,
    },
    "dates": {"type": "array", "items": {"type": "string", "format": "date-time"}},
    "lengths": {"type": "string", "minLength": 5, "maxLength": 9, "pattern": "^[a-z]*-"},
}  # fmt: skip
"""Where what a token may open costs more than what it closes."""


FORCING = ("counted members",)


def tokens_of(row: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def fits(constraint: guided.Constraint, state: int, budget: int) -> bool:
    """Is some mask under the budget not empty?"""
    try:
        constraint.fill_budget_mask(state, np.zeros(constraint.vocabulary.n_words, np.uint32), budget)
    except guided.LimitError:
        return False
    return True


def check(constraint: guided.Constraint, rnd: random.Random, steps: int, forces: bool) -> int:
    """Along a random text, masks under budgets around those that bind; how many of them forbade something.

    Where a grammar ``forces`` several names, only some tokens are judged, and more tokens may forbid some of them.
    """
    bound = 0
    state = constraint.start
    row, plain = (np.zeros(constraint.vocabulary.n_words, np.uint32) for _ in range(2))
    for _ in range(steps):
        constraint.fill_mask(state, plain)
        assert (plain == brute_force_mask(constraint, state)).all()
        shortest = constraint.shortest_completion(state)
        need = constraint._need(state)
        assert constraint._machine.need(state, 10**6) + 2 >= need, "a far budget is called enough too soon"
        before = np.zeros_like(row)
        for budget in sorted({shortest + 1, shortest + 2, shortest + 5, max(need - 1, shortest + 1), need, need + 40}):
            if budget > 10_000:
                continue
            constraint.fill_budget_mask(state, row, budget)
            assert row.any() and not (row & ~plain).any()
            if not forces:
                assert not (before & ~row).any(), "a larger budget forbids more"
            # Where no price fits only the shortest text's next token is left, and that may be dear by its price.
            before[:] = row if len(tokens_of(row)) > 1 else 0
            allowed = [token for token in tokens_of(row) if token not in constraint.vocabulary.eos_ids]
            for token in allowed if len(allowed) < 40 else rnd.sample(allowed, 40):
                assert fits(constraint, constraint.advance(state, token), budget - 1)
            bound += not (row == plain).all()
            assert budget < need or (row == plain).all()
        choices = [token for token in tokens_of(plain) if token not in constraint.vocabulary.eos_ids]
        if not choices:
            break
        state = constraint.advance(state, rnd.choice(choices))
    return bound


@pytest.mark.parametrize("name", each(SCHEMAS, 2))
def test_what_a_budget_allows_ends_in_time(name: str) -> None:
    rnd = random.Random(5)
    constraint = guided.compile(guided.json_schema(SCHEMAS[name]), VOCABULARY)
    assert sum(check(constraint, rnd, 12, name in FORCING) for _ in range(some(6, 9)))


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name not in ("distinct items", "counted members")])
def test_a_budget_far_from_the_end_asks_for_no_price(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = guided.compile(guided.json_schema(SCHEMAS[name]), VOCABULARY)

    def fail(*_: object) -> None:
        raise AssertionError("a budget that cannot bind was looked at closely")

    monkeypatch.setattr("guided.constraint.engine.completion.Completions.fill", fail)
    row, plain = (np.zeros(VOCABULARY.n_words, np.uint32) for _ in range(2))
    rnd = random.Random(3)
    state = constraint.start
    for left in range(400, 370, -1):
        constraint.fill_budget_mask(state, row, left)
        constraint.fill_mask(state, plain)
        assert (row == plain).all()
        choices = [token for token in tokens_of(plain) if token not in VOCABULARY.eos_ids]
        if not choices:
            break
        state = constraint.advance(state, rnd.choice(choices))


def test_an_escape_in_a_name_is_allowed_where_there_is_time() -> None:
    """Names of some length had no measured way to their end, so no budget allowed their escapes."""
    names = {f"a rather long name of member number {i}": {"type": "null"} for i in range(40)}
    constraint = guided.compile(guided.json_schema({"type": "object", "properties": names}), VOCABULARY)
    state = constraint.advance_bytes(constraint.start, b'{"a rather')
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    constraint.fill_budget_mask(state, row, 4096)
    assert ord("\\") in tokens_of(row)


def price_of(machine: ConstraintMachine, state: int) -> tuple[int, bool]:
    """What is enough to the end of a text, thread by thread; and is that what masks count, or less than they do?"""
    prices = []
    exact = True
    for inside, continuation, obligation in machine.threads(state):
        left = minimum(machine.states, inside) if inside else 0
        exact = exact and not machine.states.arrays.decode[inside] and not obligation
        prices.append(left + machine.token_costs.of(continuation))
    return min(prices), exact


@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_under_a_limit_are_those_of_every_token_priced(name: str) -> None:
    """Rows and lists that are kept with prices, against each token by itself."""
    rnd = random.Random(8)
    constraint = guided.compile(guided.json_schema(SCHEMAS[name]), VOCABULARY)
    machine = getattr(constraint._machine, "inner", constraint._machine)
    machine.begin_prices()
    judged = 0
    for _ in range(5):
        state = machine.start
        for _ in range(12):
            tokens = [token for token in tokens_of(machine.mask(state).copy()) if token not in VOCABULARY.eos_ids]
            if not tokens:
                break
            priced = {token: price_of(machine, machine.advance_token(state, token)) for token in tokens}
            for limit in sorted({price + more for price, _ in priced.values() for more in (-1, 0, 3)} - {-1})[:12]:
                near, need, _ = machine.near(state, limit)
                allowed = set(tokens_of(near.copy())) if near is not None else set()
                assert allowed <= {token for token, (price, _) in priced.items() if price <= limit}
                assert allowed >= {token for token, (price, exact) in priced.items() if exact and price <= limit}
                assert need > limit or allowed == set(tokens)
                judged += len(allowed)
            state = machine.advance_token(state, rnd.choice(tokens))
    assert judged > 200


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name not in ("distinct items", *FORCING)])
def test_a_budget_that_binds_follows_no_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mask near the end searched for the shortest text, byte by byte, though prices leave a token to take."""
    rnd = random.Random(4)
    constraint = guided.compile(guided.json_schema(SCHEMAS[name]), VOCABULARY)
    machine = getattr(constraint._machine, "inner", constraint._machine)
    machine.begin_prices()
    own = getattr(constraint._machine, "split", lambda state: (state, None))

    def fail(*_: object) -> None:
        raise AssertionError("the text to the end was searched for")

    monkeypatch.setattr(Completions, "fill", fail)
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    bound = 0
    for slack in range(8):
        state = constraint.start
        left = price_of(machine, state)[0] + 2 + slack
        # A name in an object that holds it takes a token more.
        while left > price_of(machine, own(state)[0])[0] + 2:
            constraint.fill_budget_mask(state, row, left)
            bound += left < constraint._needs[state]
            choices = [token for token in tokens_of(row) if token not in VOCABULARY.eos_ids]
            if not choices:
                break
            state, left = constraint.advance(state, rnd.choice(choices)), left - 1
    assert bound


def _differences(grammar: guided.Grammar, vocabulary: guided.Vocabulary, ids: list[int], orders: int) -> list[object]:
    """Places of a text and budgets whose masks, asked in some order, are not those of a constraint asked alone."""

    def along(constraint: Constraint) -> list[int]:
        states = [constraint.start]
        for token in ids:
            states.append(constraint.advance(states[-1], token))
        assert states[-1]
        return states

    def mask(constraint: Constraint, state: int, budget: int) -> bytes:
        row = np.zeros(vocabulary.n_words, np.uint32)
        with refusals.trial(LimitError):
            constraint.fill_budget_mask(state, row, budget)
        return row.tobytes()

    rnd = random.Random(0)
    asked = [(place, budget) for place in range(len(ids) + 1) for budget in range(1, 30)]
    asked = sorted(rnd.sample(asked, min(len(asked), 400)))
    alone = {}
    # Budgets that no text keeps.
    with Refusals(most=0.3) as refusals:
        for place, budget in asked:
            fresh = Constraint(grammar, vocabulary)
            alone[place, budget] = mask(fresh, along(fresh)[place], budget)
    assert len(set(alone.values())) > 10
    found: list[object] = []
    for _ in range(orders):
        rnd.shuffle(asked)
        constraint = Constraint(grammar, vocabulary)
        states = along(constraint)
        found += [at for at in asked if mask(constraint, states[at[0]], at[1]) != alone[at]]
    return found


@pytest.mark.parametrize("name", each(["record", "list", "pattern"], 2))
def test_masks_do_not_depend_on_what_was_asked_before(name: str) -> None:
    """Of a state and a budget, asked in any order, beside a constraint that was asked nothing else."""
    loaded = load("nano", device="cpu")
    person = {name: {"type": kind} for name, kind in (("name", "string"), ("age", "integer"), ("city", "string"))}
    grammar, text = {
        "record": (
            guided.json_schema({"properties": person, "required": [*person], "additionalProperties": False}),
            '{"name": "Anna S", "age": 20, "city": "Rome"}',
        ),
        "list": (
            guided.json_schema({"items": {"enum": ["x", "long words here", 12]}, "minItems": 2}),
            '["x", 12, "x"]',
        ),
        "pattern": (guided.regex(r"(foo|ba+r)*([0-9]{2,5}-)?x{3}"), "foobaar123-xxx"),
    }[name]
    ids = loaded.tokenizer.encode(text, add_special_tokens=False)
    assert not _differences(grammar, loaded.vocabulary, ids, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_slow(["words", "record"], 1))
def test_masks_of_a_large_vocabulary_do_not_depend_on_what_was_asked_before(name: str, data: Path) -> None:
    """Long names there are single tokens or many, so what is left of a name takes fewer tokens than bytes."""
    tokenizer = AutoTokenizer.from_pretrained(data / "tokenizers" / "llama3")
    stay = {"hotel_name": "string", "room_type": "string", "stay_duration": "integer", "view": "string"}
    schema, text = {
        "record": (
            {
                "properties": {name: {"type": kind} for name, kind in stay.items()},
                "required": [*stay][:3],
                "additionalProperties": False,
            },
            '{"hotel_name": "Grand", "room_type": "single", "stay_duration": 4, "view": "sea"}',
        ),
        "words": (
            {
                "properties": {"dots-telemetry:telemetry": {"items": {"enum": ["pre-mitigation", "mitigation\\\n"]}}},
                "required": ["dots-telemetry:telemetry"],
                "additionalProperties": False,
            },
            '{"dots-telemetry:telemetry": ["mitigation\\\\\\n", "pre-mitigation"]}',
        ),
    }[name]
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert not _differences(guided.json_schema(schema), guided.Vocabulary.from_tokenizer(tokenizer), ids, 3)
