"""What ambiguity and debts cost is counted: items of continuations, threads of states, edges of lexer states."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.automata.endings import adjacency
from guided.automata.lalr.stacks import reachable
from guided.automata.lexer import backtracking, ordered
from guided.constraint.constraint import Constraint
from guided.grammar.ir import Lexing
from guided.grammar.regular.expr import Edge, Expr
from guided.kernels.data.layout import N_ITEMS
from tests import vocabularies

BYTES = vocabularies.of_bytes()


def walk(constraint: Constraint, text: bytes) -> int:
    """Fill the mask of each state of a text; the most threads that one of them has."""
    row = np.zeros(BYTES.n_words, np.uint32)
    state, most = constraint.start, 0
    for byte in text:
        constraint.fill_mask(state, row)
        state = constraint.advance(state, byte)
        assert state
        most = max(most, len(constraint._machine.threads(state)))
    return most


def test_nodes_that_return_to_the_same_are_one() -> None:
    grammar = guided.lark('start: start~0..30 ["a" | "]"+ "a"*]', lexing=Lexing.DYNAMIC)
    constraint = Constraint(grammar, BYTES)
    walk(constraint, b"]a]]a]aa]]" * 2)
    # 1,476,443 with an item for each node: of 30 copies, beneath each of the copies before.
    assert constraint._machine.counters[N_ITEMS] < 150_000


def test_of_what_is_owed_the_least_is_enough() -> None:
    constraint = Constraint(guided.lark('start: "["\nA: /[a-zA-Z_]{3,20}(?!.*b)/i\n%ignore A'), BYTES)
    # 1,871 with one for each set of places in which the text may have been cut.
    assert walk(constraint, b"acdefghijkacdefghijkx") < 60


def test_joined_obligations_are_sets() -> None:
    constraint = Constraint(guided.lark('start: "[" B\nA: /[a-z]{3,5}(?!.*b)/\nB: /[a-c]{2,9}x/\n%ignore A'), BYTES)
    states = constraint._machine.states
    first, second, third = (states.add(ordered.lexer_of(constraint.grammar.terminals).start((i,))) for i in range(3))
    assert states.joined(states.joined(first, second), third) == states.joined(first, states.joined(third, second))
    assert states.joined(states.joined(first, second), second) == states.joined(second, first)


def test_states_that_are_read_to_decide_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = guided.lark("start: NAME B\nNAME: /(?!.*b)\\S+?[a-c]{1,3}[^a]{3,20}/\nB: /.[a-c]{3,20}[^a]+/")
    read = 0
    raw_edges = ordered._raw_edges

    def counted(state: ordered.OrderedState) -> list[ordered.OrderedEdge]:
        nonlocal read
        read += 1
        return raw_edges(state)

    monkeypatch.setattr(ordered, "_raw_edges", counted)
    monkeypatch.setattr(adjacency, "READ", 2_000)
    assert not adjacency.always_settles(grammar)
    # Each of the states that were counted needed a search through hundreds that were not.
    assert read < 1_000


def test_what_a_long_repeat_can_match_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # The second is hidden behind the first, so no state can match all that its patterns are of.
    grammar = guided.lark("start: A | B\nA.2: /[a-z]{300}/\nB: /[a-z]{300}/", lexing=Lexing.CONTEXTUAL)
    looked_at = 0
    exits = ordered.OrderedState.exits.fget
    assert exits is not None

    def counted(state: ordered.OrderedState) -> tuple[ordered.Exit, ...]:
        nonlocal looked_at
        looked_at += 1
        return exits(state)

    state: ordered.OrderedState | None = ordered.lexer_of(grammar.terminals).start((0, 1))
    monkeypatch.setattr(ordered.OrderedState, "exits", property(counted))
    while state is not None and state.edges():
        assert len(reachable(state)) == 1
        state = state.edges()[0][2]
    # 45,150 with a search from each of the states.
    assert looked_at < 1_000


def test_what_conditions_lead_to_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    edges = backtracking.edges

    def counted(expr: Expr) -> tuple[Edge, ...]:
        nonlocal read
        read += 1
        return edges(expr)

    monkeypatch.setattr(backtracking, "edges", counted)
    backtracking.edges_of.cache_clear()
    grammar = guided.lark('start: ":"\nA: /(?=.*;)[+*]+[^"]{3,20}b+/i\n%ignore A', lexing=Lexing.DYNAMIC)
    with pytest.raises(guided.LimitError, match="too many steps"):
        Constraint(grammar, BYTES)
    # 124,860 with the edges of the same conditions found for each state, which took 2 to 5 s.
    assert read < 200
