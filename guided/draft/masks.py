"""The masks of rows that decode: each position's is filled once, whoever asks for it, and those of a batch by one call.

A position is a state of the row's constraint and the number of tokens that are left.  Drafts, steering, verification
and forced tokens all ask here, so what one of them asked for is there for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.batch import fill_masks
from guided.constraint.protocol import Constrains
from guided.lm.model import LanguageModel
from guided.steer.declaration import Declaration, Seen
from guided.steer.masking import Masked, StatesOfTexts, only_allowed

__all__ = ["MaskedRows", "RowMasks", "after", "fill_positions"]


def after(constraint: Constrains | None, state: int, token: int) -> int:
    """The state after a token that a model may score and the vocabulary need not have; 1 without a constraint."""
    if constraint is None:
        return 1
    return constraint.advance(state, token) if token < constraint.vocabulary.size else 0


class RowMasks:
    """The masks of one row's constraint, None for a row without one.

    ``end_in_time`` allows only tokens after which the text still ends within the tokens that are left; else it does not
    matter how many are.
    """

    def __init__(self, constraint: Constrains | None, *, end_in_time: bool) -> None:
        self.constraint = constraint
        self.start = 0 if constraint is None else constraint.start
        self.end_in_time = end_in_time and constraint is not None
        self._texts = None if constraint is None else StatesOfTexts(constraint)
        self._known: dict[tuple[int, int], NDArray[np.uint32]] = {}
        self._older: dict[tuple[int, int], NDArray[np.uint32]] = {}

    def advance(self, state: int, token: int) -> int:
        """The state after a token; 1 without a constraint, 0 when it is not allowed."""
        return after(self.constraint, state, token)

    def after_text(self, text: tuple[int, ...]) -> int:
        """The state after a text, 0 after one that is not allowed and where there is no constraint."""
        return 0 if self._texts is None else self._texts.after(text)

    def allowed(self, state: int, left: int, width: int) -> NDArray[np.bool_] | None:
        """``bool[width]``: the tokens that may come, with ``left`` tokens to the limit; None: all.

        No token is allowed where no text ends in time.
        """
        if self.constraint is None:
            return None
        row = self.packed(state, left)
        flags = tokenset.flags(row, min(width, 32 * row.size))
        found = np.zeros(width, np.bool_)
        found[: flags.size] = flags
        return found

    def only_token(self, state: int, left: int, width: int) -> int | None:
        """The one token that may come, if there is no choice."""
        if self.constraint is None:
            return None
        first = tokenset.first_ids(self.packed(state, left), 2).tolist()
        return first[0] if len(first) == 1 and first[0] < width else None

    def packed(self, state: int, left: int) -> NDArray[np.uint32]:
        """The mask of a position of a row with a constraint; all 0 where no text ends in time."""
        fill_positions([(self, state, left)])
        return self._known[self.position(state, left)]

    def check_start(self, left: int) -> None:
        """Raise `LimitError` where no text fits in ``left`` tokens."""
        if self.constraint is not None and self.end_in_time and not self.packed(self.start, left).any():
            self.constraint.fill_budget_mask(self.start, np.empty_like(self.packed(self.start, left)), left)

    def position(self, state: int, left: int) -> tuple[int, int]:
        """What the mask depends on."""
        return state, left if self.end_in_time else 0

    def has(self, state: int, left: int) -> bool:
        """Is the mask of this position known?  It then stays so in this round and the next one."""
        position = self.position(state, left)
        if position not in self._known and position in self._older:
            self._known[position] = self._older[position]
        return position in self._known

    def note(self, state: int, left: int, row: NDArray[np.uint32]) -> None:
        """Keep the mask of a position."""
        self._known[self.position(state, left)] = row

    def next_round(self) -> None:
        """Forget what the last round neither filled nor asked for."""
        self._known, self._older = {}, self._known


def fill_positions(asked: Iterable[tuple[RowMasks, int, int]]) -> None:
    """Fill the masks of all positions (row, state, tokens left) that are not known, by one call of `fill_masks`."""
    missing: dict[tuple[int, int, int], tuple[RowMasks, Constrains, int, int]] = {}
    for masks, state, left in asked:
        if masks.constraint is not None and not masks.has(state, left):
            missing[(id(masks), *masks.position(state, left))] = masks, masks.constraint, state, left
    if not missing:
        return
    constraints = [constraint for _, constraint, _, _ in missing.values()]
    states = [state for _, _, state, _ in missing.values()]
    budgets = [left if masks.end_in_time else None for masks, _, _, left in missing.values()]
    rows = np.empty((len(states), max(each.vocabulary.n_words for each in constraints)), np.uint32)
    fill_masks(constraints, states, rows, budgets=budgets, unfinishable=[])
    for (masks, constraint, state, left), row in zip(missing.values(), rows, strict=True):
        masks.note(state, left, row[: constraint.vocabulary.n_words])


@dataclass(frozen=True, eq=False)
class MaskedRows:
    """What the constraint of each row allows, as a steerer: what speaks after it chooses among allowed tokens.

    As `guided.steer.Masked`, with a constraint for each row.
    """

    rows: Mapping[int, tuple[RowMasks, int]]
    """The masks of each row and the tokens that it may have, by `Seen.rows`; what joins the batch later is put in."""

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, and where the prompt ends; raises `VocabularyError` for a constraint over more ids."""
        for masks, max_tokens in self.rows.values():
            if masks.constraint is not None:
                Masked(masks.constraint, max_tokens).check_width(model.width)
        return Declaration(text=True, prompt_end=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The logits with the forbidden tokens at ``-inf``; all stay after a text that cannot be ended in time."""
        asked: list[tuple[RowMasks, int, int] | None] = []
        for number, text, length in zip(seen.rows, seen.texts, seen.prompt_lengths, strict=True):
            (masks, max_tokens), emitted = self.rows[number], text[length:]
            state = masks.after_text(emitted)
            asked.append((masks, state, max_tokens - len(emitted)) if state else None)
        fill_positions(each for each in asked if each is not None)
        rows = np.full((len(asked), tokenset.n_words(logits.shape[1])), ~np.uint32(0), np.uint32)
        for row, position in zip(rows, asked, strict=True):
            found = None if position is None else position[0].packed(*position[1:])
            if found is not None and found.any():
                row[:] = 0
                n = min(row.size, found.size)
                row[:n] = found[:n]
        return only_allowed(logits, rows)
