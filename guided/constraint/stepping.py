"""`step_rows`: the next token and the mask after it in every row of a batch, by calls that all rows share.

To a new text nearly every state is new.  To take its step alone costs some 20 us in a process whose model has used all
caches since, mostly of Python; here one call takes all steps and writes the masks, and another those that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from guided.constraint.constraint import Constraint
from guided.constraint.effects.shared_rows import KeptRow
from guided.constraint.engine.plans import SelfLoop
from guided.constraint.product import PAIRS
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.kernels.masking import stepping as kernels

__all__ = ["Step", "step_rows"]

MOMENT = 20_000
"""Parser and walk steps of a row: one that takes more is left to the caller."""

BRIEF = 2_000
"""The same of a mask that is written and not remembered: one that takes more is worth looking up."""


class Step(NamedTuple):
    """What became of a row."""

    state: int
    mask: KeptRow
    loop: SelfLoop | None
    """The tokens that change nothing here, where the row is in a string, and that is known."""


class _Reached(NamedTuple):
    """A row whose step is taken, and whose mask is not made."""

    row: int
    constraint: Constraint
    state: int
    loop: SelfLoop | None


def step_rows(
    constraints: Sequence[Constrains],
    states: Sequence[int],
    tokens: Sequence[int],
    budgets: Sequence[int | None],
    rows: Sequence[KeptRow],
) -> list[Step | None]:
    """For each row the state after its token and that state's mask, as `Constraint.advance` and ``kept_row`` say.

    ``budgets`` are the tokens that are left behind this one; None: no limit.  A mask may be written to the array of
    ``rows[i]``.  Nothing is said of a row that asks for what is not made yet, as where a first mask would be; that
    takes more than a moment or comes to a limit; whose text ends or cannot go on; or that is near the end of its
    budget.  Nor of a row of a grammar with a lexer, or of what is no `Constraint`.  `Constraint.advance` is for all of
    these.

    >>> import guided, numpy
    >>> from guided.constraint.effects.shared_rows import with_address
    >>> vocabulary = guided.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    >>> constraint = guided.compile(guided.regex("a?bc"), vocabulary)
    >>> first = constraint.kept_row(constraint.start)
    >>> rows = [with_address(numpy.zeros(9, numpy.uint32)) for _ in range(2)]
    >>> step, refused = step_rows([constraint] * 2, [constraint.start] * 2, list(b"ac"), [None] * 2, rows)
    >>> step.state == constraint.advance(constraint.start, ord("a")), refused
    (True, None)
    """
    held: list[tuple[int, Constraint]] = []
    found: list[Step | None] = [None] * len(constraints)
    try:
        for row, each in enumerate(constraints):
            if isinstance(each, Constraint) and each.hold_free():
                held.append((row, each))
        _mask(_advance(held, states, tokens, budgets, rows, found), budgets, found)
        return found
    finally:
        for _, each in held:
            each.end_step()


def _advance(
    held: Iterable[tuple[int, Constraint]],
    states: Sequence[int],
    tokens: Sequence[int],
    budgets: Sequence[int | None],
    rows: Sequence[KeptRow],
    found: list[Step | None],
) -> list[_Reached]:
    """Take the steps, those that nobody took before by one call, which also writes the masks that no budget changes."""
    reached: list[_Reached] = []
    new = []
    jobs: list[int] = []
    for row, constraint in held:
        state, token = states[row], tokens[row]
        # Pairs hold what a text holds, and hardly another comes to one.
        after = constraint.known_step(state, token) if state < PAIRS else None
        if after is None:
            free = budgets[row] is None
            planned = constraint.plan_step(state, token, not free)
            if planned is not None:
                table, (own, marking, land, given) = planned
                root, in_string, ends, words = constraint.mask_parts
                where, _ = rows[row]
                new.append((row, constraint, state, token, marking, land, given))
                jobs += (table, marking, own, token, root if free else 0, in_string, ends, 1, words, where, 1, words)
        elif after > constraint.end:
            reached.append(_Reached(row, constraint, after, None))
    if not jobs:
        return reached
    lines = np.array(jobs, np.int64).reshape(-1, 3)
    kernels.step_rows(lines, MOMENT, BRIEF)
    for (row, constraint, state, token, marking, land, given), (own, code, in_string) in zip(
        new, lines[1 :: kernels.LINES].tolist(), strict=True
    ):
        if own < 0:
            continue
        try:
            after = own if land is None else land(own, given)
            if state < PAIRS:
                constraint.keep_step(state, token, after)
            if after > constraint.end:
                loop = constraint.self_loop(after) if in_string else None
                if code >= 0 and constraint.bare(after) == (own >> 2 if marking else own):
                    found[row] = Step(after, rows[row], loop)
                else:
                    reached.append(_Reached(row, constraint, after, loop))
        except GuidedError:
            continue  # `Constraint.advance` comes to the same limit, for this row alone.
    return reached


def _mask(reached: Sequence[_Reached], budgets: Sequence[int | None], found: list[Step | None]) -> None:
    """The masks of the states, those that are not at hand by one call."""
    new: list[_Reached] = []
    jobs = []
    for each in reached:
        row, constraint, state, loop = each
        try:
            kept = constraint.mask_at_hand(state, budgets[row])
            job = None if kept is not None else constraint.mask_job(state)
        except GuidedError:
            continue  # As above.
        if kept is not None:
            found[row] = Step(state, kept, loop)
        elif job is not None:
            new.append(each)
            jobs.append(job)
    if not jobs:
        return
    lines = np.array(jobs, np.int64)
    masks = np.empty((len(jobs), max(each.constraint.vocabulary.n_words for each in new)), np.uint32)
    kernels.fill_rows(lines, masks, MOMENT)
    for number, ((row, constraint, state, loop), (code, need, own, *_)) in enumerate(
        zip(new, lines.tolist(), strict=True)
    ):
        if code >= 0:
            mask = masks[number, : constraint.vocabulary.n_words]
            try:
                kept = constraint.keep_mask(state, own, code, need, mask, budgets[row])
            except GuidedError:
                continue  # As above.
            if kept is not None:
                found[row] = Step(state, kept, loop)
