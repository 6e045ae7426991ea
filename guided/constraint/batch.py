"""`fill_masks`: the masks of a whole batch by one call, each row from its own constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.constraint import Constraint, KeptRow
from guided.constraint.pool import spread
from guided.constraint.protocol import Constrains
from guided.errors import LimitError, VocabularyError

__all__ = ["fill_masks", "mask_rows"]

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
    if min(widths, default=0) < rows.shape[1]:
        rows[:] = 0
    kept = [
        _remembered(owner, state) if budget is None else None
        for owner, state, budget in zip(owners, given, left, strict=True)
    ]
    missing = [i for i, row in enumerate(kept) if row is None]
    if missing:

        def fill(low: int, high: int) -> None:
            for i in missing[low:high]:
                try:
                    kept[i] = _made(owners[i], given[i], rows[i], left[i])
                except LimitError:
                    if unfinishable is None:
                        raise
                    rows[i] = 0
                    unfinishable.append(i)

        spread(fill, len(missing), threads)
    _copy(kept, widths, rows, threads)


def _remembered(owner: Constrains, state: int) -> KeptRow | None:
    """The mask of a state, where the constraint has it at hand."""
    return owner.remembered_row(state) if isinstance(owner, Constraint) else None


def _made(owner: Constrains, state: int, row: NDArray[np.uint32], budget: int | None) -> KeptRow | None:
    """The mask of a state that is to be copied; None where it is in ``row`` already."""
    if isinstance(owner, Constraint) and budget is None:
        return owner.kept_row(state)
    row = row[: owner.vocabulary.n_words]
    if state == 0:
        row[:] = 0
    elif budget is None:
        owner.fill_mask(state, row)
    else:
        owner.fill_budget_mask(state, row, budget)
    return None


def _copy(kept: Sequence[KeptRow | None], widths: Sequence[int], rows: NDArray[np.uint32], threads: int) -> None:
    """Copy masks to the beginnings of rows, those of other widths than the rows' too."""
    if not any(kept):
        return
    from guided.kernels.masking.apply import copy_rows

    table = np.array(
        [(0, 0, 0) if row is None else (row[0], 1, width) for row, width in zip(kept, widths, strict=True)], np.int64
    )
    # Rows that come from no cache come at the speed of memory, which one core does not reach.
    share = min(threads, len(kept) // COPIES_A_THREAD)
    # Rows that are part of wider ones, as they are seldom: the kernel knows none.
    whole = np.ascontiguousarray(rows)
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
