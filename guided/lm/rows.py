"""Checks of what callers pass to `Sequences`: one entry a row, ids that exist, paths that are in the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from guided.errors import GuidedError
from guided.lm.model import Tree

__all__ = ["checked_ids", "checked_path", "one_each"]

_T = TypeVar("_T")


def one_each(values: Sequence[_T], n_rows: int) -> Sequence[_T]:
    """The values, one for each row.  Raises `GuidedError` for another number of entries."""
    if len(values) != n_rows:
        raise GuidedError(f"{len(values)} entries for {n_rows} rows", remedy="Give one for each row.")
    return values


def checked_ids(tokens: Sequence[int], width: int) -> tuple[int, ...]:
    """The ids as Python ints, all in ``range(width)``.  Raises `GuidedError` for others."""
    ids = tuple(int(token) for token in tokens)
    if ids and not (min(ids) >= 0 and max(ids) < width):
        outside = [token for token in ids if not 0 <= token < width]
        raise GuidedError(
            f"the ids {outside[:5]} are not in range({width})", remedy="Use the tokenizer that belongs to this model."
        )
    return ids


def checked_path(tree: Tree, path: Sequence[int]) -> tuple[int, ...]:
    """The nodes of a path that leads from the tree's row downwards.  Raises `GuidedError` where they do not."""
    nodes = tuple(int(node) for node in path)
    if nodes and (not 0 <= nodes[-1] < len(tree) or tree.path(nodes[-1]) != nodes):
        raise GuidedError(
            f"{nodes} is no path of the tree from its row downwards", remedy="Pass tree.path(node), or () for nothing."
        )
    return nodes
