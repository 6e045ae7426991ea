"""Decimal numbers between bounds, as `guided.grammar.ir.RangedTerminal` has them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Magnitudes", "Ranges"]


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
