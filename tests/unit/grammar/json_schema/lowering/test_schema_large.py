"""Schemas whose parts are put off: records of many members, wide alternatives, costly numbers and names."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any

import jsonschema
import pytest

import guided
from guided.grammar.json_schema.keywords.patterns import pattern_language
from guided.grammar.json_schema.numbers.decimals import Decimals
from guided.grammar.json_schema.numbers.ranges import Notation, NumberRange
from guided.grammar.json_schema.satisfiability.cardinality import MANY, count_words
from tests import vocabularies
from tests.amounts import some

BYTES = vocabularies.of_bytes()


def accepts(constraint: guided.Constraint, value: Any) -> bool:
    state = constraint.advance_bytes(constraint.start, json.dumps(value).encode())
    return state != 0 and constraint.is_accepting(state)


def record(rnd: random.Random, size: int) -> dict[str, Any]:
    values = [{"type": "integer"}, {"enum": ["a", "b"]}, {"type": "array", "items": {"type": "null"}}]
    names = [f"n{number}" for number in range(size)]
    properties = {name: rnd.choice(values) for name in names}
    required = rnd.sample(names, rnd.randrange(4))
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": rnd.random() < 0.5,
    }


@pytest.mark.parametrize("order", ["schema", "any"])
def test_records_beyond_what_is_lowered_at_once(order: str) -> None:
    rnd = random.Random(5)
    schema = {"anyOf": [record(rnd, 12) for _ in range(40)]}
    constraint = guided.compile(guided.json_schema(schema, order=order), BYTES)
    validator = jsonschema.Draft202012Validator(schema)
    verdicts = set()
    for _ in range(some(150, 3)):
        names = sorted(rnd.sample(range(13), rnd.randrange(9)))
        value = {f"n{number}": rnd.choice([1, "a", [None], "c"]) for number in names}
        valid = validator.is_valid(value)
        verdicts.add(valid)
        assert accepts(constraint, value) is valid, value
    assert verdicts == {True, False}


def test_one_long_record() -> None:
    schema = record(random.Random(1), 400)
    constraint = guided.compile(guided.json_schema(schema), BYTES)
    text = constraint.shortest_text(constraint.start)
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))


@pytest.mark.parametrize("size", [120, 250, 700])
def test_a_record_whose_prices_were_asked_for_first(size: int) -> None:
    # Prices lower what the kernels have not come to, and so replace the arrays that these hold.
    schema = {"properties": {f"n{i}": {"type": "integer"} for i in range(size)}, "additionalProperties": False}
    constraint = guided.Constraint(guided.json_schema({"type": "object", **schema}), BYTES)
    assert constraint.shortest_text(constraint.start) == b"{}"
    assert constraint.shortest_completion(constraint.start) == 2
    assert accepts(constraint, {f"n{i}": i for i in range(size)})


def test_an_item_that_is_alone_needs_no_other_value() -> None:
    schema = {"type": "array", "uniqueItems": True, "minItems": 1, "items": {"const": 1}}
    constraint = guided.compile(guided.json_schema(schema), BYTES)
    assert accepts(constraint, [1])
    assert not accepts(constraint, [])
    assert not accepts(constraint, [1, 1])


def test_a_repetition_has_infinitely_many_words() -> None:
    for pattern in ("^a+$", "^(ab|c*d)$", "x", "^[0-9]{3}b*$"):
        assert count_words(pattern_language(pattern, "#")) == (MANY, MANY)
    assert count_words(pattern_language("^[ab]{3}c?$", "#")) == (16, 16)


def test_the_bound_on_states_is_one() -> None:
    rnd = random.Random(3)
    steps = [Fraction(n) for n in (1, 3, 7, 10, 12, 20, 25, 100, 300)]
    avoided = [Fraction(n) for n in (2, 3, 4, 5, 9, 10, 40, 1000)] + [Fraction(1, 2)]
    for _ in range(some(300)):
        low = rnd.choice([None, Fraction(rnd.randrange(3000)), Fraction(rnd.randrange(300), rnd.choice([2, 4, 10]))])
        high = rnd.choice([None, Fraction(rnd.randrange(30000), rnd.choice([1, 2, 4, 10]))])
        if low is not None and high is not None and high < low:
            continue
        avoid = frozenset(rnd.choice(avoided) for _ in range(rnd.randrange(3)))
        numbers = NumberRange(low, False, high, False, rnd.choice(steps), avoid, rnd.choice(list(Notation)))
        decimals = Decimals(numbers)
        assert not decimals.exceeds(decimals.bound_on_states()), numbers
