"""What is known of a step before a kernel takes it: so the steps of many constraints can share a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Grow", "Plan", "SelfLoop", "no_bytes"]

Plan: TypeAlias = tuple[int, bool, Callable[[int, Any], int] | None, Any]
"""A step in one call of a kernel: the automaton's state, whether it is to mark, what makes a state of what it says
(None: nothing), and what that is given besides."""

Grow: TypeAlias = Callable[[int, Sequence[int]], int]
"""The state behind some tokens."""


class SelfLoop(NamedTuple):
    """A state that many tokens leave as it is, or at least its mask, such as inside a string.

    It has what a step needs of the constraint, so that nothing else of it is fetched into a cache.
    """

    lock: Any
    table: int
    """Where the automaton's arrays are: as they were last, which is right, as they only grow."""
    own: int
    """The automaton's state."""
    quiet: bytes
    """By token, 0 for those that change nothing where they leave the automaton's state as it is."""
    grow: Grow | None
    """What makes the state behind such tokens, where it is another with the same mask; None: it is the same."""


@lru_cache(maxsize=4)
def no_bytes(size: int) -> bytes:
    """So many zeros, the same object each time."""
    return bytes(size)
