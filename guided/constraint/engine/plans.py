"""What is known of a step before a kernel takes it: so the steps of many constraints can share a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from guided.kernels.masking.tracks import Mode

__all__ = ["Back", "Grow", "Plan", "SelfLoop", "Track"]

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


Back: TypeAlias = Callable[[int, Sequence[int]], int]
"""The state behind what kernels did: from the automaton's, and the tokens since with what was said of them."""


class Track(NamedTuple):
    """Where a text stands for kernels that go on by themselves: see `guided.kernels.masking.tracks`."""

    own: int
    """The automaton's state."""
    mode: Mode
    depth: int = -1
    arrays: int = 0
    names: int = 0
    used: bytes = b""
    """Names, each behind its container's number and its size."""
    name: bytes = b""
    is_free: bool = True
    back: Back | None = None
    """What makes the state, where kernels remember anything; None: it is the automaton's."""
