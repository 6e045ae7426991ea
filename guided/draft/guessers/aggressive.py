"""`Aggressive`: the input is the draft of the output, for texts that mostly copy it: corrections, edits, translations.

Input-guided aggressive decoding (Ge et al., 2022, arXiv 2205.10350): the rest of the input is drafted; after a
disagreement nothing is, until what was written last occurs at one place of the input only, from where it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from guided.draft.drafter import Context, Observed
from guided.draft.proposal import Proposal, chain
from guided.infer.chance import Chance

__all__ = ["Aggressive"]

Source = Callable[[Context], Sequence[int]]


class Aggressive:
    """Drafts the input from where the output has come to.

    ``source`` gives the tokens that the output is like, by default the prompt; ``longest`` is the most tokens by which
    the place is found again.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> _, counts = draft.speculate(0, model, [[0, 1, 2] * 6], [None], draft.Aggressive(), greedy=True, max_tokens=12)
    >>> counts.passes  # the text is like its prompt
    2
    """

    def __init__(self, source: Source | None = None, longest: int = 5) -> None:
        self._source = source or _prompt
        self.longest = longest
        self._inputs: dict[int, tuple[int, ...]] = {}
        self._at: dict[int, tuple[int, int | None]] = {}
        """By row: how much of its text was compared, and where in the input that ends; None: nowhere."""

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The rest of the input as far as the budget goes; nothing where the place is lost."""
        return [chain(self._rest(context)) for context in contexts]

    def _rest(self, context: Context) -> Sequence[int]:
        row = context.row
        if row not in self._inputs:
            self._inputs[row] = tuple(self._source(context))
            self._at[row] = (context.n_prompt, 0)
        tokens, source = context.tokens, self._inputs[row]
        n_read, at = self._at[row]
        while at is not None and n_read < len(tokens):
            at = at + 1 if at < len(source) and source[at] == tokens[n_read] else None
            n_read += 1
        if at is None:
            at = self._aligned(tokens[max(context.n_prompt, len(tokens) - self.longest) :], source)
        self._at[row] = (len(tokens), at)
        return () if at is None else source[at : at + context.longest]

    def _aligned(self, written: Sequence[int], source: tuple[int, ...]) -> int | None:
        """The place after the shortest suffix of what was written that occurs just once in the input."""
        for n in range(1, len(written) + 1):
            suffix = tuple(written[len(written) - n :])
            places = [i for i in range(n, len(source) + 1) if source[i - n : i] == suffix]
            if len(places) < 2:
                return places[0] if places else None
        return None

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing: the text is compared when a draft is wanted."""

    def leave(self, rows: Sequence[int]) -> None:
        """Forget where rows were."""
        for row in rows:
            self._inputs.pop(row, None)
            self._at.pop(row, None)


def _prompt(context: Context) -> Sequence[int]:
    return context.tokens[: context.n_prompt]
