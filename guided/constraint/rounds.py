"""What one round of a mask came to for the first time: a kernel gathers it, since each round begins anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from guided.automata.distances import minimum
from guided.kernels.layout import N_UNKNOWN
from guided.kernels.masks import ENOUGH

if TYPE_CHECKING:
    from guided.automata.stacks import LalrStacks
    from guided.constraint.machine import ConstraintMachine

__all__ = ["serve", "serve_lexed"]


def serve(
    machine: ConstraintMachine, n_effects: int, list_inside: Callable[[int, int, int], NDArray[np.int64]]
) -> None:
    """Provide edges of lexer states, and effects, some of which were perhaps asked for more than once."""
    _expand(machine)
    for bounds, key in _effects(machine, n_effects):
        if key & ENOUGH:
            machine.effects.need_near(bounds >> 32, bounds & 0xFFFFFFFF, key & ~ENOUGH, list_inside)
        else:
            machine.effects.need(bounds >> 32, bounds & 0xFFFFFFFF, key)


def serve_lexed(machine: ConstraintMachine, n_effects: int, n_wanted: int) -> None:
    """As `serve`, for a grammar with LALR tables."""
    stacks = cast("LalrStacks", machine.stacks)
    _expand(machine)
    for wanted in dict.fromkeys(machine.scratch.emits[:n_wanted].tolist()):
        stacks.provide(wanted)
    for bounds, key in _effects(machine, n_effects):
        asked_as = stacks.priced_as if key & ENOUGH else stacks.verdict
        machine.effects.need_core(bounds >> 32, bounds & 0xFFFFFFFF, key, asked_as)
    machine.hold_tables()


def _expand(machine: ConstraintMachine) -> None:
    n_unknown = int(machine.counters[N_UNKNOWN])
    if n_unknown:
        unknown = machine.scratch.unknown[:n_unknown].tolist()
        machine.states.expand_all([state for state in unknown if state >= 0])
        for state in (~each for each in unknown if each < 0):
            minimum(machine.states, state)


def _effects(machine: ConstraintMachine, n: int) -> list[tuple[int, int]]:
    """Ranges, ``low << 32 | high``, and the states from which they are to be read."""
    scratch = machine.scratch
    return list(dict.fromkeys(zip(scratch.thread_a[:n].tolist(), scratch.thread_b[:n].tolist(), strict=True)))
