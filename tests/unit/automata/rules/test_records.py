"""Records of a JSON Schema, and the rules that all have in common, are the language of their rules written out."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import guided
from guided.automata.lexer.names import state_excluding, states_of_names
from guided.automata.lexer.states import StateTable
from guided.automata.rules.analysis import analyse
from guided.automata.rules.graph import RuleGraph
from guided.automata.rules.initial_arrays import FEW_RULES
from guided.automata.rules.records import GROUP
from guided.grammar.ir import Common, DeferredMembers, Grammar, Sequence
from guided.grammar.regular.expr import concat, difference, json_string, literal, words
from guided.grammar.rules import every_rule
from tests import vocabularies
from tests.amounts import each, mostly_slow
from tests.twin.masks import same_masks

BYTES = vocabularies.of_bytes()
NAMES = ["a", "", 'q"uote', "back\\slash", "é", "日本", "tab\t", "a/b~c", "aa", "ab", "x" * 300, "n0", "n1", "n2"]
VALUES: list[dict[str, Any]] = [
    {},
    {"type": "string"},
    {"type": ["boolean", "null"]},
    {"type": ["integer", "array"]},
    {"enum": ["a", 1, None]},
    {"type": "object"},
    {"type": "array", "items": {"type": "object", "properties": {"a": {}}, "required": ["a"]}},
]
OTHERS: list[dict[str, Any]] = [
    {},
    {"additionalProperties": False},
    {"additionalProperties": {"type": "integer"}},
    {"patternProperties": {"^n": {"type": "null"}, "^z": {}}, "additionalProperties": {"type": "string"}},
]


def written_out(grammar: Grammar) -> Grammar:
    """The same rules, of which nothing is known beforehand, with every member made."""
    return Grammar(every_rule(grammar.rules), grammar.start)


def value(rnd: random.Random, depth: int = 0) -> Any:
    kind = rnd.randrange(7 if depth < 3 else 5)
    if kind < 5:
        return rnd.choice(["a", "", "é\\n", 1, -20, 1.5, None, True])
    if kind == 5:
        return [value(rnd, depth + 1) for _ in range(rnd.randrange(3))]
    return {name: value(rnd, depth + 1) for name in rnd.sample(NAMES, rnd.randrange(4))}


@pytest.mark.parametrize("options", [{}, {"whitespace": "compact"}, {"whitespace": " "}], ids=["any", "none", "one"])
@pytest.mark.parametrize("seed", mostly_slow(range(10), 3))
def test_records_are_their_rules_written_out(seed: int, options: dict[str, str]) -> None:
    rnd = random.Random(seed)
    names = rnd.sample(NAMES, rnd.choice([0, 1, 3, len(NAMES)])) + [
        f"m{i}" for i in range(rnd.choice([0, 2, 2 * GROUP]))
    ]
    schema = {
        "properties": {name: rnd.choice(VALUES) for name in names},
        "required": rnd.sample(names, rnd.randrange(min(4, len(names)) + 1)),
        **rnd.choice([{}, {"type": "object"}]),
        **rnd.choice(OTHERS),
    }
    grammar = guided.json_schema(schema, **options)
    one, other = guided.compile(grammar, BYTES), guided.compile(written_out(grammar), BYTES)
    for _ in range(12):
        chosen = [name for name in names if name in schema["required"] or rnd.random() < 0.6]
        members = {name: value(rnd) for name in (*chosen, *rnd.sample(["n7", "zz", "other"], rnd.randrange(3)))}
        found: Any = rnd.choice([members, members, value(rnd)])
        separators, indent = rnd.choice([((",", ":"), None), ((" , ", " : "), None), ((",", ": "), 2)])
        same_masks(one, other, json.dumps(found, separators=separators, indent=indent).encode())
    assert one.shortest_text(one.start) == other.shortest_text(other.start)


def test_places_and_names_are_told() -> None:
    schema = {
        "properties": {"a/b": {"type": "string"}, "c": {"enum": [1]}, "d": {"type": "integer"}},
        "additionalProperties": False,
        "type": "object",
    }
    constraint = guided.compile(guided.json_schema(schema), BYTES)
    state = constraint.advance_bytes(constraint.start, b"{")
    assert 'property name "a/b"' in constraint.explain(state, ord("x"))
    state = constraint.advance_bytes(state, b'"a/b":')
    assert "string at #/properties/a~1b" in constraint.explain(state, ord("x"))
    state = constraint.advance_bytes(state, b'"",')
    assert 'property name "d"' in constraint.explain(state, ord("x"))
    state = constraint.advance_bytes(state, b'"d":')
    assert "integer at #/properties/d" in constraint.explain(state, ord("x"))


@pytest.mark.parametrize("n_rules", [4, FEW_RULES + 40])
def test_common_rules_are_there_in_small_grammars_and_large(n_rules: int) -> None:
    properties = {f"n{i}": {"type": "object", "properties": {"x": {"const": i}}} for i in range(n_rules)}
    grammar = guided.json_schema({"type": "object", "properties": properties})
    assert grammar.prepared is not None
    assert isinstance(grammar.prepared.common, Common)
    assert (len(grammar.rules) > FEW_RULES) == (n_rules > FEW_RULES)
    constraint = guided.compile(grammar, BYTES)
    for text in ({"n1": {"x": 1, "y": {"z": [{}, [], ["a", None]]}}}, {"other": {"a": 1.5e3}, "n2": {}}):
        state = constraint.advance_bytes(constraint.start, json.dumps(text).encode())
        assert constraint.is_accepting(state)
    assert not constraint.advance_bytes(constraint.start, b'{"n1": {"x": 2')


def test_two_tables_of_states_have_arrays_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = guided.json_schema({"type": "object", "properties": {"own": {"type": "integer"}}})
    one = guided.compile(grammar, BYTES)
    monkeypatch.setattr(StateTable, "_current", StateTable())
    again = vocabularies.of_bytes()
    other = guided.compile(grammar, again)
    for text in (b'{"own": 1, "x": [{}, {"y": "a"}]}', b'{"x": 1.5e3, "own": 1.5', b'{"x" : tru'):
        same_masks(one, other, text)


def test_names_are_the_strings_that_they_spell() -> None:
    table = StateTable()
    texts = [b"a", b"", b'"', b"\\", b"a", b"\x00", "é".encode(), b"x" * 5000]
    from guided.automata.lexer.distances import minimum, shortest

    for canonical in (False, True):
        found = states_of_names(table, texts, canonical)
        assert found[0] == found[4]
        assert found == states_of_names(table, texts, canonical)
        assert len(set(found)) == len(set(texts))
        for state, text in zip(found, texts, strict=True):
            expected = table.add(concat(literal(b'"'), json_string(literal(text), canonical=canonical)))
            if len(text) < 300:
                assert shortest(table, state) == shortest(table, expected)
                assert minimum(table, state) == minimum(table, expected)


BESIDES = [
    [""],
    ["a"],
    ["", "a"],
    ["a", "aa", "ab", "b"],
    ["xyz", "x", "xy"],
    ["n" * 40, "n" * 41, "m"],
    ['"', "\\", "/"],
]


@pytest.mark.parametrize("spelling", each(["plain", "any"], 2))
@pytest.mark.parametrize("names", BESIDES)
def test_other_names_are_all_that_are_not_declared(names: list[str], spelling: str) -> None:
    schema = {"properties": {**{name: {"type": "null"} for name in names}, "dead": False}}
    grammar = guided.json_schema({"type": "object", **schema}, spelling=spelling)
    body = grammar.rules[5].body
    assert isinstance(body, Sequence)
    (record,) = [part for part in body.parts if isinstance(part, DeferredMembers)]
    assert set(record.besides) == {name.encode() for name in (*names, "dead")}
    one, other = guided.compile(grammar, BYTES), guided.compile(written_out(grammar), BYTES)
    rnd = random.Random(len(names))
    tried = set(names)
    for name in (*names, "dead"):
        tried |= {name[:-1], name + "a", name + name, name[1:]}
    for name in sorted(tried):
        spelled = "".join(f"\\u{ord(c):04x}" if rnd.random() < 0.3 else json.dumps(c)[1:-1] for c in name)
        for text in (f'{{"{spelled}": null, "{spelled}', f'{{"{spelled}": 1}}'):
            same_masks(one, other, text.encode())
        for written in (json.dumps(name), f'"{spelled}"'):
            read = one.advance_bytes(one.start, b"{" + written.encode() + b": 1")
            plain = spelling == "any" or written == json.dumps(name, ensure_ascii=False)
            assert bool(read) == (plain and name not in (*names, "dead"))


@pytest.mark.parametrize("names", BESIDES)
def test_any_text_but_some_is_known_by_what_it_stands_for(names: list[str]) -> None:
    from guided.automata.lexer.distances import minimum, shortest
    from guided.grammar.regular.any_text import any_text

    table, texts = StateTable(), [name.encode() for name in names]
    content = difference(any_text()[1], words(texts))
    for canonical in (False, True):
        state = state_excluding(table, texts, canonical)
        assert state == state_excluding(table, texts[::-1], canonical)
        inner = json_string(content, canonical=canonical)
        expected = table.add(concat(literal(b'"'), inner))
        assert minimum(table, state) == minimum(table, expected)
        assert shortest(table, state) == shortest(table, expected)
        ((_, _, inside),) = table.edges(state)
        assert table.whole(inside) == table.add(inner)


def lowered(n_records: int) -> tuple[list[int], list[int]]:
    """Which rules of a record of records the first request lowers, and which the one for its last record."""
    record = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "null"}}}}}
    properties = {f"r{index}": {**record, "required": [f"m{index}"]} for index in range(n_records)}
    grammar = guided.json_schema({"type": "object", "properties": properties})
    graph = RuleGraph(analyse(grammar), grammar.start, StateTable(), [], [])
    last = next(n for n, rule in enumerate(grammar.rules, 1) if rule.name == f"#/properties/r{n_records - 1}")
    found: list[list[int]] = []
    for node in (graph.first, last):
        graph.expand(node)
        known = [rule for rule in range(len(grammar.rules)) if graph.is_known(rule + 1)]
        found.append([rule for rule in known if not any(rule in before for before in found)])
    return found[0], found[1]


def test_the_first_request_makes_more_of_larger_grammars_and_others_what_they_must() -> None:
    few, then = lowered(20)
    more, later = lowered(80)
    assert len(few) < len(more) < 80
    assert len(then) == len(later) == 1
