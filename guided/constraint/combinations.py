"""What kernels ask about several nodes or obligations at once, and how they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided.automata.joint import forbids_as_much
from guided.kernels.layout import COMPOSE, JOIN_OBLIGATIONS, Extra

if TYPE_CHECKING:
    from guided.constraint.machine import ConstraintMachine

__all__ = ["MANY_ITEMS", "serve"]

MANY_ITEMS = 64
"""Items of a continuation beyond which those that return to the same become one: with 4 or with 128 the masks of
ambiguous grammars take as long, and few other grammars have continuations of so many."""


def serve(machine: ConstraintMachine, request: int, a: int, b: int, extra: Extra) -> Extra:
    """Answer a kernel that asked for composite nodes, or about obligations: these answers are in ``joined``."""
    states = machine.states
    if request == COMPOSE:
        listed = machine.scratch.longs[:a].copy()
        lists = [[item >> 32 for item in machine.items(each)] for each in listed.tolist()]
        machine.tables.composed[listed] = machine.graph.composed(lists)
        return extra
    if request == JOIN_OBLIGATIONS:
        answers = {a << 32 | b: states.joined(a, b)}
    else:
        pairs = set(machine.scratch.longs[:a].tolist())
        answers = {-pair: int(forbids_as_much(states, pair >> 32, pair & 0xFFFFFFFF)) for pair in pairs}
    return extra._replace(joined=_with(extra.joined, answers))


def _with(rows: NDArray[np.int64], answers: dict[int, int]) -> NDArray[np.int64]:
    """A hash of rows ``(key, answer)``, as `guided.kernels.threads.answered` reads it, with some more in it."""
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
    return rows
