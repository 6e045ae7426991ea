"""Which lexer begins at an LALR stack: what kernels find, against the parser over lists."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.automata import stacks as module
from guided.constraint.constraint import Constraint
from guided.constraint.limits import Limits
from guided.kernels.lalr import MOST_PUSHED
from guided.kernels.layout import N_SETS

VOCABULARY = guided.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b"((((((((", b")]))", b" if x", None], eos_ids=[259]
)
TEXT = b'[f(x, *args, key=value ** 2) for x, y in items if x is not None and y[1:2] == "a"] if a <= b else (1, {2: 3})'


def openings(constraint: Constraint) -> dict[int, tuple[int, int]]:
    """By continuation that was opened: the lexer that the kernels found, and the one that Python finds."""
    machine = constraint._machine
    stacks, tables = machine.stacks, machine.tables
    found = {}
    for continuation in range(2, int(machine.counters[N_SETS])):
        first = int(tables.closure_first[continuation])
        if first >= 0:
            started = int(tables.closure_state[first]) if tables.closure_count[continuation] else 0
            found[continuation] = (started, stacks.lexer_start(machine._stack(continuation)))
    return found


@pytest.mark.parametrize("room", [1, module.FIRST_OPENINGS])
def test_kernels_find_the_lexer_of_every_stack(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setattr(module, "FIRST_OPENINGS", room)
    constraint = Constraint(guided.grammar("python_expression"), VOCABULARY, Limits())
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    state = constraint.start
    for byte in TEXT:
        constraint.fill_mask(state, row)
        assert row[byte >> 5] >> (byte & 31) & 1
        state = constraint.advance(state, byte)
    assert constraint.is_accepting(state)
    pairs = openings(constraint)
    assert len(pairs) > 300
    assert all(kernel == twin for kernel, twin in pairs.values())
    # Python was asked once for each lexer, not for each stack.
    assert len(constraint._machine.stacks._starts) < len(pairs) / 2


def test_a_stack_that_pushes_more_than_a_kernel_holds() -> None:
    """Empty parts before the terminal are all reduced first: more of them than the kernel has room for."""
    n = MOST_PUSHED + 10
    rules = "\n".join(f"r{i}:" for i in range(n))
    text = f'start: {" ".join(f"r{i}" for i in range(n))} "end"\n{rules}'
    constraint = guided.compile(guided.lark(text), VOCABULARY)
    assert constraint.forced(constraint.start) == b"end"
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, b"end"))
    assert openings(constraint)
    assert all(kernel == twin for kernel, twin in openings(constraint).values())
