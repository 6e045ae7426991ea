"""Which ranges of numbers engines write by the digits of their bounds, without an expression."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from guided.grammar.json_schema.layout import Spelling
from guided.grammar.json_schema.numbers.digits import digits_of
from guided.grammar.json_schema.numbers.number_text import in_notation
from guided.grammar.json_schema.numbers.ranges import Notation, NumberRange
from guided.grammar.ranged import Magnitudes, Ranges

__all__ = ["ranges_of"]

Bound: TypeAlias = Fraction | int | None

MOST_WHOLE = 10**19
"""Bounds on numbers of 64 bits lie below; engines have no room for far larger ones."""
MOST_PLACES = 17
"""Digits behind the point of a bound; few programs write more."""


def ranges_of(numbers: NumberRange, spelling: Spelling = Spelling.ANY) -> Ranges | None:
    """The magnitudes in a range between two bounds, or beyond one and of one sign; None for others, and single numbers.

    Integers beyond one bound are left too, but for plain ones: they have an exponent wherever it says enough.
    """
    numbers = in_notation(numbers, spelling)
    low, high = _whole(numbers.low), _whole(numbers.high)
    if (low is None and (high is None or high >= 0)) or (high is None and (low is None or low <= 0)):
        return None
    if low == high or numbers.avoid or numbers.step not in (None, 1) or numbers.notation is Notation.FRACTIONAL:
        return None
    whole, digits = numbers.step is not None, numbers.notation is Notation.PLAIN
    if (whole and not digits and (low is None or high is None)) or not (_is_short(low) and _is_short(high)):
        return None
    positive = _magnitudes(low, numbers.low_open, high, numbers.high_open)
    least, least_open = _minus(high), numbers.high_open
    if digits and spelling is Spelling.PLAIN and (least is None or least <= 0):
        # There is one zero.
        least, least_open = 0, True
    negative = _magnitudes(least, least_open, _minus(low), numbers.low_open)
    return Ranges(positive, negative, whole, digits, spelling is Spelling.PLAIN)


def _whole(bound: Fraction | None) -> Bound:
    """A whole number as an int, which is compared in a twentieth of the time."""
    return bound.numerator if bound is not None and bound.denominator == 1 else bound


def _minus(bound: Bound) -> Bound:
    return None if bound is None else -bound


def _magnitudes(low: Bound, low_open: bool, high: Bound, high_open: bool) -> Magnitudes | None:
    """The numbers from 0 up that are in a range, as `number_text` has them."""
    if high is not None and (high < 0 or (high == 0 and high_open)):
        return None
    most = None if high is None else digits_of(high)
    if low is None or low < 0 or (low == 0 and not low_open):
        return Magnitudes(None, False, most, high_open)
    return Magnitudes(digits_of(low), low_open, most, high_open)


def _is_short(bound: Bound) -> bool:
    return bound is None or (-MOST_WHOLE < bound < MOST_WHOLE and 10**MOST_PLACES % bound.denominator == 0)
