"""Which prompts begin alike, and in what order their parts are computed so that no part is computed twice."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Segment", "waves"]

_T = TypeVar("_T")

WORTH_A_PASS = 32
"""Positions that a pass of its own for a shared beginning must save.  A pass over one row costs about as much as a few
positions of a big batch; a shared beginning-of-text id alone is not worth it."""


@dataclass(eq=False)
class Segment(Generic[_T]):
    """Tokens to compute after ``start``, or after the parent's tokens where there is one."""

    tokens: Sequence[int]
    start: Hashable
    """Segments with equal starts begin at the same place."""
    item: _T | None = None
    """The caller's, None for a segment that was made for several others."""
    parent: Segment[_T] | None = None
    below: _T | None = None
    """For a shared segment, an item of one of those that it was made for."""


def waves(segments: Sequence[Segment[_T]]) -> list[list[Segment[_T]]]:
    """Cut segments where sharing pays, and order them: the parents of each wave are in the waves before.

    Every given segment stays, perhaps with fewer tokens and a parent, and never without its last token.

    >>> system = list(range(40))
    >>> one, two = Segment([*system, 1], 0, "one"), Segment([*system, 2, 3], 0, "two")
    >>> [[list(segment.tokens)[-2:] for segment in wave] for wave in waves([one, two])]
    [[[38, 39]], [[1], [2, 3]]]
    """
    by_start: dict[Hashable, list[Segment[_T]]] = {}
    for segment in segments:
        by_start.setdefault(segment.start, []).append(segment)
    levels: list[list[Segment[_T]]] = []
    # Each entry: segments that begin at the same place and agree in their first ``agreed`` tokens.
    work = [(group, 0, 0) for group in by_start.values()]
    while work:
        group, agreed, level = work.pop()
        while len(levels) <= level:
            levels.append([])
        if len(group) == 1:
            levels[level].append(group[0])
            continue
        common = _common(group, agreed)
        if common * (len(group) - 1) >= WORTH_A_PASS:
            first = group[0]
            shared: Segment[_T] = Segment(first.tokens[:common], first.start, None, first.parent, first.item)
            levels[level].append(shared)
            for segment in group:
                segment.tokens, segment.parent = segment.tokens[common:], shared
            work.append((group, 0, level + 1))
            continue
        by_next: dict[int, list[Segment[_T]]] = {}
        for segment in group:
            if len(segment.tokens) - 1 <= common:
                levels[level].append(segment)
            else:
                by_next.setdefault(segment.tokens[common], []).append(segment)
        work += [(part, common, level) for part in by_next.values()]
    return levels


def _common(group: Sequence[Segment[_T]], agreed: int) -> int:
    """The number of tokens in which all agree, leaving at least the last one to each."""
    limit = min(len(segment.tokens) for segment in group) - 1
    first = group[0].tokens
    common = min(agreed, limit)
    while common < limit and all(segment.tokens[common] == first[common] for segment in group):
        common += 1
    return common
