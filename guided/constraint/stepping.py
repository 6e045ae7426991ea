"""`step_rows`: the next token and the mask after it in every row of a batch, by two calls without the interpreter.

To a new text nearly every state is new.  To take its step alone costs some 20 us in a process whose model has used all
caches since, mostly of Python; here all rows share a call, and so they do for the masks that nobody has made before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from guided.constraint.constraint import Constraint
from guided.constraint.effects.shared_rows import KeptRow
from guided.constraint.engine.plans import SelfLoop
from guided.constraint.product import PAIRS
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError

__all__ = ["Step", "self_loop", "stays", "step_rows"]

Step: TypeAlias = tuple[int, KeptRow]
"""The state after a token, and its mask."""

MOMENT = 20_000
"""Parser and walk steps of a row: one that takes more is left to the caller."""


def self_loop(constraint: Constrains, state: int) -> SelfLoop | None:
    """The self-loop of a state, where it has one and no other thread is at work in the constraint."""
    if not isinstance(constraint, Constraint) or not constraint.hold_free():
        return None
    try:
        return constraint.self_loop(state)
    finally:
        constraint.end_step()


def stays(loops: Sequence[SelfLoop | None], tokens: Sequence[int]) -> list[bool]:
    """Whether each token surely leaves the automaton in the state of its self-loop, by one call for all."""
    from guided.kernels.masking.stepping import advance_rows

    found = [False] * len(loops)
    rows: list[int] = []
    jobs: list[int] = []
    held = []
    try:
        for row, loop in enumerate(loops):
            if loop is None:
                continue
            lock, table, own, quiet, _ = loop
            token = tokens[row]
            if 0 <= token < len(quiet) and not quiet[token] and lock.acquire(False):
                held.append(lock)
                rows.append(row)
                jobs += (table, 0, own, token, 0)
        if jobs:
            lines = np.array(jobs, np.int64).reshape(-1, 5)
            advance_rows(lines, MOMENT)
            for row, same in zip(rows, (lines[:, 2] == lines[:, 4]).tolist(), strict=True):
                found[row] = same
    finally:
        for lock in held:
            lock.release()
    return found


class _Reached(NamedTuple):
    """A row whose step is taken."""

    row: int
    constraint: Constraint
    state: int


def step_rows(
    constraints: Sequence[Constrains], states: Sequence[int], tokens: Sequence[int], budgets: Sequence[int | None]
) -> list[Step | None]:
    """For each row the state after its token and that state's mask, as `Constraint.advance` and ``kept_row`` say.

    ``budgets`` are the tokens that are left behind this one; None: no limit.  Nothing is said of a row that takes more
    than a moment or comes to a limit, whose text ends or cannot go on, or that is near the end of its budget; and of no
    row of a grammar with a lexer, nor of what is no `Constraint`.  `Constraint.advance` is for all of these.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    >>> constraint = guided.compile(guided.regex("a?bc"), vocabulary)
    >>> state = constraint.advance(constraint.start, ord("a"))
    >>> known = constraint.kept_row(state)
    >>> step_rows([constraint] * 2, [constraint.start] * 2, list(b"ac"), [None] * 2) == [(state, known), None]
    True
    """
    held: list[tuple[int, Constraint]] = []
    try:
        for row, each in enumerate(constraints):
            if isinstance(each, Constraint) and each.hold_free():
                held.append((row, each))
        return _masked(len(constraints), _advanced(held, states, tokens, budgets), budgets)
    finally:
        for _, each in held:
            each.end_step()


def _advanced(
    rows: Iterable[tuple[int, Constraint]],
    states: Sequence[int],
    tokens: Sequence[int],
    budgets: Sequence[int | None],
) -> list[_Reached]:
    """Take the steps, those that nobody took before by one call."""
    from guided.kernels.masking.stepping import advance_rows

    reached: list[_Reached] = []
    new = []
    jobs = []
    for row, constraint in rows:
        state, token = states[row], tokens[row]
        # Pairs hold what a text holds, and hardly another comes to one.
        after = constraint.known_step(state, token) if state < PAIRS else None
        if after is None:
            planned = constraint.plan_step(state, token, budgets[row] is not None)
            if planned is not None:
                table, (own, marking, land, given) = planned
                new.append((row, constraint, state, token, land, given))
                jobs.append((table, marking, own, token, 0))
        elif after > constraint.end:
            reached.append(_Reached(row, constraint, after))
    if jobs:
        lines = np.array(jobs, np.int64)
        advance_rows(lines, MOMENT)
        for (row, constraint, state, token, land, given), found in zip(new, lines[:, 4].tolist(), strict=True):
            if found < 0:
                continue
            try:
                after = found if land is None else land(found, given)
            except GuidedError:
                continue  # `Constraint.advance` comes to the same limit, for this row alone.
            if state < PAIRS:
                constraint.keep_step(state, token, after)
            if after > constraint.end:
                reached.append(_Reached(row, constraint, after))
    return reached


def _masked(n: int, reached: Sequence[_Reached], budgets: Sequence[int | None]) -> list[Step | None]:
    """The masks of the states, those that are not at hand by one call."""
    found: list[Step | None] = [None] * n
    new: list[_Reached] = []
    jobs = []
    for each in reached:
        row, constraint, state = each
        try:
            kept = constraint.mask_at_hand(state, budgets[row])
            job = None if kept is not None else constraint.mask_job(state)
        except GuidedError:
            continue  # As above.
        if kept is not None:
            found[row] = state, kept
            continue
        if job is not None:
            new.append(each)
            jobs.append(job)
    if jobs:
        from guided.kernels.masking.stepping import fill_rows

        lines = np.array(jobs, np.int64)
        masks = np.empty((len(jobs), max(each.constraint.vocabulary.n_words for each in new)), np.uint32)
        fill_rows(lines, masks, MOMENT)
        for number, ((row, constraint, state), (code, need, own, *_)) in enumerate(
            zip(new, lines.tolist(), strict=True)
        ):
            if code >= 0:
                mask = masks[number, : constraint.vocabulary.n_words]
                try:
                    kept = constraint.keep_mask(state, own, code, need, mask, budgets[row])
                except GuidedError:
                    continue  # As above.
                if kept is not None:
                    found[row] = state, kept
    return found
