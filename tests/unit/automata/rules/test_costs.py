"""What rules cost that call each other, against the least solution of what their bodies say, found from above."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import guided
from guided.automata.rules.costs import RuleCosts
from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.limits import Limits
from guided.errors import GuidedError
from guided.kernels.data.layout import CALL, EMPTY, FAR
from tests import vocabularies
from tests.amounts import Refusals, some

BYTES = vocabularies.of_bytes()
NAMES = ["p", "q", "r", "s"]


def recursive_schema(rnd: random.Random) -> dict[str, Any]:
    """Definitions that ask for each other."""

    def value(depth: int) -> dict[str, Any]:
        kind = rnd.random()
        if depth == 0 or kind < 0.5:
            return (
                {"$ref": f"#/$defs/{rnd.choice(NAMES)}"} if rnd.random() < 0.5 else {"const": "x" * rnd.randint(0, 6)}
            )
        if kind < 0.7:
            return {"anyOf": [value(depth - 1) for _ in range(rnd.randint(2, 3))]}
        if kind < 0.8:
            return {"type": "array", "items": value(depth - 1), "minItems": rnd.randint(0, 2)}
        members = {name: value(depth - 1) for name in "abc"}
        needed = [name for name in members if rnd.random() < 0.6]
        return {"type": "object", "properties": members, "required": needed, "additionalProperties": False}

    return {"$ref": "#/$defs/p", "$defs": {name: value(2) for name in NAMES}}


def from_above(machine: ConstraintMachine, costs: RuleCosts) -> list[int]:
    """Every rule again and again, until none costs less."""
    rules = machine.graph.analysis.rules
    prices = [FAR] * len(rules)
    again = True
    while again:
        again = False
        for index, rule in enumerate(rules):
            costs._rules = dict(enumerate(prices))
            costs._bodies.clear()
            price = costs.body(rule.body)
            again = again or price < prices[index]
            prices[index] = min(price, prices[index])
    return prices


def test_rules_that_call_each_other_cost_the_least_that_their_bodies_say() -> None:
    rnd = random.Random(11)
    recursive = 0
    with Refusals(most=0.5) as refusals:
        for _ in range(some(400)):
            with refusals.trial(GuidedError):
                machine = ConstraintMachine(guided.json_schema(recursive_schema(rnd)), BYTES, Limits())
                tokens = machine.token_costs.tokens_of
                expected = from_above(machine, RuleCosts(machine.graph, tokens, tokens.each))
                order = list(range(len(expected)))
                rnd.shuffle(order)
                costs = RuleCosts(machine.graph, tokens, tokens.each)
                assert [costs.rule(index) for index in order] == [expected[index] for index in order]
                recursive += len(expected) > 4
    assert recursive


def test_a_rule_that_asks_for_one_that_may_be_it_is_entered_within_a_budget() -> None:
    """What was found of the member, before it was known that its value need not be the object again, was kept."""
    other, again = {"$ref": "#/$defs/other"}, {"$ref": "#/$defs/held"}
    held = {"type": "object", "properties": {"child": other}, "required": ["child"], "additionalProperties": False}
    schema = {**again, "$defs": {"held": held, "other": {"anyOf": [again, {"type": "null"}]}}}
    constraint = guided.compile(guided.json_schema(schema), BYTES)
    row = np.zeros(BYTES.n_words, np.uint32)
    constraint.fill_budget_mask(constraint.start, row, 60)
    # White space as well as the brace: once only the way of the shortest text was left.
    plain = np.zeros(BYTES.n_words, np.uint32)
    constraint.fill_mask(constraint.start, plain)
    assert np.array_equal(row, plain)


def record_schema(rnd: random.Random) -> dict[str, Any]:
    """Members of which some must be there, with values that take little or much, beside others or not."""
    much = {"const": "long " * 4}
    values = [{}, {"type": "null"}, much, {"type": "array", "items": {}, "minItems": 5}, {"enum": [1, ""]}]
    names = rnd.sample(["a", "bb", "a long name", "x" * 30, "c", 'q"'], rnd.randint(1, 6))
    others = rnd.choice([{}, {"additionalProperties": False}, {"patternProperties": {"^z{6}": {}}}])
    properties = {name: rnd.choice(values) for name in names}
    needed = [name for name in names if rnd.random() < 0.3]
    return {"type": "object", "properties": properties, "required": needed, **others}


def test_nodes_of_records_cost_what_their_edges_say() -> None:
    """Values are priced only where they can be on a cheapest way, the others when their nodes are asked about."""
    rnd = random.Random(7)
    compared = 0
    for _ in range(some(60)):
        machine = ConstraintMachine(guided.json_schema(record_schema(rnd)), BYTES, Limits())
        graph, tokens = machine.graph, machine.token_costs.tokens_of
        costs = RuleCosts(graph, tokens, tokens.each)
        edges: dict[int, list[tuple[int, int]]] = {}
        order = [graph.first]
        for node in order:
            if node == 0 or node in edges:
                continue
            edges[node] = []
            for kind, argument, target in graph.edges(node):
                step = 0 if kind == EMPTY else costs.rule(argument) if kind == CALL else tokens(argument)
                edges[node].append((step, target))
                order.append(target)
                if kind == CALL:
                    order.append(int(graph.arrays.rule_start[argument]))
        price = {node: 0 if graph.is_end(node) else FAR for node in edges} | {0: 0}
        for _ in edges:
            for node, steps in edges.items():
                price[node] = min([price[node], *(step + price[target] for step, target in steps)])
        nodes = [*edges]
        rnd.shuffle(nodes)
        assert [costs.node(node) for node in nodes] == [price[node] for node in nodes]
        compared += len(nodes)
    assert compared > 500
