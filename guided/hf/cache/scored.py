"""Scores by prefix: what the last passes said, kept so that forking, rolling back and reading twice cost no pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, overload

import torch

from guided.lm import Scores

__all__ = ["RowScores", "ScoreStore"]

Entry: TypeAlias = "tuple[Scores, int]"
"""The scores of a pass, never written to or handed out, and the position in them."""


@dataclass
class ScoreStore:
    """The scores of prefixes, as far as they are known."""

    empty: Scores
    """Scores of no position at all, which give the widths and types."""

    def __post_init__(self) -> None:
        self._entries: dict[int, Entry] = {}

    def __contains__(self, prefix: int) -> bool:
        return prefix in self._entries

    def add(self, prefixes: Sequence[int], scores: Scores) -> None:
        """Note the scores of a pass, one position for each prefix."""
        self._entries.update((prefix, (scores, at)) for at, prefix in enumerate(prefixes))

    def keep(self, prefixes: Iterable[int]) -> None:
        """Forget everything else, and the memory of passes with it."""
        kept = {prefix: self._entries[prefix] for prefix in prefixes if prefix in self._entries}
        if len({id(scores) for scores, _ in kept.values()}) > 1 or any(len(s) > len(kept) for s, _ in kept.values()):
            scores = taken(list(kept.values()), self.empty)
            kept = {prefix: (scores, at) for at, prefix in enumerate(kept)}
        self._entries = kept

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Prefixes have other numbers now; those that have none are forgotten."""
        self._entries = {numbers[prefix]: entry for prefix, entry in self._entries.items() if prefix in numbers}

    def entries(self, prefixes: Sequence[int]) -> list[Entry]:
        """The entries of known prefixes."""
        return [self._entries[prefix] for prefix in prefixes]

    def take(self, prefixes: Sequence[int]) -> Scores:
        """The scores of known prefixes, a copy."""
        return taken(self.entries(prefixes), self.empty)


class RowScores(Sequence[Scores]):
    """The scores of several positions of each row, copied when they are asked for."""

    def __init__(self, rows: Sequence[Sequence[Entry]], empty: Scores) -> None:
        self._rows = rows
        self._empty = empty

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, row: int) -> Scores: ...
    @overload
    def __getitem__(self, row: slice) -> list[Scores]: ...
    def __getitem__(self, row: int | slice) -> Scores | list[Scores]:
        if isinstance(row, slice):
            return [taken(entries, self._empty) for entries in self._rows[row]]
        return taken(self._rows[row], self._empty)


def taken(entries: Sequence[Entry], empty: Scores) -> Scores:
    """Positions of one or several passes put together in new tensors."""
    if not entries:
        return Scores(
            empty.logits.clone(),
            {layer: values.clone() for layer, values in empty.layers.items()},
            None if empty.hidden is None else empty.hidden.clone(),
        )
    runs: list[tuple[Scores, list[int]]] = []
    for scores, at in entries:
        if not runs or runs[-1][0] is not scores:
            runs.append((scores, []))
        runs[-1][1].append(at)
    parts = [(scores, torch.tensor(places, device=scores.logits.device)) for scores, places in runs]

    def joined(values: Sequence[torch.Tensor]) -> torch.Tensor:
        return values[0] if len(values) == 1 else torch.cat(list(values))

    first = runs[0][0]
    return Scores(
        joined([scores.logits.index_select(0, places) for scores, places in parts]),
        {
            layer: joined([scores.layers[layer].index_select(0, places) for scores, places in parts])
            for layer in first.layers
        },
        None
        if first.hidden is None
        else joined([s.hidden.index_select(0, places) for s, places in parts if s.hidden is not None]),
    )
