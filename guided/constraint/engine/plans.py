"""What is known of a step before a kernel takes it: so the steps of many constraints can share a call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

__all__ = ["Loop", "Plan", "no_bytes"]

Plan: TypeAlias = tuple[int, bool, Callable[..., int] | None, tuple[Any, ...]]
"""A step in one call of a kernel: the automaton's state, whether it is to mark, what makes a state of what it says
(None: nothing), and the arguments for that."""

Loop: TypeAlias = tuple[int, bytes, bool]
"""Where tokens may change nothing: the automaton's state; by token, 0 where none of them does anything as long as it
leaves that state as it is; and whether a checker still has to read them."""


@lru_cache(maxsize=4)
def no_bytes(size: int) -> bytes:
    """So many zeros, the same object each time."""
    return bytes(size)
