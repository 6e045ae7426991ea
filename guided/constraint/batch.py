"""`fill_masks`: the masks of a whole batch by one call, each row from its own constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.constraint import Constraint
from guided.constraint.effects.shared_rows import KeptRow, with_address
from guided.constraint.pool import spread
from guided.constraint.protocol import Constrains
from guided.errors import LimitError, VocabularyError
from guided.kernels.masking.apply import copy_rows

__all__ = ["fill_masks", "kept_rows", "mask_rows", "write_rows"]

_NOTHING = 0, 1, 0
"""A row that is left as it is."""

COPIES_A_THREAD = 16
"""Rows of 16 KB that take longer to copy, when no cache holds them, than the 30 us that another thread costs."""


def fill_masks(
    constraints: Constrains | Sequence[Constrains],
    states: Sequence[int],
    out: Any,
    *,
    threads: int = 1,
    budgets: int | Sequence[int | None] | None = None,
    unfinishable: list[int] | None = None,
) -> None:
    """Write the mask of ``states[i]`` under ``constraints[i]`` (one constraint: for all rows) to row ``i`` of ``out``.

    ``out`` is an array or CPU tensor, ``int32`` or ``uint32[n, words]``, such as `guided.allocate_masks` makes: token
    ``t`` is bit ``t & 31`` of word ``t >> 5``; words beyond the vocabulary become 0, and so do rows of dead states.
    ``budgets`` counts the tokens that are left, for all rows or for each, None: without a limit; see
    ``Constraint.fill_budget_mask``.

    Rows that a constraint remembers are copied by one compiled call; the others are made on ``threads`` threads, which
    a pool keeps.  They run in parallel where they belong to different constraints, as long as they are in compiled
    code.  Raises `VocabularyError` when a row is too narrow, `LimitError` when a budget fits no text; the other rows
    are then filled or not.  With a list ``unfinishable`` such rows become 0 instead, and their numbers are added to it.

    >>> import guided, numpy
    >>> vocabulary = guided.Vocabulary.from_tokens([b"yes", b"no", b"y", None], eos_ids=[3])
    >>> constraint = guided.compile(guided.choice(["yes", "no"]), vocabulary)
    >>> masks = numpy.zeros((2, 1), numpy.uint32)
    >>> guided.fill_masks(constraint, [constraint.start, constraint.advance(constraint.start, 1)], masks)
    >>> masks.ravel().tolist()
    [3, 8]
    """
    rows = mask_rows(out)
    n = rows.shape[0]
    owners = list(constraints) if isinstance(constraints, Sequence) else [constraints] * n
    left = list(budgets) if isinstance(budgets, Sequence) else [budgets] * n
    given = [int(state) for state in states]
    widths = [owner.vocabulary.n_words for owner in owners]
    for what, count in (("constraints", len(owners)), ("states", len(given)), ("budgets", len(left))):
        if count != n:
            raise ValueError(f"{count} {what} for {n} rows of masks")
    if max(widths, default=0) > rows.shape[1]:
        raise VocabularyError(
            f"rows of {rows.shape[1]} words are too narrow for a vocabulary of {max(widths)} words",
            remedy="Allocate masks for the vocabulary's size.",
        )
    write_rows(kept_rows(owners, given, left, threads=threads, unfinishable=unfinishable), rows, threads)


def kept_rows(
    owners: Sequence[Constrains],
    states: Sequence[int],
    budgets: Sequence[int | None],
    *,
    threads: int = 1,
    unfinishable: list[int] | None = None,
) -> list[KeptRow]:
    """The masks that `fill_masks` copies, where they are: not to be written to, since others may hold them as well."""
    kept: list[Any] = [None] * len(owners)

    def make(rows: Sequence[int]) -> None:
        for i in rows:
            try:
                kept[i] = _made(owners[i], states[i], budgets[i])
            except LimitError:
                if unfinishable is None:
                    raise
                kept[i] = _new_row(owners[i])
                unfinishable.append(i)

    rows = range(len(owners))
    if threads == 1:
        make(rows)
        return kept
    for i, (owner, state, budget) in enumerate(zip(owners, states, budgets, strict=True)):
        kept[i] = owner.remembered_row(state, budget) if isinstance(owner, Constraint) else None
    # What is at hand is no work that could be shared.
    missing = [i for i in rows if kept[i] is None]
    spread(lambda low, high: make(missing[low:high]), len(missing), threads)
    return kept


def _made(owner: Constrains, state: int, budget: int | None) -> KeptRow:
    """The mask of a state, where it is at hand or anew."""
    if isinstance(owner, Constraint) and state:
        return owner.kept_row(state, budget)
    kept = _new_row(owner)
    if state and budget is None:
        owner.fill_mask(state, kept[1])
    elif state and budget is not None:
        owner.fill_budget_mask(state, kept[1], budget)
    return kept


def _new_row(owner: Constrains) -> KeptRow:
    """A mask of nothing."""
    return with_address(np.zeros(owner.vocabulary.n_words, np.uint32))


def write_rows(kept: Sequence[KeptRow | None], rows: NDArray[np.uint32], threads: int = 1) -> None:
    """Copy masks to the beginnings of rows, which are 0 behind them; None leaves a row as it is."""
    width = rows.shape[1]
    lines: list[tuple[int, int, int]] = []
    n = 0
    for i, mask in enumerate(kept):
        if mask is None:
            lines.append(_NOTHING)
            continue
        where, row = mask
        n += 1
        lines.append((where, 1, row.size))
        if row.size < width:
            rows[i, row.size :] = 0
    if not n:
        return
    table = np.array(lines, np.int64)
    # Rows that come from no cache come at the speed of memory, which one core does not reach.
    share = min(threads, n // COPIES_A_THREAD)
    # Rows that are part of wider ones, as they are seldom: the kernel knows none.
    whole = np.ascontiguousarray(rows)
    if share < 2:
        copy_rows(table, whole)
    else:
        spread(lambda low, high: copy_rows(table[low:high], whole[low:high]), len(kept), share)
    if whole is not rows:
        rows[...] = whole


def mask_rows(masks: Any) -> NDArray[np.uint32]:
    """An array or CPU tensor of packed masks as ``uint32[n, words]``, without a copy.

    Raises `TypeError` for another dtype or shape.
    """
    array: NDArray[Any] = masks if isinstance(masks, np.ndarray) else masks.detach().numpy()
    if array.ndim != 2 or array.dtype not in (np.int32, np.uint32):
        raise TypeError(f"masks are int32 or uint32[rows, words], not {array.dtype}{list(array.shape)}")
    return array.view(np.uint32)
