"""Which lexer begins at an LALR stack, and what masks ask of stacks: kernels against the parser over lists."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.automata.lalr import stacks as module
from guided.automata.lexer.ordered import lexer_of
from guided.constraint.constraint import Constraint
from guided.constraint.limits import Limits
from guided.kernels.data.layout import N_SETS
from guided.kernels.parsing.lalr import MOST_PUSHED
from tests import vocabularies

VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES, b"((((((((", b")]))", b" if x", None], eos_ids=[259]
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
    for token in range(256, 259):
        constraint.advance(constraint.start, token)
    pairs = openings(constraint)
    assert len(pairs) > 50
    assert all(kernel == twin for kernel, twin in pairs.values())
    # Python was asked once for each lexer, not for each stack.
    assert len(constraint._machine.stacks._starts) < len(pairs)


def test_masks_leave_no_stacks_behind() -> None:
    constraint = Constraint(guided.grammar("python_expression"), VOCABULARY, Limits())
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    state = constraint.advance_bytes(constraint.start, TEXT[:40])
    before = int(constraint._machine.counters[N_SETS])
    constraint.fill_mask(state, row)
    assert row.any()
    # But for tokens about which more is asked, which are read.
    assert int(constraint._machine.counters[N_SETS]) - before < 8


@pytest.mark.parametrize("name", ["python_expression", "arithmetic", "c_program"])
def test_what_a_lexer_state_may_still_match(name: str) -> None:
    """`reachable` against all texts of some bytes, state by state."""
    grammar = guided.grammar(name)
    lexer = lexer_of(grammar.terminals)
    assert grammar.tables is not None
    n_states = 0
    for context in list(dict.fromkeys(map(tuple, grammar.tables.accepts)))[:12]:
        start = lexer.start(context)
        seen, queue, leads = {start}, [start], {}
        for at in queue:
            leads[at] = [target for _, _, target in at.edges()]
            for target in leads[at]:
                if target not in seen:
                    seen.add(target)
                    queue.append(target)
        found = {at: {exit_.tag for exit_ in at.exits} for at in queue}
        while any(not found[target] <= found[at] for at in queue for target in leads[at]):
            for at in reversed(queue):
                found[at].update(*(found[target] for target in leads[at]))
        assert all(module.reachable(at) == found[at] for at in queue)
        n_states += len(queue)
    assert n_states > 20


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
