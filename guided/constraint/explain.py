"""Why a token is or is not allowed, in the words of the grammar: rule names, terminals, JSON pointers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.protocol import Constrains
from guided.kernels.data.layout import DEAD, FINISHED
from guided.special_bytes import SENTINEL

if TYPE_CHECKING:
    from guided.constraint.product import ProductMachine

    Machine = ConstraintMachine | ProductMachine[Any]

NAMED = 8
"""Alternatives that one explanation names."""


def explain(constraint: Constrains, machine: Machine, state: int, token: int) -> str:
    """One or two sentences; see `Constraint.explain`."""
    vocabulary = constraint.vocabulary
    if state == DEAD:
        return "the text before is not allowed, so nothing can follow it"
    if not 0 <= token < vocabulary.size:
        return f"token {token} is outside the vocabulary of {vocabulary.size} ids"
    if token in vocabulary.eos_ids:
        if constraint.is_accepting(state):
            return "the text may end here"
        return f"the text may not end here: {_expected(machine, state)}"
    if state == FINISHED:
        return "the text has ended; only an end-of-text token may follow"
    data = vocabulary.token_bytes(token)
    if data is None:
        spelled = vocabulary.spelled(token)
        if spelled is None:
            return f"token {token} is a special token or padding, which never matches text"
        what = f"the special token {_special_name(spelled)}"
        after = machine.advance(state, spelled)
        if after == DEAD:
            return f"{what} is not allowed: {_expected(machine, state)}"
        then = "the text may end" if machine.is_accepting(after) else _expected(machine, after)
        return f"{what} is allowed; after it {then}"
    at = state
    for position, byte in enumerate(data):
        after = machine.advance(at, bytes([byte]))
        if after == DEAD:
            where = f"after {_show(data[:position])}, " if position else ""
            repeats = None if isinstance(machine, ConstraintMachine) else machine.why_refused(at, byte)
            if repeats is not None:
                return f"{_show(data)} is not allowed: {where}{_show(bytes([byte]))} {repeats}"
            return f"{_show(data)} is not allowed: {where}{_show(bytes([byte]))} does not fit; {_expected(machine, at)}"
        at = after
    counted = None if isinstance(machine, ConstraintMachine) else machine.why_counted(state, token)
    if counted is not None:
        return f"{_show(data)} is not allowed: it {counted}"
    then = "the text may end" if machine.is_accepting(at) else _expected(machine, at)
    return f"{_show(data)} is allowed; after it {then}"


def _expected(machine: Machine, state: int) -> str:
    """What may come next, by name where a terminal begins and by bytes inside one."""
    names: list[str] = []
    inside = False
    for lexer_state, continuation, _ in machine.threads(state):
        if lexer_state:
            inside = True
            continue
        # In the order in which the grammar names them: that of lexer states depends on what else the process compiled.
        for start, _, label in sorted(machine.closure(continuation), key=lambda way: way[2]):
            name = machine.label(start, label)
            if name and name not in names:
                names.append(name)
    if inside:
        following = np.flatnonzero(machine.next_bytes(state)).tolist()
        if SENTINEL[0] in following:
            following.remove(SENTINEL[0])
            if not any(name in machine.grammar.special_tokens for name in names):
                names.append("a special token")
        if following:
            names.append(_bytes(following))
    if machine.is_accepting(state):
        names.append("the end of the text")
    if not names:
        return "nothing is expected"
    more = f" or {len(names) - NAMED} other things" if len(names) > NAMED else ""
    return "expected " + " or ".join(names[:NAMED]) + more


def _bytes(values: list[int]) -> str:
    """A set of next bytes as runs of characters."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][1] + 1 == value:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    shown = [_show(bytes([low])) if low == high else f"{_byte(low)}..{_byte(high)}" for low, high in runs]
    return "one of " + " ".join(shown[:NAMED]) + (" ..." if len(shown) > NAMED else "")


def _byte(value: int) -> str:
    return repr(chr(value)) if 0x20 <= value < 0x7F else f"0x{value:02x}"


def _special_name(spelled: bytes) -> str:
    """The name in what automata read for a special token."""
    return spelled.strip(SENTINEL).decode()


def _show(data: bytes) -> str:
    return repr(data.decode("utf-8", "backslashreplace"))
