"""The IR is frozen, and rules are made when they are asked for, by whichever thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from threading import Barrier

import pytest

import guided
from guided.grammar.ir import Body, Choice, Mark, Reference, Rule, Sequence, Terminal
from guided.grammar.regular.expr import literal
from guided.grammar.rules import RulesOnDemand, UnmadeRule, every_rule

LETTER = Terminal(literal(b"x"), "letter")


def test_nodes_and_rules_are_frozen() -> None:
    for node, name in ((LETTER, "label"), (Sequence((LETTER,)), "parts"), (Rule("r", LETTER), "body")):
        with pytest.raises(FrozenInstanceError):
            setattr(node, name, None)


def test_a_rule_is_made_once_and_when_it_is_asked_for() -> None:
    asked: list[str] = []

    def making(name: str) -> Callable[[], Body]:
        def make() -> Body:
            asked.append(name)
            return Choice((LETTER, Reference(0)))

        return make

    rules = RulesOnDemand([UnmadeRule("a", making("a"), Mark.ARRAY), Rule("b", LETTER), UnmadeRule("c", making("c"))])
    assert (len(rules), rules.n_unmade, asked) == (3, 2, [])
    first = rules[0]
    assert (first.name, first.mark, rules[0] is first, asked) == ("a", Mark.ARRAY, True, ["a"])
    assert rules[1].body is LETTER
    assert rules.n_unmade == 1
    assert [rule.name for rule in every_rule(rules)] == ["a", "b", "c"]
    assert asked == ["a", "c"]
    with pytest.raises(IndexError):
        rules[3]


def test_threads_that_come_at_once_get_a_whole_rule() -> None:
    barrier = Barrier(8)

    def make() -> Body:
        barrier.wait()  # all of them are inside before any rule is there
        return Sequence((LETTER,))

    rules = RulesOnDemand([UnmadeRule("r", make)])
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: rules[0], range(8)))
    assert all(rule.body.parts == (LETTER,) for rule in found)
    assert rules.n_unmade == 0
    assert any(rules[0] is rule for rule in found)


def test_a_schema_s_marks_are_those_of_its_rules() -> None:
    for items in ({}, {"enum": [1, 2]}, {"type": "object", "additionalProperties": {"type": "array"}}):
        grammar = guided.json_schema({"type": "array", "uniqueItems": True, "items": items})
        assert grammar.prepared is not None
        marks = {number: rule.mark for number, rule in enumerate(every_rule(grammar.rules)) if rule.mark is not None}
        assert marks == dict(grammar.prepared.marks)
        assert Mark.DISTINCT in marks.values()


def test_written_rules_are_taken_as_they_are() -> None:
    grammar = guided.choice(["yes", "no"])
    assert every_rule(grammar.rules) is grammar.rules
