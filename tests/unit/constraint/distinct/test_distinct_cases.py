"""Names and items that must differ, case by case: which texts may be begun, what is refused when it is compiled."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.json_values import exact_number, read_prefix
from guided.constraint.distinct.machine import DistinctMachine
from guided.constraint.distinct.used_keys import UsedKeys
from guided.constraint.engine.machine import ConstraintMachine
from guided.grammar.embed import embedded_rules
from guided.grammar.ir import Choice, Grammar, Reference, Rule
from guided.testing import check_constraint
from tests.amounts import crossed, each
from tests.laws.test_constraint_laws import SMALL

UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}
SHORT = {**UNIQUE, "items": {"type": "string", "maxLength": 1}}
FORCED = {
    **UNIQUE,
    "items": {
        "type": "object",
        "properties": {"id": {"enum": [1, 2]}, "kind": {"const": "a"}},
        "required": ["id", "kind"],
        "additionalProperties": False,
    },
}
MIXED = {
    "anyOf": [{**UNIQUE, "items": {"type": "boolean"}}, {"type": "array", "items": {"const": True}, "maxItems": 3}]
}


def alive(schema: Any, text: str, **options: Any) -> bool:
    constraint = guided.compile(guided.json_schema(schema, spelling="any", **options), SMALL)
    return constraint.advance_bytes(constraint.start, text.encode()) != 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1,1", True),  # may become 12
        ("[1,1,", False),
        ("[1,1]", False),
        ("[1,1.0", True),
        ("[1,1.0]", False),
        ("[1,10e-1]", False),
        ("[1,10e-2]", True),
        ("[0.1,1e-1]", False),
        ("[0,-0]", False),
        ("[0,-0.0E7", False),  # zero under every exponent
        ("[0,-0.0", True),
        ("[1e400,10e399]", False),
        ("[1e400,1e401]", True),
        ("[1e99999999999999999999,1e99999999999999999998]", True),
        ("[1e99999999999999999999,10e99999999999999999998]", False),
        ("[" + "1" * 5000 + "," + "1" * 5000 + "]", False),
        ('["a","a"', False),
        ('["a","a', True),
        ('["a","\\u0061"', False),
        ('["\\/","/"', False),
        ('["\\n","\\u000A"', False),
        ('["\U0001f600","\\uD83D\\ude00"', False),
        ('["\U0001f600","\\uD83D\\ude01"', True),
        ('["é","\\u00e9"', False),
        ('["1",1]', True),
        ("[true,tru", True),  # nothing else begins so, but this is where it is first seen
        ("[null,null", False),
        ("[[],[]", False),
        ("[[1],[1]", False),
        ("[[1],[1,", True),
        ("[[1],[[1]]]", True),
        ("[[1,1]]", True),  # only the outer items must differ
        ('[{"a":1,"b":[2]},{"b":[2.0],"a":1e0}', False),
        ('[{"a":1,"b":2},{"b":2', True),
        ('[{"a":1},{"a":1', True),
        ('[{"a":1},{"a":1}', False),
        ('[{"a":1},{"a":1,"b":2}]', True),
        ("[{},{", True),
        ("[{},{}", False),
        ('[{"a":1,"a"', False),
    ],
)
def test_items_are_compared_by_value(text: str, expected: bool) -> None:
    if text == "[true,tru":
        expected = False  # only true could follow
    assert alive(UNIQUE, text) is expected
    assert alive(UNIQUE, text, whitespace="compact") is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1,"a', True),
        ('{"a":1,"a"', False),
        ('{"a":1,"\\u0061"', False),
        ('{"a":1,"b":{"a":1,"b":[{"a":2}', True),
        ('{"a":{"a":1},"a"', False),
        ('{"a":{"b":1,"b"', False),
        ('{"":1,"', True),
        ('{"":1,""', False),
        ('{"known":1,"known"', False),
        ('{"k":1,"known":1,"k"', False),
        ('[{"a":1},{"a":1}]', True),
        ('{"\U0001f600":1,"\\ud83d\\uDE00"', False),
        ('{"a\\"b":1,"a\\u0022b"', False),
    ],
)
def test_undeclared_names_come_once(text: str, expected: bool) -> None:
    schema = {"properties": {"known": True}}
    for order in ("schema", "any"):
        assert alive(schema, text, order=order) is expected


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (SHORT, '["a","a', False),
        (SHORT, '["a","\\u006', True),
        (SHORT, '["a","\\u0061', False),
        (FORCED, '[{"id":1,"kind":"a"},{"id":1', True),  # may become 1.0, and then it is too late
        (FORCED, '[{"id":1,"kind":"a"},{"id":2,"kind":"a"}', True),
        (FORCED, '[{"id":1,"kind":"a"},{"id":2,"kind":"a"},', False),
        ({**UNIQUE, "items": {"type": "integer", "minimum": 0, "maximum": 1}}, "[0,1", True),
        ({**UNIQUE, "items": {"type": "integer", "minimum": 0, "maximum": 1}}, "[0,1,", False),
        ({**UNIQUE, "items": {"type": "boolean"}}, "[true,f", True),
        ({**UNIQUE, "items": {"type": "boolean"}}, "[true,t", False),
        ({"propertyNames": {"maxLength": 1}}, '{"a":1,"a', False),
        ({"propertyNames": {"maxLength": 1}}, '{"a":1,"b', True),
        ({"patternProperties": {"^(a|b.*)$": True}, "additionalProperties": False}, '{"a":1,"a', False),
        ({"patternProperties": {"^(a|b.*)$": True}, "additionalProperties": False}, '{"a":1,"b":1,"b', True),
        (MIXED, "[true,true", True),
        (MIXED, "[true,false", True),
        (MIXED, "[true,true,false", False),
        (MIXED, "[true,true,t", True),
        (MIXED, "[false,f", False),
    ],
)
def test_no_way_on_is_seen_at_once(schema: Any, text: str, expected: bool) -> None:
    if schema is FORCED and text.endswith('"id":1'):
        expected = False
    assert alive(schema, text, whitespace="compact") is expected


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({**UNIQUE, "items": {"enum": [1, 2, 3]}, "minItems": 4}, guided.UnsatisfiableError),
        ({**UNIQUE, "items": {"enum": [1, 2, 1.0]}, "minItems": 3}, guided.UnsatisfiableError),
        ({**UNIQUE, "items": {"type": ["boolean", "null"]}, "minItems": 4}, guided.UnsatisfiableError),
        (
            {**UNIQUE, "items": {"type": "integer", "minimum": 1, "maximum": 9}, "minItems": 10},
            guided.UnsatisfiableError,
        ),
        ({**UNIQUE, "items": {"type": "string", "pattern": "^[0-9]{2}$"}, "minItems": 101}, guided.UnsatisfiableError),
        ({**UNIQUE, "items": {**UNIQUE, "items": {"enum": [1, 2]}}, "minItems": 6}, guided.UnsatisfiableError),
        ({**FORCED, "minItems": 3}, guided.UnsatisfiableError),
        ({**UNIQUE, "prefixItems": [{}, {"const": "a"}], "minItems": 2}, guided.UnsupportedError),
        ({"not": UNIQUE}, guided.UnsupportedError),
        ({"minProperties": 200, "propertyNames": {"pattern": "^[0-9]{2}$"}}, guided.UnsupportedError),
    ],
)
def test_too_few_values_are_refused(schema: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Constraint(guided.json_schema(schema), SMALL)


@pytest.mark.parametrize(
    ("schema", "least"),
    each(
        [
            ({**UNIQUE, "items": {"enum": [1, 2, 3]}, "minItems": 3}, b"[1,2,3]"),
            ({**UNIQUE, "minItems": 12}, None),
            ({**UNIQUE, "items": {"type": "string"}, "minItems": 4}, None),
            pytest.param({**UNIQUE, "items": {"type": "string"}, "minItems": 12}, None, marks=pytest.mark.slow),
            ({**UNIQUE, "items": {"type": "integer", "minimum": 0, "maximum": 15}, "minItems": 16}, None),
            ({**UNIQUE, "items": {**UNIQUE, "minItems": 2}, "minItems": 3}, None),
            ({"type": "object", "minProperties": 4}, None),
            ({**FORCED, "minItems": 2}, None),
        ],
        2,
    ),
)
def test_completions_repeat_nothing(schema: Any, least: bytes | None) -> None:
    constraint = Constraint(guided.json_schema(schema, whitespace="compact"), SMALL)
    state, text = constraint.start, b""
    row = np.zeros(SMALL.n_words, np.uint32)
    for left in range(constraint.shortest_completion(state), 0, -1):
        constraint.fill_budget_mask(state, row, left + 1)
        token = int(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))[0])
        text += SMALL.token_bytes(token) or b""
        state = constraint.advance(state, token)
        assert state and constraint.shortest_completion(state) <= left - 1
    assert constraint.is_accepting(state)
    value = json.loads(text)
    shown = [json.dumps(item, sort_keys=True) for item in (value if isinstance(value, list) else list(value))]
    assert len(set(shown)) == len(shown) >= schema.get("minItems", schema.get("minProperties"))
    assert least is None or len(text) == len(least)


SCHEMAS = {
    "names": {"properties": {"a": {"type": "integer"}, "ab": True}, "required": ["ab"]},
    "short names": {"propertyNames": {"maxLength": 1}, "additionalProperties": {"type": "boolean"}},
    "items": UNIQUE,
    "short items": SHORT,
    "forced": {**FORCED, "minItems": 1},
    "mixed": MIXED,
    "mixed lengths": {
        "anyOf": [
            {**UNIQUE, "items": {"type": "boolean"}},
            {"type": "array", "items": {"const": True}, "minItems": 3, "maxItems": 3},
        ]
    },
    "nested": {**UNIQUE, "items": {**UNIQUE, "items": {"enum": ["a", "b", 1]}}, "minItems": 2},
    "bounded": {**UNIQUE, "items": {"type": "integer", "minimum": 8, "maximum": 12}, "minItems": 4},
}


@pytest.mark.parametrize(
    ("options", "name"), crossed([{"spelling": "any"}, {"whitespace": "compact"}], SCHEMAS, share=6)
)
def test_contracts(name: str, options: dict[str, str]) -> None:
    constraint = guided.compile(guided.json_schema(SCHEMAS[name], **options), SMALL)
    assert isinstance(constraint._machine, DistinctMachine)
    check_constraint(constraint, walks=5, length=20)


def test_grammars_without_marks_have_no_checker() -> None:
    closed = {"properties": {"a": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": False}
    for grammar in (guided.json_schema({**closed, "type": "object"}), guided.regex("a+"), guided.choice(["a"])):
        assert isinstance(Constraint(grammar, SMALL)._machine, ConstraintMachine)


def test_text_beside_json_may_repeat() -> None:
    """Where a grammar allows other text at the same place, only the reading as JSON is given up."""
    record = guided.json_schema({"type": "object"}, whitespace="compact")
    free = guided.regex(r"[^x]{0,40}")
    inner = embedded_rules(record, 1)
    either = Rule("either", Choice((Reference(1 + record.start), Reference(1 + len(inner) + free.start))))
    grammar = Grammar((either, *inner, *embedded_rules(free, 1 + len(inner))), 0)
    constraint = Constraint(grammar, SMALL)

    def accepts(text: bytes) -> bool:
        return constraint.is_accepting(constraint.advance_bytes(constraint.start, text))

    assert accepts(b'{"a":1,"a":2} \\uzz -e')
    assert accepts(b'{"a":1,"ax":2}')
    assert constraint.advance_bytes(constraint.start, b'{"a":1,"ax":2,"a"') == 0
    assert constraint.advance_bytes(constraint.start, b'{"a":1,"a":"x') == 0
    check_constraint(constraint, walks=4, length=15, pickled=False)


def test_an_array_leaves_no_trace() -> None:
    constraint = guided.compile(guided.json_schema({"type": "array", "items": UNIQUE}), SMALL)
    after = [constraint.advance_bytes(constraint.start, text) for text in (b"[[1,2]", b"[[1,2],[3]", b'[[],["a"]')]
    assert after[1] == after[2] and after[0]


def test_explanations() -> None:
    names = guided.compile(guided.json_schema({}), SMALL)
    assert "repeat the name 'a'" in names.explain(names.advance_bytes(names.start, b'{"a":1,"a'), ord('"'))
    items = guided.compile(guided.json_schema(SHORT), SMALL)
    assert "no way on" in items.explain(items.advance_bytes(items.start, b'["a","'), ord("a"))
    items = guided.compile(guided.json_schema(UNIQUE), SMALL)
    assert "repeat an item" in items.explain(items.advance_bytes(items.start, b"[[],["), ord("]"))


def test_ten_thousand_names() -> None:
    constraint = guided.compile(guided.json_schema({"additionalProperties": {"type": "null"}}), SMALL)
    names = [f"key{i * 7919 % 10_007}" for i in range(10_000)]
    state = constraint.start
    sizes = []
    for i, name in enumerate(names):
        state = constraint.advance_bytes(state, f'{"," if i else "{"}"{name}":null'.encode())
        if i in (0, len(names) - 1):
            row = np.zeros(SMALL.n_words, np.uint32)
            constraint.fill_mask(state, row)
            sizes.append(row.copy())
    assert state and (sizes[0] == sizes[1]).all()
    assert constraint.advance_bytes(state, b',"key77"') == 0
    assert constraint.is_accepting(constraint.advance_bytes(state, b',"key":null}'))


def test_deep_nesting() -> None:
    constraint = guided.compile(guided.json_schema({}), SMALL)
    state = constraint.advance_bytes(constraint.start, b'{"a":' * 2000 + b"1" + b"}" * 2000)
    assert constraint.is_accepting(state)
    items = guided.compile(guided.json_schema(UNIQUE), SMALL)
    deep = b"[" * 1000 + b"]" * 1000
    state = items.advance_bytes(items.start, b"[" + deep + b"," + deep[:-1])
    assert state
    assert items.advance_bytes(state, b"]") == 0
    assert items.is_accepting(items.advance_bytes(state, b",1]]"))


def test_numbers() -> None:
    assert exact_number(b"-12.50e3") == exact_number(b"-125E+2") == (True, "125", 2)
    assert exact_number(b"-0.00e9") == exact_number(b"0")
    prefix = read_prefix(b"1.50")
    assert prefix.may_become(exact_number(b"1.5"))
    assert prefix.may_become(exact_number(b"1.5078"))
    assert prefix.may_become(exact_number(b"15"))  # 1.50e1
    assert not prefix.may_become(exact_number(b"1.6"))
    assert not read_prefix(b"1e5").may_become(exact_number(b"1"))
    assert read_prefix(b"1e5").may_become(exact_number(b"1e51"))
    assert not read_prefix(b"1e-").may_become(exact_number(b"1e51"))


def test_sets_grow_and_keep_what_they_were() -> None:
    rnd = random.Random(3)
    for _ in range(60):
        history: list[tuple[UsedKeys, frozenset[bytes]]] = [(UsedKeys(), frozenset())]
        for _ in range(50):
            used, twin = rnd.choice(history[-5:])
            key = bytes(rnd.choice(b"ab\xff\x00") for _ in range(rnd.randint(0, 4)))
            assert (key in used) == (key in twin)
            if key not in twin:
                history.append((used.with_key(key), twin | {key}))
                assert history[-1][0] is used.with_key(key)
        for used, twin in history:
            assert used.size == len(twin)
            for prefix in (b"", b"a", b"ab", b"\xff", b"\x00a"):
                under = sorted(key for key in twin if key.startswith(prefix))
                assert list(used.beginning(prefix)) == under
                assert used.begins(prefix) == bool(under)
                assert used.next_bytes(prefix) == {key[len(prefix)] for key in under if len(key) > len(prefix)}
