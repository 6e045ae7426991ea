"""Masks under a token budget keep what they promise."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import numpy as np
import pytest

import guided
from guided.automata.rules.costs import RuleCosts
from guided.constraint.distinct.machine import DistinctMachine
from guided.constraint.effects.token_effects import TokenEffects
from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.engine.requests import RequestBuffer
from guided.constraint.engine.token_costs import TokenCosts
from guided.grammar.ir import Choice, Grammar, Repetition, Rule, Sequence, Terminal
from guided.grammar.regular.expr import literal
from guided.kernels.data.layout import FINISHED
from guided.kernels.data.requests import MEASURE_STATE
from tests import vocabularies


def test_a_longer_text_of_fewer_tokens_is_relied_on_and_kept() -> None:
    tokens = [*vocabularies.SINGLE_BYTES, b"abcdef", None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[257])
    letter, three, six = (Terminal(literal(text)) for text in (b"x", b"qzw", b"abcdef"))
    body = Sequence((Repetition(letter), Choice((three, six))))
    constraint = guided.compile(Grammar((Rule("start", body),), 0), vocabulary)
    assert constraint.shortest_completion(constraint.start) == 3
    row = np.zeros(vocabulary.n_words, np.uint32)
    constraint.fill_budget_mask(constraint.start, row, 4)
    assert row[ord("x") >> 5] >> (ord("x") & 31) & 1
    state = constraint.advance(constraint.start, ord("x"))
    for budget, token in ((3, ord("x")), (2, 256)):
        constraint.fill_budget_mask(state, row, budget)
        assert row[token >> 5] >> (token & 31) & 1
        state = constraint.advance(state, token)
    assert constraint.is_accepting(state)


def test_an_end_that_was_found_by_tokens_is_kept() -> None:
    """The shortest text cannot be spelled; behind the first token of another end, a shorter text takes more tokens."""
    vocabulary = guided.Vocabulary.from_tokens([b"L", b"a", b"bbbbbb", None], eos_ids=[3])
    constraint = guided.compile(guided.choice(["zz", "Laaa", "Lbbbbbb"]), vocabulary)
    assert constraint.shortest_completion(constraint.start) == 2
    row = np.zeros(vocabulary.n_words, np.uint32)
    constraint.fill_budget_mask(constraint.start, row, 3)
    assert row.tolist() == [1]
    state = constraint.advance(constraint.start, 0)
    assert constraint.shortest_completion(state) == 1
    constraint.fill_budget_mask(state, row, 2)
    assert row.tolist() == [4]
    constraint.fill_budget_mask(state, row, 4)
    assert row.tolist() == [6]


def test_budgets_are_kept_by_vocabularies_with_gaps() -> None:
    """Whatever allowed tokens are taken, the text ends within the budget."""
    rnd = random.Random(11)
    kept = 0
    for _ in range(60):
        texts = sorted({"".join(rnd.choice("ab") for _ in range(rnd.randint(1, 7))) for _ in range(rnd.randint(2, 6))})
        pieces = sorted(
            {text[i : i + rnd.randint(1, 4)] for text in texts for i in range(len(text)) if rnd.random() < 0.6}
        )
        tokens = [piece.encode() for piece in pieces]
        vocabulary = vocabularies.of_tokens(tokens)
        if not any(re.fullmatch(f"(?:{'|'.join(pieces)})*", text) for text in texts):
            with pytest.raises(guided.VocabularyError):
                guided.compile(guided.choice(texts), vocabulary)
            continue
        constraint = guided.compile(guided.choice(texts), vocabulary)
        row = np.zeros(vocabulary.n_words, np.uint32)
        for _ in range(5):
            state, text = constraint.start, b""
            for left in range(constraint.shortest_completion(state) + rnd.randint(1, 2), 0, -1):
                constraint.fill_budget_mask(state, row, left)
                allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
                token = rnd.choice(allowed)
                if token == len(tokens):
                    break
                state, text = constraint.advance(state, token), text + tokens[token]
            assert constraint.is_accepting(state) and text.decode() in texts
            kept += 1
    assert kept > 50


def test_states_of_a_bounded_text_are_asked_about_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near the budget each length of a text is a state; each one asked about by itself, a mask began 11 times here.

    One of the 7 is for the edges of a state that other tests may have made known.
    """
    rng = random.Random(5)
    words = sorted({bytes(rng.choices(b"abcdefgh", k=rng.randint(2, 40))) for _ in range(200)})
    tokens = [*vocabularies.SINGLE_BYTES, *words, None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])
    constraint = guided.compile(guided.json_schema({"type": "string", "minLength": 50, "maxLength": 3000}), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    begun: list[RequestBuffer] = []
    measured: list[int] = []
    take = RequestBuffer.take

    def count(requests: RequestBuffer) -> dict[int, list[list[int]]]:
        asked = take(requests)
        if requests is constraint._machine._requests:
            begun.append(requests)
        measured.extend(len(states) for kind, states in asked.items() if kind == MEASURE_STATE)
        return asked

    monkeypatch.setattr(RequestBuffer, "take", count)
    state = constraint.advance(constraint.start, ord('"'))
    constraint.fill_budget_mask(state, row, 60)
    assert 0 < len(begun) <= 7
    assert len(measured) == 1 and measured[0] > 40
    left = 60
    while state != FINISHED:
        constraint.fill_budget_mask(state, row, left)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        state = constraint.advance(state, int(rng.choice(allowed.tolist())))
        left -= 1
    assert left >= 0


NULLS = dict.fromkeys([f"member {number}" for number in range(9)])
RECORD = {
    "type": "object",
    "properties": {name: {"type": "null"} for name in NULLS},
    "required": [*NULLS][4:],
    "additionalProperties": False,
}
PRICED: list[tuple[dict[str, Any], Any, int]] = [
    (RECORD, NULLS, 3),
    ({"type": "array", "items": {"type": "array", "items": RECORD}}, [[NULLS, NULLS], [NULLS]], 4),
]


@pytest.mark.parametrize(("schema", "value", "most"), PRICED)
def test_what_follows_is_priced_at_once(
    schema: dict[str, Any], value: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every place behind a member was asked for by itself, which took most of the time of masks under far budgets."""
    vocabulary = guided.Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES, None], eos_ids=[256])
    constraint = guided.Constraint(guided.json_schema(schema), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    priced: list[int] = []
    price_nodes = TokenCosts.price_nodes

    def count(costs: TokenCosts, asked: list[list[int]]) -> None:
        priced.append(state)
        price_nodes(costs, asked)

    monkeypatch.setattr(TokenCosts, "price_nodes", count)
    state = constraint.start
    for byte in json.dumps(value).encode():
        constraint.fill_budget_mask(state, row, 500)
        state = constraint.advance(state, byte)
    assert state
    assert 0 < len(priced) <= most


SEARCHED: list[tuple[Grammar, Any]] = [
    (guided.json_schema({"type": "array", "items": {"type": "array", "items": RECORD}}), [[NULLS, NULLS], []]),
    (
        guided.json_schema({"$defs": {"n": {"properties": {"a": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}),
        {"a": {}},
    ),
    (
        guided.json_schema({"properties": {"a": {"minItems": 3, "maxItems": 9}}, "minProperties": 2}),
        {"b": 1, "a": [7] * 3},
    ),
    (guided.gbnf('root ::= "[" (item ("," item)* | "-")? "]"\nitem ::= "x"+ "y"? | root'), ["xx"]),
]


@pytest.mark.parametrize(("grammar", "value"), SEARCHED)
def test_kernels_price_nodes_as_searches_do(grammar: Grammar, value: Any) -> None:
    """Of what is made kernels price all that a node leads to; Python searches from each node by itself."""
    vocabulary = guided.Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES, b'":', b'{"', None], eos_ids=[258])
    constraint = guided.Constraint(grammar, vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    state = constraint.start
    for byte in json.dumps(value, separators=(",", ":")).replace('"xx"', "xx").encode():
        constraint.fill_budget_mask(state, row, 500)
        state = constraint.advance_bytes(state, bytes((byte,)))
        assert state
    machine = constraint._machine
    machine = machine.inner if isinstance(machine, DistinctMachine) else machine
    assert isinstance(machine, ConstraintMachine)
    searched = RuleCosts(machine.graph, machine.token_costs.tokens_of, machine.token_costs.tokens_of.each)
    priced = np.flatnonzero(machine.tables.node_cost[: machine.graph.n_nodes] >= 0).tolist()
    assert len(priced) > 6
    assert [searched.node(node) for node in priced] == machine.tables.node_cost[priced].tolist()


BOUNDED = (
    ({"type": "string", "maxLength": 5}, True),
    ({"type": "string", "minLength": 1, "maxLength": 3}, True),
    ({"type": "string", "minLength": 3, "maxLength": 6}, True),
    ({"type": "string", "pattern": "^[^x]{0,12}$"}, True),
    ({"type": "string", "pattern": "^([a-h]{2}){1,9}$"}, False),
)
"""And whether it is like a text without a bound: of single characters, with all that it must have."""


@pytest.mark.parametrize(("schema", "is_like"), BOUNDED, ids=str)
def test_bounded_texts_are_as_far_from_the_end_as_others(
    schema: dict[str, Any], is_like: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tokens need to the end is taken from the text without its bound, and the same as if it were walked."""
    rng = random.Random(5)
    letters = ["a", "b", "c", "d", "\u00e9", "\u20ac", "\\n", "\\u00e9", '\\"']
    words = {"".join(rng.choices(letters, k=rng.randint(2, 7))).encode() for _ in range(3000)}
    cut = {word[:-1] for word in words} | {word + b'"' for word in list(words)[::5]}
    asked: list[bool] = []
    derived = TokenEffects._as_far

    def note(effects: TokenEffects, state: int) -> int:
        asked.append((like := derived(effects, state)) != state)
        return like

    masks = []
    # One more token, and so nothing in common with what was known of the other vocabulary.
    for more, like in ((b"\xff\xff", note), (b"\xff\xff\xff", lambda _, state: state)):
        monkeypatch.setattr(TokenEffects, "_as_far", like)
        tokens = [*vocabularies.SINGLE_BYTES, *sorted(words | cut), more, None]
        vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])
        constraint = guided.compile(guided.json_schema(schema), vocabulary)
        found = []
        for text in (b'"', b'"a', b'"ab', b'"\xc3', b'"a\\', b'"a\\u00'):
            state = constraint.advance_bytes(constraint.start, text)
            least = constraint.shortest_completion(state) + 1 if state else 12
            for budget in range(least, 12):
                row = np.zeros(vocabulary.n_words, np.uint32)
                constraint.fill_budget_mask(state, row, budget)
                found.append(row)
        masks.append(np.array(found))
    assert np.array_equal(*masks) and len(masks[0]) > 20
    assert any(asked) is is_like


def test_an_ample_budget_forbids_nothing() -> None:
    vocabulary = guided.Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES, b"abc", None], eos_ids=[257])
    constraint = guided.compile(guided.regex('"(abc|[x-z]{2,5})*"[0-9]{3}'), vocabulary)
    plain, bounded = np.zeros((2, vocabulary.n_words), np.uint32)
    state, tried = constraint.start, 0
    assert not constraint.is_ample(state, 100)
    for byte in b'"abcxy"12':
        constraint.fill_mask(state, plain)
        constraint.fill_budget_mask(state, bounded, 100)
        for budget in range(constraint.shortest_completion(state) + 1, 20):
            constraint.fill_budget_mask(state, bounded, budget)
            if constraint.is_ample(state, budget):
                tried += 1
                assert (plain == bounded).all()
        assert not constraint.is_ample(state, constraint.shortest_completion(state))
        state = constraint.advance(state, byte)
    assert tried > 20
