"""`WrappedModel` and `WrappedSequences`: another model, and its rows with every score passed through a function.

What a wrapper changes is scores; rows, caches, trees and rollbacks stay the inner model's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from guided.lm.model import Abilities, Calls, LanguageModel, Scores, Sequences, Tree

__all__ = ["MappedScores", "WrappedModel", "WrappedSequences"]


class WrappedModel:
    """What a `LanguageModel` over another one says where it changes nothing; ``start`` is the wrapper's own."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    @property
    def width(self) -> int:
        """Number of ids scored."""
        return self.model.width

    @property
    def eos_ids(self) -> frozenset[int]:
        """The ids that end a text."""
        return self.model.eos_ids

    @property
    def can(self) -> Abilities:
        """What the inner model can do."""
        return self.model.can

    @property
    def calls(self) -> Calls:
        """The inner model's counters."""
        return self.model.calls


class MappedScores(Sequence[Scores]):
    """Scores of each row passed through a function when they are asked for, not before.

    >>> from guided.lm import MappedScores, Scores, TableModel
    >>> rows = TableModel.of({}, otherwise=[0.5, 0.5]).start([[0]])
    >>> def doubled(scores):
    ...     return Scores(2 * scores.logits)
    >>> mapped = MappedScores(rows.extend([[1]]), doubled)
    >>> mapped[0].logits.exp().tolist()
    [[0.25, 0.25]]
    """

    def __init__(self, scores: Sequence[Scores], change: Callable[[Scores], Scores]) -> None:
        self._scores = scores
        self._change = change

    def __len__(self) -> int:
        return len(self._scores)

    @overload
    def __getitem__(self, row: int) -> Scores: ...
    @overload
    def __getitem__(self, row: slice) -> list[Scores]: ...
    def __getitem__(self, row: int | slice) -> Scores | list[Scores]:
        if isinstance(row, slice):
            return [self._change(scores) for scores in self._scores[row]]
        return self._change(self._scores[row])


class WrappedSequences:
    """`guided.lm.model.Sequences` over ``inner``, each `Scores` replaced by ``change`` of it.

    ``change`` is called with all k positions of a row, or with the last positions of all rows, and must treat each
    position by itself; it may write into what it is given.

    >>> from guided.lm import Scores, TableModel, WrappedSequences
    >>> def sharper(scores):
    ...     return Scores(2 * scores.logits)
    >>> rows = WrappedSequences(TableModel.of({}, otherwise=[0.75, 0.25]).start([[0]]), sharper)
    >>> rows.last.logits.softmax(-1).numpy().round(2).tolist()
    [[0.9, 0.1]]
    """

    def __init__(self, inner: Sequences, change: Callable[[Scores], Scores]) -> None:
        self.inner = inner
        self.change = change

    def __len__(self) -> int:
        return len(self.inner)

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens, prompt included."""
        return self.inner.tokens(row)

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        return self.change(self.inner.last)

    def extend(self, tokens: Sequence[Sequence[int]]) -> Sequence[Scores]:
        """Append tokens to each row; scores after each of them."""
        return MappedScores(self.inner.extend(tokens), self.change)

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        self.inner.select(rows)

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens."""
        self.inner.crop(lengths)

    def extend_tree(self, trees: Sequence[Tree]) -> Sequence[Scores]:
        """Scores of every node of a tree for each row; appends nothing."""
        return MappedScores(self.inner.extend_tree(trees), self.change)

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree."""
        self.inner.keep(paths)

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        self.inner.join(prompts)
