"""Dear patterns: told by their structure, and read when the grammar is compiled, whether a text comes there or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guided
from guided.automata.lexer.first_sets import MOST_PATTERNS
from guided.automata.lexer.states import StateTable
from guided.automata.lexer.traits import begins
from guided.grammar.ir import Grammar
from guided.grammar.json_schema.keywords.patterns import pattern_language
from guided.grammar.json_schema.layout import Spelling
from guided.grammar.json_schema.sets.strings import StringSet, quoted
from guided.grammar.regular.expensive import SEQUENCE, TOO_LARGE, is_expensive
from guided.grammar.regular.expr import Expr, byte_range, complement, concat, intersection, literal, repeat
from guided.grammar.rules import RulesOnDemand, every_rule
from tests import vocabularies

BYTES = vocabularies.of_bytes()


def opening(content: Expr) -> int:
    """The state behind the quote."""
    states = StateTable.shared()
    state = states.target(begins(quoted(content, Spelling.PLAIN))[1])
    return int(states.arrays.base[state])


def is_explored(content: Expr) -> bool:
    return int(StateTable.shared().arrays.first[opening(content)]) >= 0


def accepts(constraint: guided.Constraint, text: bytes) -> bool:
    """Is a text accepted?  Masks are filled on the way."""
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    state = constraint.start
    for byte in text:
        constraint.fill_mask(state, row)
        after = constraint.advance(state, byte)
        assert bool(after) == bool(row[byte >> 5] >> (byte & 31) & 1)
        if not after:
            return False
        state = after
    return constraint.is_accepting(state)


def member(value: Any) -> dict[str, Any]:
    """Objects in which a member comes behind another."""
    return {"type": "object", "properties": {"a": {"type": "null"}, "b": {"items": value}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("pattern", "expensive"),
    [
        ("^[a-z]+$", False),
        ("^[0-9]{4}$", False),
        ("^opening-one$", False),
        ("^a+b+c$", False),
        ("^([a-z]+_)*[0-9]+([.]x[A-Z]+|:[?!]+)$", True),
        ("^(x[a-f]+|y[g-k]+)$", True),
        ("^(?!opening)[a-z]+$", True),
    ],
)
def test_structure_tells_what_is_expensive(pattern: str, expensive: bool) -> None:
    assert is_expensive(pattern_language(pattern, "#")) is expensive


def test_sizes() -> None:
    pieces = [repeat(byte_range(0x20 + number, 0x21 + number)) for number in range(TOO_LARGE)]
    assert not is_expensive(concat(*pieces[: SEQUENCE // 4]))
    assert is_expensive(concat(*pieces[:SEQUENCE]))
    assert is_expensive(concat(*pieces))
    assert is_expensive(intersection((repeat(byte_range(0x61, 0x7A)), complement(literal(b"opening")))))
    assert not is_expensive(intersection((concat(*pieces), complement(literal(b"opening")))))


def test_first_sets_are_explored() -> None:
    pattern = "^(?!opening-two)(v[0-9]+|w[a-f]+-)+z$"
    grammar = guided.json_schema(member({"type": "string", "pattern": pattern}))
    assert grammar.prepared is not None
    language = pattern_language(pattern, "#")
    assert grammar.prepared.patterns == (quoted(language, Spelling.PLAIN),)
    assert not is_explored(language)
    guided.compile(grammar, BYTES)
    assert is_explored(language)


@pytest.mark.parametrize("bound", [100, 255])
def test_long_names_are_met_whole(bound: int) -> None:
    pattern = f"^[opening{bound % 10}]{{1,{bound}}}$"
    schema = {"patternProperties": {pattern: {"type": "null"}}, "properties": {"?": True}}
    grammar = guided.json_schema(schema, whitespace=" ?")
    assert grammar.prepared is not None
    assert len(grammar.prepared.met_whole) == 1
    constraint = guided.compile(grammar, BYTES)
    found = len(StateTable.shared().keys)
    assert accepts(constraint, b'{"' + b"o" * bound + b'": null}')
    assert not accepts(constraint, b'{"' + b"o" * bound + b'": 1}')
    assert accepts(constraint, b'{"o' + b"o" * bound + b'": 1}')
    assert accepts(constraint, b'{"o!": 1}')
    # Those of the pattern are as many as characters, and so would be those of other names.
    assert len(StateTable.shared().keys) - found < 1.5 * bound


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"^[a-z]{1,255}$": {}}, "additionalProperties": False},
        {"patternProperties": {"^[a-z]+$": {}}},
        {"additionalProperties": {"type": "null"}, "properties": {"a": {}}},
    ],
)
def test_few_names_are_met_whole(schema: dict[str, Any]) -> None:
    grammar = guided.json_schema(schema)
    assert grammar.prepared is not None and not grammar.prepared.met_whole


def test_mail_addresses_in_any_script_are_explored_with_their_grammar() -> None:
    constraint = guided.compile(guided.json_schema({"type": "string", "format": "idn-email"}, whitespace=" ?"), BYTES)
    found = len(StateTable.shared().keys)
    assert accepts(constraint, '"info@\u00e9t\u00e9.example"'.encode())
    # The states behind the quote that closes, and of runs that others have too.
    assert len(StateTable.shared().keys) - found < 64


def test_no_bodies_are_made_for_it() -> None:
    left = []
    for pattern in ("^opening$", "^(?!opening-seven)(v[0-9]+|w[a-f]+-)+z$"):
        value = {"type": "string", "pattern": pattern}
        nested: dict[str, Any] = {"properties": {f"p{i}": {"items": {"items": value}} for i in range(30)}}
        grammar = guided.json_schema(nested)
        guided.compile(grammar, BYTES)
        assert isinstance(grammar.rules, RulesOnDemand)
        left.append(grammar.rules.n_unmade)
    assert left[0] == left[1] > 20


def test_cheap_ones_wait() -> None:
    pattern = "^[0-9]+opening-three$"
    grammar = guided.json_schema(member({"type": "string", "pattern": pattern}))
    assert grammar.prepared is not None and grammar.prepared.patterns == ()
    guided.compile(grammar, BYTES)
    assert not is_explored(pattern_language(pattern, "#"))


def test_bounds_are_expensive_beside_a_pattern() -> None:
    pattern = "^[a-w]+-[x-z]+$"
    language = pattern_language(pattern, "#")
    assert not is_expensive(language)
    bounded = StringSet(language=language, low=3, high=77)
    guided.compile(
        guided.json_schema(member({"type": "string", "pattern": pattern, "minLength": 3, "maxLength": 77})), BYTES
    )
    assert is_explored(bounded.content())


def test_some_of_many() -> None:
    patterns = [f"^(?!opening-four)([a-f]+{number}|[g-k]+)+z$" for number in range(3 * MOST_PATTERNS)]
    schema = {"properties": {f"p{i}": {"items": {"type": "string", "pattern": p}} for i, p in enumerate(patterns)}}
    guided.compile(guided.json_schema(schema), BYTES)
    assert sum(is_explored(pattern_language(pattern, "#")) for pattern in patterns) == MOST_PATTERNS


def test_grammars_of_which_nothing_is_known_beforehand() -> None:
    pattern = "^(?!opening-five)([a-f]+-|[g-k]+[0-9])+z$"
    grammar = guided.json_schema(member({"type": "string", "pattern": pattern}), whitespace=" ?")
    written = Grammar(every_rule(grammar.rules), grammar.start)
    guided.compile(written, BYTES)
    assert is_explored(pattern_language(pattern, "#"))


def test_what_cannot_be_read_is_left_to_those_who_come_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = "^(?!opening-six)([a-f]+-|[g-k]+[0-9])+z$"
    grammar = guided.json_schema(member({"type": "string", "pattern": pattern}))
    expand = StateTable.expand

    def limited(states: StateTable, state: int) -> None:
        if state == opening(pattern_language(pattern, "#")):
            raise guided.LimitError("too many steps")
        expand(states, state)

    monkeypatch.setattr(StateTable, "expand", limited)
    constraint = guided.compile(grammar, BYTES)
    monkeypatch.undo()
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, b'{"a": null, "b": ["a-z"]}'))
    assert not constraint.advance_bytes(constraint.start, b'{"a": null, "b": ["opening-six')
