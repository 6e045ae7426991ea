"""Tests of decimal digits as they come: comparison with a bound, and divisibility by a step."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from guided.errors import GuidedError
from guided.grammar.json_schema import refusals

MAX_DIGITS = 400
"""Digits of a bound; those of doubles have up to 325."""


def digits_of(value: Fraction | int) -> tuple[str, str]:
    """Digits before and after the point of a terminating decimal, without trailing zeros.

    Raises a refusal for numbers of too many digits.
    """
    places = 0
    scaled = value
    while scaled.denominator != 1:
        scaled *= 10
        places += 1
        if places > MAX_DIGITS:
            raise _too_long()
    text = str(scaled.numerator).rjust(places + 1, "0")
    if len(text) > MAX_DIGITS:
        raise _too_long()
    return (text[:-places], text[-places:]) if places else (text, "")


def _too_long() -> GuidedError:
    return refusals.DIGITS.at(limit=MAX_DIGITS)


class Comparison:
    """Compares the digits of a text with a bound as they come."""

    def __init__(self, bound: Fraction, allowed: tuple[int, ...]) -> None:
        self.whole, self.fraction = digits_of(bound)
        self.allowed = allowed

    start: Any = (0, 0)

    @property
    def states(self) -> int:
        """At most so many states at one place."""
        return 3 * (max(len(self.whole), len(self.fraction)) + 2)

    def digit(self, state: Any, digit: int) -> Any:
        """The state after a whole digit."""
        at, relation = state
        if at >= len(self.whole):
            return (len(self.whole) + 1, 1)
        return (at + 1, relation or _compare(digit, int(self.whole[at])))

    def point(self, state: Any) -> Any:
        """The state after the point."""
        return (0, self._whole(state))

    def decimal(self, state: Any, digit: int) -> Any:
        """The state after a digit behind the point."""
        at, relation = state
        if relation:
            return (0, relation)
        if at < len(self.fraction):
            relation = _compare(digit, int(self.fraction[at]))
            return (0, relation) if relation else (at + 1, 0)
        return (0, 1) if digit else state

    def accepts(self, state: Any, after_point: bool) -> bool:
        """Is the number in the range if it ends here?"""
        relation = state[1] if after_point else self._whole(state)
        at = state[0] if after_point else 0
        if relation == 0 and at < len(self.fraction):
            relation = -1
        return relation in self.allowed

    def _whole(self, state: Any) -> int:
        at, relation = state
        return -1 if at < len(self.whole) else 1 if at > len(self.whole) else relation


def _compare(left: int, right: int) -> int:
    return (left > right) - (left < right)


class Divisor:
    """Is the number a multiple of a step?

    With ``places`` digits after the point the step is ``factor * 10**zeros`` units of the last place, and ``zeros`` is
    not 0 only if ``places`` is.  A state of the whole digits is the number of trailing zeros so far, at most ``zeros``,
    and the remainder by ``factor`` of the digits before them, so that round steps stay small.
    """

    def __init__(self, step: Fraction, wanted: bool) -> None:
        places = len(digits_of(step)[1])
        factor, zeros = int(step * 10**places), 0
        while factor % 10 == 0:
            factor, zeros = factor // 10, zeros + 1
        self.places, self.factor, self.zeros, self.wanted = places, factor, zeros, wanted
        self.start: Any = (zeros, 0)

    @property
    def states(self) -> int:
        """At most so many states at one place."""
        return self.factor * (self.zeros + 1) * (self.places + 1) + 1

    def digit(self, state: Any, digit: int) -> Any:
        """The state after a whole digit."""
        zeros, remainder = state
        if digit == 0 and zeros < self.zeros:
            return (zeros + 1, remainder)
        if digit == 0:
            return (zeros, 10 * remainder % self.factor)
        return (0, (10 ** (zeros + 1) * remainder + digit) % self.factor)

    def point(self, state: Any) -> Any:
        """The state after the point; None: no multiple, whatever follows."""
        zeros, remainder = state
        return (0, remainder) if zeros == self.zeros else None

    def decimal(self, state: Any, digit: int) -> Any:
        """The state after a digit behind the point."""
        if state is None:
            return None
        at, remainder = state
        if at < self.places:
            return (at + 1, (10 * remainder + digit) % self.factor)
        return None if digit else state

    def accepts(self, state: Any, after_point: bool) -> bool:
        """Is the number a multiple, or none, as wanted, if it ends here?"""
        if not after_point:
            state = self.point(state)
        if state is None:
            return not self.wanted
        at, remainder = state
        return (remainder * 10 ** (self.places - at) % self.factor == 0) is self.wanted
