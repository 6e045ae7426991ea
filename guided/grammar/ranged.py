"""Terminals for the decimal numbers between bounds, which engines write by the bounds' digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from guided.collection import untrack
from guided.grammar.ir import Terminal
from guided.grammar.regular.expr import Expr

__all__ = ["Magnitudes", "RangedTerminal", "Ranges"]


class Magnitudes(NamedTuple):
    """The numbers from one bound to another, without their sign; bounds are digits before and behind the point.

    Before the point is one digit at least, without leading zeros; behind it are no trailing ones.  ``low`` may be the
    number 0 only if that is not in the range: where it is, there is no lower bound.  Without an upper bound (None)
    there is a lower one above 0.
    """

    low: tuple[str, str] | None
    low_open: bool
    high: tuple[str, str] | None
    high_open: bool


class Ranges(NamedTuple):
    """Numbers as they are written in JSON: those without a minus sign, and those with one.

    Whole numbers may have a point and zeros behind it; none has a point where they are ``digits`` alone.  Other numbers
    may also be in normalised scientific notation (one digit that is not zero before the point), or zero with any
    exponent; where they are ``usual``, with the exponents alone with which programs write doubles.
    """

    positive: Magnitudes | None
    negative: Magnitudes | None
    whole: bool
    digits: bool
    usual: bool = False


class RangedTerminal(Terminal):
    """Numbers between bounds; the expression is made when it is looked at, by ``make``."""

    __slots__ = ("_make", "ranges")

    ranges: Ranges
    _make: Callable[[], Expr]

    @classmethod
    def of(cls, ranges: Ranges, make: Callable[[], Expr], label: str) -> RangedTerminal:
        """``make`` must give the language of all of ``ranges``, which must not be empty."""
        made = object.__new__(cls)
        made.ranges, made._make, made.label, made.lexer = ranges, make, label, None
        untrack(made)
        return made

    def __getattr__(self, name: str) -> Any:
        if name != "expr":
            raise AttributeError(name)
        self.expr = self._make()
        return self.expr
