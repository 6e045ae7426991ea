"""The answers to what a machine's kernels ask, by kind: see the table in `guided.constraint.engine.requests`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from guided.automata.lexer.distances import minimum
from guided.automata.lexer.joint import forbids_as_much
from guided.automata.lexer.spelling import state_inside
from guided.errors import LimitError
from guided.kernels.data import requests as kinds
from guided.kernels.masking.masks import ENOUGH

if TYPE_CHECKING:
    from guided.automata.lalr.stacks import LalrStacks
    from guided.constraint.engine.machine import ConstraintMachine

__all__ = ["ANSWERS", "MANY_ITEMS"]

MANY_ITEMS = 64
"""Items of a continuation beyond which those that return to the same become one: with 4 or with 128 the masks of
ambiguous grammars take as long, and few other grammars have continuations of so many."""

Asked: TypeAlias = list[list[int]]


def _refuse(machine: ConstraintMachine, _: Asked) -> None:
    raise LimitError(
        f"one step of this constraint took more than {machine.limits.step_work} units of work",
        remedy="The grammar is highly ambiguous here; simplify it, or pass Limits(step_work=...).",
    )


def _expand_states(machine: ConstraintMachine, asked: Asked) -> None:
    machine.states.expand_all([state for state, _, _ in asked])


def _measure_states(machine: ConstraintMachine, asked: Asked) -> None:
    for state, _, _ in asked:
        minimum(machine.states, state)


def _make_partial(machine: ConstraintMachine, asked: Asked) -> None:
    for place, _, _ in asked:
        state_inside(machine.states, place)


def _expand_nodes(machine: ConstraintMachine, asked: Asked) -> None:
    machine.graph.expand(*(node for node, _, _ in asked))
    machine.hold_graph()


def _compose(machine: ConstraintMachine, asked: Asked) -> None:
    listed = [continuation for continuation, _, _ in asked]
    lists = [[item >> 32 for item in machine.items(each)] for each in listed]
    machine.tables.composed[listed] = machine.graph.composed(lists)


def _join(machine: ConstraintMachine, asked: Asked) -> None:
    _tell(machine, {one << 32 | other: machine.states.joined(one, other) for one, other, _ in asked})


def _compare(machine: ConstraintMachine, asked: Asked) -> None:
    found = {-(one << 32 | other): int(forbids_as_much(machine.states, one, other)) for one, other, _ in asked}
    _tell(machine, found)


def _tell(machine: ConstraintMachine, answers: dict[int, int]) -> None:
    """Put answers about obligations into the hash that `guided.kernels.parsing.threads.answered` reads."""
    rows = machine.joined
    known = rows[rows[:, 0] != 0]
    if 2 * (len(known) + len(answers)) >= len(rows):
        answers = {**dict(known.tolist()), **answers}
        rows = np.zeros((4 * len(answers) + 2, 2), np.int64)
    size = len(rows)
    for key, answer in answers.items():
        slot = ((key * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 20) % size
        while rows[slot, 0] and rows[slot, 0] != key:
            slot = (slot + 1) % size
        rows[slot] = key, answer
    machine.hold_joined(rows)


def _open(machine: ConstraintMachine, asked: Asked) -> None:
    for continuation, _, _ in asked:
        machine.open_boundary(continuation)


def _price_nodes(machine: ConstraintMachine, asked: Asked) -> None:
    machine.token_costs.price_nodes(asked)


def _price_terminals(machine: ConstraintMachine, asked: Asked) -> None:
    for state, _, _ in asked:
        machine.token_costs.tokens_of(state)


def _of_stacks(kind: int) -> Callable[[ConstraintMachine, Asked], None]:
    def provide(machine: ConstraintMachine, asked: Asked) -> None:
        stacks = cast("LalrStacks", machine.stacks)
        for first, second, _ in asked:
            stacks.provide(kind, first, second)
        machine.hold_tables()

    return provide


def _make_effects(machine: ConstraintMachine, asked: Asked) -> None:
    for low, high, state in asked:
        machine.effects.need(low, high, state)


def _measure_effects(machine: ConstraintMachine, asked: Asked) -> None:
    for low, high, state in asked:
        machine.effects.need_near(low, high, state)


def _make_lexed_effects(machine: ConstraintMachine, asked: Asked) -> None:
    verdict = cast("LalrStacks", machine.stacks).verdict
    for low, high, state in asked:
        machine.effects.need_core(low, high, state, state, verdict)
    machine.hold_tables()


def _measure_lexed_effects(machine: ConstraintMachine, asked: Asked) -> None:
    priced_as = cast("LalrStacks", machine.stacks).priced_as
    for low, high, state in asked:
        machine.effects.need_core(low, high, state, state | ENOUGH, priced_as)
    machine.hold_tables()


def _grow_tables(machine: ConstraintMachine, _: Asked) -> None:
    machine.grow_tables()


def _grow_scratch(machine: ConstraintMachine, _: Asked) -> None:
    machine.grow_scratch()


def _grow_segments(machine: ConstraintMachine, _: Asked) -> None:
    machine.grow_segments()


def _grow_listed(machine: ConstraintMachine, _: Asked) -> None:
    machine.grow_listed(8 * machine.scratch.listed.size)


ANSWERS: dict[int, Callable[[ConstraintMachine, Asked], None]] = {
    kinds.OUT_OF_FUEL: _refuse,
    kinds.GROW_MACHINE: _grow_tables,
    kinds.GROW_SCRATCH: _grow_scratch,
    kinds.GROW_SEGMENTS: _grow_segments,
    kinds.GROW_LISTED: _grow_listed,
    kinds.EXPAND_STATE: _expand_states,
    kinds.MEASURE_STATE: _measure_states,
    kinds.NEED_PARTIAL: _make_partial,
    kinds.EXPAND_NODE: _expand_nodes,
    kinds.COMPOSE: _compose,
    kinds.JOIN_OBLIGATIONS: _join,
    kinds.COMPARE: _compare,
    kinds.PRICE_NODES: _price_nodes,
    kinds.PRICE_TERMINAL: _price_terminals,
    kinds.OPEN_BOUNDARY: _open,
    kinds.WANT_START: _of_stacks(kinds.WANT_START),
    kinds.WANT_UNDER: _of_stacks(kinds.WANT_UNDER),
    kinds.WANT_VERDICT: _of_stacks(kinds.WANT_VERDICT),
    kinds.WANT_REST: _of_stacks(kinds.WANT_REST),
    kinds.WANT_WAYS: _of_stacks(kinds.WANT_WAYS),
    kinds.NEED_EFFECT: _make_effects,
    kinds.NEED_NEAR: _measure_effects,
    kinds.NEED_LEXED: _make_lexed_effects,
    kinds.NEED_LEXED_NEAR: _measure_lexed_effects,
}
"""In the order in which they are answered: lexer states before the effects that are walked from them."""
