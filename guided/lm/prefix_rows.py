"""`PrefixSequences`: the bookkeeping of rows for models whose scores are a function of the prefix, without row caches.

A subclass says how scores become known and which may be forgotten; forking, rolling back and drafting are then moves of
pointers to prefixes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from guided.errors import GuidedError
from guided.lm.model import Scores, Tree
from guided.lm.prefixes import Prefixes
from guided.lm.rows import checked_ids, checked_path, one_each

__all__ = ["PrefixSequences"]


class PrefixSequences(ABC):
    """`guided.lm.Sequences` over prefixes; a subclass ends its ``__init__`` with `join` of the prompts."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._prefixes = Prefixes()
        self._root = self._prefixes.root()
        self._rows: list[int] = []
        self._trees: list[tuple[Tree, list[int]]] | None = None

    @abstractmethod
    def _learn(self, prefixes: Sequence[int]) -> None:
        """Make the scores of these prefixes known, each at most once."""

    @abstractmethod
    def _scores(self, prefixes: Sequence[int]) -> Scores:
        """The scores of known prefixes, in new tensors."""

    @abstractmethod
    def _forget(self, wanted: set[int]) -> None:
        """Only these prefixes and the root are still needed."""

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens, prompt included."""
        return self._prefixes.tokens(self._rows[row])

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        self._learn(self._rows)
        return self._scores(self._rows)

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        """Append tokens to each row; scores after each of them."""
        added = [checked_ids(new, self._width) for new in one_each(tokens, len(self))]
        paths = [self._prefixes.after(row, new) for row, new in zip(self._rows, added, strict=True)]
        self._learn([prefix for path in paths for prefix in path])
        found = [self._scores(path) for path in paths]
        # What was just read stays known, so that rolling back into it costs nothing.
        besides = [prefix for path in paths for prefix in path]
        self._set([path[-1] if path else row for row, path in zip(self._rows, paths, strict=True)], besides)
        return found

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        self._rows = [self._rows[range(len(self))[row]] for row in rows]
        self._trees = None

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens; what was read before the last `extend` is then read again.

        Raises `GuidedError` for a length that the row does not have.
        """
        for row, length in zip(self._rows, one_each(lengths, len(self)), strict=True):
            whole = self._prefixes.depth(row)
            if not 0 <= length <= whole:
                raise GuidedError(f"a row of {whole} tokens cannot be cropped to {length}", remedy="Give 0 or more.")
        self._rows = [self._prefixes.cut(row, int(length)) for row, length in zip(self._rows, lengths, strict=True)]
        self._trees = None

    def extend_tree(self, trees: Sequence[Tree]) -> list[Scores]:
        """Scores of every node of a tree for each row; appends nothing."""
        found: list[list[int]] = []
        for row, tree in zip(self._rows, one_each(trees, len(self)), strict=True):
            nodes: list[int] = []
            for token, parent in zip(checked_ids(tree.tokens, self._width), tree.parents, strict=True):
                nodes.append(self._prefixes.child(nodes[parent] if parent >= 0 else row, token))
            found.append(nodes)
        self._learn([node for nodes in found for node in nodes])
        self._trees = list(zip(trees, found, strict=True))
        return [self._scores(nodes) for nodes in found]

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree.  Raises `GuidedError` where no tree was scored."""
        if self._trees is None:
            raise GuidedError("there is no tree to keep a path of", remedy="Call extend_tree first.")
        ends: list[int] = []
        for row, (tree, nodes), path in zip(self._rows, self._trees, one_each(paths, len(self)), strict=True):
            chosen = checked_path(tree, path)
            ends.append(nodes[chosen[-1]] if chosen else row)
        self._set(ends)

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        paths = [self._prefixes.after(self._root, checked_ids(prompt, self._width)) for prompt in prompts]
        new = [path[-1] if path else self._root for path in paths]
        self._learn(new)
        self._set([*self._rows, *new])

    def _set(self, rows: list[int], besides: Iterable[int] = ()) -> None:
        self._rows, self._trees = rows, None
        self._forget({*rows, *besides})
