"""Sets of numbers as data: intervals of exact decimals with a step; closed under intersection and complement.

Only values are here; `guided.grammar.json_schema.numbers.number_text` writes them down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import gcd


def exact(value: int | float | Decimal) -> Fraction:
    """The number as it is written in JSON: ``0.1`` is one tenth.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    return (
        Fraction(value)
        if isinstance(value, int)
        else Fraction(Decimal(repr(value) if isinstance(value, float) else value))
    )


MAX_AVOIDED = 16
"""Steps of which a number must be no multiple, up to which it is decided at once whether there is such a number."""


class Notation(Enum):
    """How numbers are written, where that matters: for draft 4, ``1.0`` is no integer."""

    ANY = "any"
    PLAIN = "without fraction and exponent"
    FRACTIONAL = "with fraction or exponent"


@dataclass(frozen=True, slots=True)
class NumberRange:
    """All numbers between two bounds (None: no bound) that are multiples of ``step`` and of none in ``avoid``."""

    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    step: Fraction | None = None
    avoid: frozenset[Fraction] = frozenset()
    notation: Notation = Notation.ANY

    def is_empty(self) -> bool:
        """Is there no number at all?

        Exact for up to `MAX_AVOIDED` numbers in ``avoid``; with more, only sure answers are True.
        """
        low, high = self.low, self.high
        if low is not None and high is not None and (low > high or (low == high and (self.low_open or self.high_open))):
            return True
        step = self.step
        if self.notation is Notation.PLAIN:
            step = Fraction(1) if step is None else least_common_multiple(step, Fraction(1))
        if step is None:
            # Between two bounds there are more numbers than any multiples.
            return low is not None and low == high and any(low % avoided == 0 for avoided in self.avoid)
        first = None if low is None else -(-low // step)
        if first is not None and self.low_open and first * step == low:
            first += 1
        last = None if high is None else high // step
        if last is not None and self.high_open and last * step == high:
            last -= 1
        if first is not None and last is not None and first > last:
            return True
        if not self.avoid:
            return False
        # The n-th multiple is one of `avoided` too just if n is one of this whole number.
        every = {(step / avoided).denominator for avoided in self.avoid}
        if 1 in every:
            return True
        if first is None or last is None:
            return False
        # Of 2**k consecutive whole numbers one is a multiple of none of k primes (Kanold, 1967).
        for n in range(first, min(last, first + (1 << min(len(every), MAX_AVOIDED))) + 1):
            if all(n % divisor for divisor in every):
                return False
        return last - first < 1 << MAX_AVOIDED


ANY_NUMBER = NumberRange()
INTEGER = NumberRange(step=Fraction(1))
PLAIN_INTEGER = NumberRange(step=Fraction(1), notation=Notation.PLAIN)


def single(value: int | float | Decimal) -> NumberRange:
    """Just this number, in any of its spellings."""
    number = exact(value)
    return NumberRange(number, False, number, False)


def intersect(a: NumberRange, b: NumberRange) -> NumberRange | None:
    """The numbers in both, or None when there are none."""
    if a is ANY_NUMBER or a == b:
        return b
    if b is ANY_NUMBER:
        return a
    low, low_open = a.low, a.low_open
    if b.low is not None and (low is None or b.low > low or (b.low == low and b.low_open)):
        low, low_open = b.low, b.low_open
    high, high_open = a.high, a.high_open
    if b.high is not None and (high is None or b.high < high or (b.high == high and b.high_open)):
        high, high_open = b.high, b.high_open
    step = a.step if b.step is None else b.step if a.step is None else least_common_multiple(a.step, b.step)
    notation = b.notation if a.notation is Notation.ANY else a.notation
    if b.notation not in (Notation.ANY, notation):
        return None
    both = NumberRange(low, low_open, high, high_open, step, a.avoid | b.avoid, notation)
    return None if both.is_empty() else both


def least_common_multiple(a: Fraction, b: Fraction) -> Fraction:
    """The smallest positive number that both divide.

    >>> least_common_multiple(Fraction(1, 2), Fraction(3, 4))
    Fraction(3, 2)
    """
    numerator = a.numerator * b.numerator // gcd(a.numerator, b.numerator)
    return Fraction(numerator, gcd(a.denominator, b.denominator))


def complement(a: NumberRange) -> list[NumberRange]:
    """All other numbers, and all other notations, as a union."""
    parts = []
    if a.low is not None:
        parts.append(NumberRange(high=a.low, high_open=not a.low_open))
    if a.high is not None:
        parts.append(NumberRange(low=a.high, low_open=not a.high_open))
    inside = NumberRange(a.low, a.low_open, a.high, a.high_open)
    if a.step is not None:
        parts.append(replace(inside, avoid=frozenset((a.step,))))
    parts.extend(replace(inside, step=step) for step in a.avoid)
    if a.notation is not Notation.ANY:
        opposite = Notation.FRACTIONAL if a.notation is Notation.PLAIN else Notation.PLAIN
        parts.append(replace(inside, notation=opposite))
    return [part for part in parts if not part.is_empty()]
