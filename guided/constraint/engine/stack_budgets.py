"""Masks under a token budget of grammars with an LALR parser, and the text that their prices stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.kernels import entry
from guided.kernels.data.layout import DEAD, FAR, NEED

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

__all__ = ["closing_text", "near", "need"]


def near(machine: ConstraintMachine, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int]:
    """See `ConstraintMachine.near`: each lexer state and stack in which tokens end is priced, the others are tried."""
    row, tried = machine.fill_rows(state, limit)
    found = int(machine.counters[NEED])
    for token in _unpriced(machine, state, tried & ~row):
        after = machine.advance_token(state, token)
        if after != DEAD:
            found = FAR
            if machine.completions.is_near(after, limit):
                tokenset.add(row, token)
    return row if row.any() else None, found


def need(machine: ConstraintMachine, state: int, row: NDArray[np.uint32], found: int) -> int:
    """See `ConstraintMachine.need`: what the kernel found, but for what has no price and is not in the mask."""
    if found >= FAR and not _unpriced(machine, state, row):
        found = int(machine.counters[NEED])
    return found


def _unpriced(machine: ConstraintMachine, state: int, row: NDArray[np.uint32]) -> list[int]:
    """The tokens of a row that have no price, however they are read."""
    if not row.any():
        return []
    priced, tried = machine.fill_rows(state, FAR - 1)
    tokens: list[int] = tokenset.ids(tried & row & ~priced).tolist()
    return tokens


def closing_text(machine: ConstraintMachine, state: int) -> bytes | None:
    """A text to the end whose prices fall by one with each byte; None where a state has no price."""
    with machine.lock:
        left = price(machine, state)
        text = b""
        while left and left < FAR:
            for byte in np.flatnonzero(machine.next_bytes(state)).tolist():
                after = machine.advance_text(state, bytes((byte,)))
                cost = FAR if after == DEAD else price(machine, after)
                if cost < left:
                    break
            else:
                return None
            state, left = after, cost
            text += bytes((byte,))
        return text if left == 0 and machine.is_accepting(state) else None


def price(machine: ConstraintMachine, state: int) -> int:
    """Bytes that are enough to end the text from a state, `FAR` where that is not known."""
    found: int = machine.run(entry.price_lexed, state)
    return 0 if machine.is_accepting(state) else found
