"""`step_rows`: the next token and the mask after it in every row of a batch, by one call without the interpreter.

To a new text nearly every state is new.  To make its mask and keep it takes some 15 us of Python a row and 8 of
compiled code; here all rows share a call, and a mask is kept once its state comes the second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from guided.constraint.constraint import Constraint
from guided.constraint.effects.shared_rows import KeptRow
from guided.constraint.protocol import Constrains
from guided.kernels.data.addresses import address

__all__ = ["Step", "step_rows"]

Step: TypeAlias = tuple[int, KeptRow]
"""The state after a token, and its mask."""

MOMENT = 20_000
"""Parser and walk steps of a row: one that takes more is left to the caller."""


def step_rows(
    constraints: Sequence[Constrains], states: Sequence[int], tokens: Sequence[int], budgets: Sequence[int | None]
) -> list[Step | None]:
    """For each row the state after its token and that state's mask, as `Constraint.advance` and ``kept_row`` say.

    ``budgets`` are the tokens that are left behind this one; None: no limit.  Nothing is said of a row that takes more
    than a moment, whose text ends or cannot go on, or that is near the end of its budget; and of no row of a grammar
    with a lexer, nor of a constraint that is no `Constraint`.  `Constraint.advance` is for all of these.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    >>> constraint = guided.compile(guided.regex("a?bc"), vocabulary)
    >>> state = constraint.advance(constraint.start, ord("a"))
    >>> known = constraint.kept_row(state)
    >>> step_rows([constraint] * 2, [constraint.start] * 2, list(b"ac"), [None] * 2) == [(state, known), None]
    True
    """
    found: list[Step | None] = [None] * len(states)
    asked: list[tuple[int, Constraint]] = []
    jobs: list[tuple[int, ...]] = []
    try:
        for i, (constraint, state, token, budget) in enumerate(zip(constraints, states, tokens, budgets, strict=True)):
            if not isinstance(constraint, Constraint):
                continue
            after = constraint.known_step(state, token)
            if after is not None:
                if after <= constraint.end or not (budget is None or constraint.is_ample(after, budget)):
                    continue
                kept = constraint.remembered_row(after)
                if kept is not None:
                    found[i] = after, kept
                    continue
                state, token = after, -1
            job = constraint.begin_step(state, token, budget is not None)
            if job is not None:
                asked.append((i, constraint))
                jobs.append(job)
        if jobs:
            _run(jobs, asked, budgets, found)
    finally:
        for _, constraint in asked:
            constraint.end_step()
    return found


def _run(
    jobs: Sequence[tuple[int, ...]],
    asked: Sequence[tuple[int, Constraint]],
    budgets: Sequence[int | None],
    found: list[Step | None],
) -> None:
    """Take the steps that nobody took before, or that came without a mask; the constraints' locks are held."""
    from guided.kernels.masking.stepping import step_rows

    table = np.array(jobs, np.int64)
    rows = np.empty((len(jobs), max(constraint.vocabulary.n_words for _, constraint in asked)), np.uint32)
    step_rows(table, rows, MOMENT)
    begin, row_bytes = address(rows), rows.strides[0]
    results = table[:, 4:6].tolist()
    for number, ((i, constraint), (_, _, state, token, *_), (after, need)) in enumerate(
        zip(asked, jobs, results, strict=True)
    ):
        if after <= constraint.end:
            continue
        row = rows[number, : constraint.vocabulary.n_words]
        enough = constraint.keep_step(state, token, after, need, row)
        budget = budgets[i]
        if budget is None or budget >= enough:
            found[i] = after, (begin + number * row_bytes, row)
