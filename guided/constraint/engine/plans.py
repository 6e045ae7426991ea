"""What is known of a step before a kernel takes it: so the steps of many constraints can share a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Grow", "Plan", "SelfLoop"]

Plan: TypeAlias = tuple[int, bool, Callable[[int, Any], int] | None, Any]
"""A step in one call of a kernel: the automaton's state, whether it is to mark, what makes a state of what it says
(None: nothing), and what that is given besides."""

Grow: TypeAlias = Callable[[int, Sequence[int]], int]
"""The state behind some tokens."""


class SelfLoop(NamedTuple):
    """A state in a string that takes any characters, which leave it as it is, or at least its mask."""

    characters: bytes
    """By token, 1 for those that are whole characters (`guided.constraint.effects.character_tokens`)."""
    grow: Grow | None
    """What makes the state behind them, where it is another with the same mask; None: it is the same."""
