"""Decimals of one sign, without exponent, as an automaton over digits that knows which of its states go on to an end.

A state is a place in the text and what the tests of `guided.grammar.json_schema.numbers.digits` hold there.  Whether a
number can still come of it is arithmetic, not search: of the digits that may follow, the multiples of the step are
enumerated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Any, TypeAlias, cast

from guided.grammar.json_schema.numbers.digits import Comparison, Divisor, digits_of
from guided.grammar.json_schema.numbers.ranges import MAX_AVOIDED, Notation, NumberRange, least_common_multiple
from guided.grammar.regular.stepwise import Step

START, ZERO, WHOLE, POINT, DECIMAL = range(5)
"""Places: nothing read, a leading zero, whole digits, the point, digits after the point."""

State: TypeAlias = "tuple[int, tuple[Any, ...]]"


@dataclass(frozen=True, slots=True)
class _Rest:
    """What the digits still to come must be, as a number: between two bounds, None for no upper one."""

    low: Fraction
    low_open: bool
    high: Fraction | None
    high_open: bool


class Decimals:
    """The decimals in a range that starts at 0 or above (``low`` None: at 0)."""

    def __init__(self, numbers: NumberRange) -> None:
        if numbers.notation is Notation.PLAIN:
            whole = Fraction(1)
            numbers = replace(numbers, step=least_common_multiple(numbers.step or whole, whole))
        self.numbers = numbers
        self.low = None if numbers.low is None else Comparison(numbers.low, (1,) if numbers.low_open else (0, 1))
        self.high = None if numbers.high is None else Comparison(numbers.high, (-1,) if numbers.high_open else (-1, 0))
        step = numbers.step
        self.divisor = Divisor(step, True) if step is not None and step != 1 else None
        others = [Divisor(avoided, False) for avoided in numbers.avoid]
        self.tests: list[Any] = [test for test in (self.low, self.high, self.divisor, *others) if test is not None]
        self.start: State = (START, tuple(test.start for test in self.tests))
        self._whole_only = step is not None and step.denominator == 1
        self._plain = numbers.notation is Notation.PLAIN
        self._ends = (DECIMAL,) if numbers.notation is Notation.FRACTIONAL else (ZERO, WHOLE, DECIMAL)
        self.alphabet = range(0x30, 0x3A) if self._plain else (0x2E, *range(0x30, 0x3A))
        self._exact = step is not None
        """Is the number of digits after the point bounded, but for zeros?"""
        self._alive: dict[State, bool] = {}

    def step(self, state: State, byte: int) -> State | None:
        """The state after a byte, whether or not anything can come of it."""
        place, values = state
        if byte == 0x2E:
            if self._plain or place not in (ZERO, WHOLE):
                return None
            return (POINT, tuple([test.point(value) for test, value in zip(self.tests, values, strict=True)]))
        digit = byte - 0x30
        if place <= WHOLE:
            if place == ZERO:
                return None
            after = tuple([test.digit(value, digit) for test, value in zip(self.tests, values, strict=True)])
            return (WHOLE if place or digit else ZERO, after)
        if self._whole_only and digit:
            return None
        return (DECIMAL, tuple([test.decimal(value, digit) for test, value in zip(self.tests, values, strict=True)]))

    def row(self, state: State) -> list[Step]:
        """Ranges of bytes and the states that they lead to, ascending, whether or not anything can come of them."""
        found: list[Step] = []
        target = None if self._plain else self.step(state, 0x2E)
        if target is not None:
            found.append((0x2E, 0x2E, target))
        # Divisors tell all digits apart, comparisons only that of the bound from those below and above it.
        begins = self._told_apart(state)
        for digit, after in zip(begins, (*begins[1:], 10), strict=True):
            target = self.step(state, 0x30 + digit)
            if target is None:
                continue
            if found and found[-1][2] == target and found[-1][1] == 0x2F + digit:
                found[-1] = (found[-1][0], 0x2F + after, target)
            else:
                found.append((0x30 + digit, 0x2F + after, target))
        return found

    def _told_apart(self, state: State) -> Sequence[int]:
        """Digits, ascending from zero, that may lead elsewhere than those just below them."""
        if self.divisor is not None or self.numbers.avoid:
            return range(10)
        place, values = state
        apart = {0, 1}
        for test, (at, _) in zip(self.tests, values, strict=True):
            digits = test.whole if place <= WHOLE else test.fraction
            if at < len(digits):
                digit = int(digits[at])
                apart.add(digit)
                if digit < 9:
                    apart.add(digit + 1)
        return sorted(apart)

    def accepts(self, state: Hashable) -> bool:
        """May the text end here?"""
        place, values = cast("State", state)
        return place in self._ends and all(
            test.accepts(value, place == DECIMAL) for test, value in zip(self.tests, values, strict=True)
        )

    def steps(self, state: Hashable) -> Iterator[Step]:
        """Ranges of bytes and the living states that they lead to."""
        for low, high, target in self.row(cast("State", state)):
            if self.alive(cast("State", target)):
                yield low, high, target

    def alive(self, state: State) -> bool:
        """Does some number go on from here?"""
        found = self._alive.get(state)
        if found is None:
            found = self._alive[state] = self._goes_on(state)
        return found

    def exceeds(self, limit: int) -> bool:
        """Are there more living states than so many?"""
        seen: set[Hashable] = {self.start}
        work: list[Hashable] = [self.start]
        while work and len(seen) <= limit:
            for _, _, target in self.steps(work.pop()):
                if target not in seen:
                    seen.add(target)
                    work.append(target)
        return len(seen) > limit

    def bound_on_states(self) -> int:
        """No automaton of these decimals has more states."""
        count: int = 4
        for test in self.tests:
            count *= test.states
        count += 1
        divisors = [test for test in self.tests if isinstance(test, Divisor)]
        if not self._whole_only or any(divisor.places for divisor in divisors):
            return count
        # Behind the zeros at its end a number's remainders by all factors follow from that by their least common
        # multiple; of the first digits, which are compared, there are no more than the numbers that they make.
        zeros = max((divisor.zeros for divisor in divisors), default=0)
        remainders = lcm(*(divisor.factor for divisor in divisors)) * (1 + zeros)
        bounds = [bound for bound in (self.low, self.high) if bound is not None]
        compared = max((len(bound.whole) for bound in bounds), default=0)
        whole: int = remainders + sum(min(10**at, 3 ** len(bounds) * remainders) for at in range(compared + 1))
        # The point and the zeros behind it add no choice.
        places: int = 3 + max((len(bound.fraction) for bound in bounds), default=0)
        return min(count, places * whole + 2)

    def _goes_on(self, state: State) -> bool:
        place, values = state
        by_test = dict(zip(map(id, self.tests), values, strict=True))
        if place >= POINT:
            return self._completes(state, by_test, None)
        if place == ZERO:
            return self._completes(state, by_test, 0)
        if self.high is None:
            return True
        left = len(self.high.whole) - by_test[id(self.high)][0]
        # With fewer digits than the lower bound it would be too small.
        fewest = 0 if self.low is None else max(len(self.low.whole) - by_test[id(self.low)][0], 0)
        return any(self._completes(state, by_test, count) for count in range(left, fewest - 1, -1))

    def _completes(self, state: State, by_test: dict[int, Any], more: int | None) -> bool:
        """Is there a number with so many more whole digits (None: behind the point)?"""
        rest = self._rest(by_test, more)
        if rest is None:
            return False
        if not self._exact:
            ceiling = Fraction(10 ** (more or 0)) if rest.high is None else rest.high
            if rest.low < ceiling:
                # A whole interval: decimals enough that are multiples of nothing.
                return True
            if rest.low > ceiling or rest.low_open or rest.high_open or rest.high is None:
                return False
            places = len(digits_of(rest.low)[1])
            return self._accepts_after(state, int(rest.low * 10**places), more, places)
        return self._has_multiple(state, by_test, more, rest)

    def _has_multiple(self, state: State, by_test: dict[int, Any], more: int | None, rest: _Rest) -> bool:
        """As `_completes`, where digits come in units of the last place that the step has."""
        divisor = self.divisor
        modulus, first, places = 1, 0, 0
        if divisor is not None:
            value = by_test[id(divisor)]
            if value is None:
                return False
            places = divisor.places if more is not None else divisor.places - value[0]
            count = (more or 0) + places
            if more is None or not divisor.zeros:
                modulus = divisor.factor
                first = -value[1] * pow(10, count, modulus) % modulus
            elif count >= divisor.zeros:
                modulus, scale = divisor.factor, 10**divisor.zeros
                first = -value[1] * pow(10, value[0] + count - divisor.zeros, modulus) % modulus * scale
                modulus *= scale
            else:
                # Too few digits are left for all its zeros: they must all be zero, and enough be there already.
                nothing = rest.low == 0 and not rest.low_open
                return nothing and self._accepts_after(state, 0, more, places)
        unit = 10**places
        low = ceil(rest.low * unit)
        low += rest.low_open and low == rest.low * unit
        high = unit * 10 ** (more or 0) - 1
        if rest.high is not None:
            last = floor(rest.high * unit)
            high = min(high, last - (rest.high_open and last == rest.high * unit))
        candidate = low + (first - low) % modulus
        if not self.numbers.avoid:
            return bool(candidate <= high)
        # Kanold's bound, see `NumberRange.is_empty`: of so many consecutive multiples one is to be had.
        for _ in range((1 << min(len(self.numbers.avoid), MAX_AVOIDED)) + 1):
            if candidate > high:
                return False
            if self._accepts_after(state, candidate, more, places):
                return True
            candidate += modulus
        return False

    def _accepts_after(self, state: State, digits: int, more: int | None, places: int) -> bool:
        """Is the text a number of the language once these digits are written, so many of them after the point?"""
        count = (more or 0) + places
        text = str(digits).rjust(count, "0") if count else ""
        if more is None:
            text = text or ("0" if state[0] == POINT else "")
        else:
            whole, decimals = text[:more], text[more:]
            if decimals or (DECIMAL in self._ends and WHOLE not in self._ends):
                decimals = f".{decimals or '0'}"
            text = whole + decimals
        for byte in text.encode():
            after = self.step(state, byte)
            if after is None:
                return False
            state = after
        return self.accepts(state)

    def _rest(self, by_test: dict[int, Any], more: int | None) -> _Rest | None:
        """What the bounds ask of the rest; None when it is too late."""
        low, low_open, high, high_open = Fraction(0), False, None, False
        if self.low is not None:
            relation, rest = _compared(self.low, by_test[id(self.low)], more)
            if relation < 0:
                return None
            if relation == 0:
                low, low_open = rest, self.numbers.low_open
        if self.high is not None:
            relation, rest = _compared(self.high, by_test[id(self.high)], more)
            if relation > 0:
                return None
            if relation == 0:
                high, high_open = rest, self.numbers.high_open
        return _Rest(low, low_open, high, high_open)


def _compared(bound: Comparison, value: Any, more: int | None) -> tuple[int, Fraction]:
    """How a number with so many whole digits more compares with a bound; where 0, that is said by the bound's rest."""
    at, relation = value
    if more is None:
        left = bound.fraction[at:]
        return relation, Fraction(int(left or 0), 10 ** len(left))
    length = at + more
    if at > len(bound.whole) or length > len(bound.whole):
        return 1, Fraction(0)
    if length < len(bound.whole):
        return -1, Fraction(0)
    left = bound.whole[at:] + bound.fraction
    return relation, Fraction(int(left or 0), 10 ** len(bound.fraction))
