"""How sets of numbers are written: from a `NumberRange` to a regular language of decimal text.

A range is compared with the digits of the text as they come, so bounds are exact at any size.  With an exponent the
text's digits alone say nothing about its size, so under a bound an exponent is allowed only in normalised scientific
notation (one digit that is not zero before the point: ``1.5e-7``, as programs write floats), and with a step
(integers, ``multipleOf``) only where the exponent says enough: ``1.5e+16`` for steps that divide a power of ten,
without an upper bound.  Where neither is given, every JSON number is allowed.

In plain spelling integers are digits alone, and other numbers decimals, with an exponent only where programs write one
for a double: normalised, below a ten-thousandth and from 10**16 on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from guided.errors import GuidedError
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.layout import Spelling
from guided.grammar.json_schema.numbers.bounded import bounded_decimals
from guided.grammar.json_schema.numbers.decimals import Decimals
from guided.grammar.json_schema.numbers.digits import digits_of
from guided.grammar.json_schema.numbers.ranges import MAX_AVOIDED, Notation, NumberRange
from guided.grammar.regular.expr import (
    EMPTY,
    EPSILON,
    Edge,
    Expr,
    Kind,
    alternation,
    byte_range,
    byte_set,
    concat,
    literal,
    optional,
    repeat,
    switch,
    words,
)
from guided.grammar.regular.stepwise import stepwise

MAX_STATES = 12_000
"""Living states of one number's automaton; ``multipleOf: 9999`` needs 10,000.  They are made where they are met, but a
search for the shortest text may visit all."""
FEW_STATES = 100
"""States up to which an automaton is made at once, so that its loops are plain repetitions."""

PLAIN_BITS = 256
"""Bits of a bound's numerator and denominator that surely have fewer digits."""
MAX_POWER = 20
"""Powers of ten, and of a tenth, that are tried against a step."""
MOST_PLACES = 17
"""Digits after the point that an integer may have before its exponent; programs write at most 16."""

FIRST_LARGE, LAST_LARGE, FIRST_SMALL, LAST_SMALL = 16, 308, 5, 324
"""Exponents in plain spelling, positive ones and negative ones: those with which Python writes doubles."""

_DIGIT = byte_range(0x30, 0x39)
_NONZERO = byte_range(0x31, 0x39)
_E = byte_set(1 << ord("e") | 1 << ord("E"))
_SIGN = optional(byte_set(1 << ord("+") | 1 << ord("-")))
_MINUS = literal(b"-")
_EXPONENT = concat(_E, _SIGN, repeat(_DIGIT, 1))
_WHOLE = alternation((literal(b"0"), concat(_NONZERO, repeat(_DIGIT))))
_FRACTION = concat(literal(b"."), repeat(_DIGIT, 1))
_FRACTIONAL = concat(optional(_MINUS), _WHOLE, alternation((concat(_FRACTION, optional(_EXPONENT)), _EXPONENT)))
UNSIGNED = concat(_WHOLE, optional(_FRACTION), optional(_EXPONENT))
NUMBER = concat(optional(_MINUS), UNSIGNED)
"""Every JSON number."""
INTEGER = concat(optional(_MINUS), _WHOLE)
_PLAIN_INTEGER = alternation((literal(b"0"), concat(optional(_MINUS), _NONZERO, repeat(_DIGIT))))
WHOLE_FRACTION = optional(concat(literal(b"."), repeat(literal(b"0"), 1)))


@lru_cache(maxsize=4096)
def number_text(numbers: NumberRange, spelling: Spelling = Spelling.ANY) -> Expr:
    """The texts of the numbers in the range; never empty in one spelling if there is one in another."""
    numbers = in_notation(numbers, spelling)
    digits = numbers.notation is Notation.PLAIN
    if numbers.low is None and numbers.high is None and not numbers.avoid:
        if numbers.step is None and not digits:
            found = (NUMBER, _FRACTIONAL) if spelling is Spelling.ANY else _plain_numbers()
            return found[numbers.notation is Notation.FRACTIONAL]
        if (numbers.step is None or numbers.step == 1) and numbers.notation is not Notation.FRACTIONAL:
            if spelling is Spelling.PLAIN:
                return _PLAIN_INTEGER
            return INTEGER if digits else _any_integer()
    positive = _magnitudes(numbers, numbers.low, numbers.low_open, numbers.high, numbers.high_open, spelling)
    low = None if numbers.high is None else -numbers.high
    low_open = numbers.high_open
    if digits and spelling is Spelling.PLAIN and (low is None or low <= 0):
        # There is one zero.
        low, low_open = Fraction(0), True
    high = None if numbers.low is None else -numbers.low
    negative = _magnitudes(numbers, low, low_open, high, numbers.low_open, spelling)
    if positive is negative:
        return concat(optional(_MINUS), positive)
    return alternation((positive, concat(_MINUS, negative)))


def in_notation(numbers: NumberRange, spelling: Spelling) -> NumberRange:
    """The numbers as a spelling writes them: in plain spelling integers without fraction and exponent."""
    step = numbers.step
    if spelling is Spelling.ANY or numbers.notation is not Notation.ANY:
        return numbers
    if step is None and numbers.low is not None and numbers.low == numbers.high:
        step = numbers.low
    return numbers if step is None or step.denominator != 1 else replace(numbers, notation=Notation.PLAIN)


def number_texts(found: Sequence[NumberRange], spelling: Spelling = Spelling.ANY) -> list[Expr]:
    """The texts of several ranges; of many single numbers those with equal endings are one list of words."""
    if spelling is Spelling.PLAIN:
        return [number_text(item, spelling) for item in found]
    singles = [item.low for item in found if item.low and is_single(item)]
    if len(singles) < MANY_SINGLES:
        return [number_text(item) for item in found]
    endings: dict[Expr, list[bytes]] = {}
    powers: dict[int, Expr] = {}
    for value in singles:
        assert value is not None
        sign = b"-" if value < 0 else b""
        whole, fraction = digits_of(abs(value))
        begun = sign + whole.encode() + (b"." + fraction.encode() if fraction else b"")
        endings.setdefault(_ZEROS if fraction else WHOLE_FRACTION, []).append(begun)
        mantissa, exponent = lead(abs(value)) if fraction else (None, len(whole) - 1)
        digits = "".join(digits_of(mantissa)) if mantissa is not None else whole.rstrip("0")
        begun = sign + digits[:1].encode() + (b"." + digits[1:].encode() if digits[1:] else b"")
        power = powers.get(exponent)
        if power is None:
            power = powers[exponent] = _exponents(exponent, exponent, Spelling.ANY)
        endings.setdefault(concat(_ZEROS if digits[1:] else WHOLE_FRACTION, power), []).append(begun)
    texts = [concat(words(begun), ending) for ending, begun in endings.items()]
    return texts + [number_text(item) for item in found if not (item.low and is_single(item))]


MANY_SINGLES = 16
"""Single numbers from which on they are listed together."""
_ZEROS = repeat(literal(b"0"))


def is_single(item: NumberRange) -> bool:
    """Is this one number, in any spelling?"""
    return (
        item.low is not None
        and item.low == item.high
        and item.step is None
        and not item.avoid
        and not (item.low_open or item.high_open or item.notation is not Notation.ANY)
    )


def may_be_refused(numbers: NumberRange) -> bool:
    """May `number_text` meet a limit, as far as the numbers in the range tell?"""
    if numbers.avoid or numbers.step not in (None, 1):
        return True
    bounds = [bound for bound in (numbers.low, numbers.high) if bound is not None]
    return any(max(bound.numerator.bit_length(), bound.denominator.bit_length()) > PLAIN_BITS for bound in bounds)


def _magnitudes(
    numbers: NumberRange,
    low: Fraction | None,
    low_open: bool,
    high: Fraction | None,
    high_open: bool,
    spelling: Spelling,
) -> Expr:
    """Texts without sign of the numbers from 0 up that are in the range and fit step and notation."""
    if high is not None and (high < 0 or (high == 0 and high_open)):
        return EMPTY
    if low is not None and (low < 0 or (low == 0 and not low_open)):
        low, low_open = None, False
    bounds = (low, low_open, high, high_open)
    notation = numbers.notation
    if low is not None and low == high and notation is Notation.ANY and not numbers.avoid:
        return _single(low, numbers.step is not None, spelling)
    if low is not None and low == high and notation is Notation.PLAIN and not (numbers.avoid or low_open or high_open):
        fits = low.denominator == 1 and (numbers.step is None or (low / numbers.step).denominator == 1)
        return literal(digits_of(low)[0].encode()) if fits else EMPTY
    if numbers.step is not None or numbers.avoid or notation is Notation.PLAIN:
        texts = _decimals(*bounds, numbers.step, numbers.avoid, notation)
        if numbers.step is not None and high is None and not numbers.avoid and notation is Notation.ANY:
            power = _power_of_ten(numbers.step)
            if power is not None:
                least = power if low is None else max(power, len(digits_of(low)[0]))
                return alternation((texts, _scientific_multiples(power, least, spelling)))
        return texts
    if notation is Notation.FRACTIONAL:
        return alternation((_decimals(*bounds, None, frozenset(), notation), _scientific(*bounds, spelling)))
    if high is None and (low is None or low == 0) and spelling is Spelling.ANY:
        return UNSIGNED if low is None else concat(_decimals(*bounds), optional(_EXPONENT))
    return alternation((_decimals(*bounds), _scientific(*bounds, spelling)))


def _single(value: Fraction, as_decimal: bool, spelling: Spelling) -> Expr:
    """One number that is not zero: as a decimal and, unless asked for that alone, in normalised scientific notation."""
    plain = spelling is Spelling.PLAIN
    zeros = EPSILON if plain else repeat(literal(b"0"))
    no_fraction = EPSILON if plain else WHOLE_FRACTION
    whole, fraction = digits_of(value)
    after = concat(literal(b"." + fraction.encode()), zeros) if fraction else no_fraction
    text = concat(literal(whole.encode()), after)
    if as_decimal:
        return text
    mantissa, exponent = lead(value)
    whole, fraction = digits_of(mantissa)
    after = concat(literal(b"." + fraction.encode()), zeros) if fraction else no_fraction
    return alternation((text, concat(literal(whole.encode()), after, _exponents(exponent, exponent, spelling))))


def _scientific(
    low: Fraction | None, low_open: bool, high: Fraction | None, high_open: bool, spelling: Spelling
) -> Expr:
    """Normalised scientific notation, and zero with any exponent."""
    parts = []
    if low is None and spelling is Spelling.ANY:
        parts.append(concat(literal(b"0"), WHOLE_FRACTION, _EXPONENT))
    lowest = lead(low) if low else None
    highest = lead(high) if high else None
    if high is not None and highest is None:
        return alternation(parts)  # nothing but zero

    def piece(
        start: Fraction, start_open: bool, stop: Fraction, stop_open: bool, first: int | None, last: int | None
    ) -> None:
        mantissa = _decimals(start, start_open, stop, stop_open)
        parts.append(concat(mantissa, _exponents(first, last, spelling)))

    one, ten = Fraction(1), Fraction(10)
    first = None if lowest is None else lowest[1] + 1
    last = None if highest is None else highest[1] - 1
    if lowest is not None and highest is not None and lowest[1] == highest[1]:
        piece(lowest[0], low_open, highest[0], high_open, lowest[1], lowest[1])
        return alternation(parts)
    if first is None or last is None or first <= last:
        piece(one, False, ten, True, first, last)
    if lowest is not None:
        piece(lowest[0], low_open, ten, True, lowest[1], lowest[1])
    if highest is not None:
        piece(one, False, highest[0], high_open, highest[1], highest[1])
    return alternation(parts)


@lru_cache(maxsize=1)
def _any_integer() -> Expr:
    multiples = _scientific_multiples(0, 0, Spelling.ANY)
    return concat(optional(_MINUS), alternation((concat(_WHOLE, WHOLE_FRACTION), multiples)))


@lru_cache(maxsize=1)
def _plain_numbers() -> tuple[Expr, Expr]:
    """Every number in plain spelling, and every one with a fraction or exponent."""
    scientific = concat(_NONZERO, optional(_FRACTION), _exponents(None, None, Spelling.PLAIN))
    decimals = (concat(_WHOLE, optional(_FRACTION)), concat(_WHOLE, _FRACTION))
    every, fractional = (concat(optional(_MINUS), alternation((each, scientific))) for each in decimals)
    return every, fractional


def _power_of_ten(step: Fraction) -> int | None:
    """The least power of ten that is a multiple of the step: its exponent, or None when there is none.

    >>> _power_of_ten(Fraction(1, 4)), _power_of_ten(Fraction(500)), _power_of_ten(Fraction(3))
    (0, 3, None)
    """
    for power in range(-MAX_POWER, MAX_POWER + 1):
        if (Fraction(10) ** power / step).denominator == 1:
            return power
    return None


@lru_cache(maxsize=256)
def _scientific_multiples(power: int, least: int, spelling: Spelling) -> Expr:
    """Multiples of ``10**power`` in normalised scientific notation, exponents at least ``least``, without sign.

    As many digits after the point as a double has; the exponent makes up for all of them.
    """
    tail: Expr = EMPTY
    for places in range(MOST_PLACES, 0, -1):
        tail = concat(_DIGIT, alternation((_exponents(max(power + places, least), None, spelling), tail)))
    return concat(_NONZERO, alternation((_exponents(least, None, spelling), concat(literal(b"."), tail))))


def lead(value: Fraction) -> tuple[Fraction, int]:
    """Mantissa in [1, 10) and exponent of a positive number.

    >>> lead(Fraction(1, 20))
    (Fraction(5, 1), -2)
    """
    exponent = len(str(value.numerator)) - len(str(value.denominator))
    if value < Fraction(10) ** exponent:
        exponent -= 1
    return value / Fraction(10) ** exponent, exponent


def _exponents(first: int | None, last: int | None, spelling: Spelling) -> Expr:
    """An e and a whole number in a range, with optional plus sign and leading zeros; in plain spelling see above."""

    def whole(low: int | None, high: int | None) -> Expr:
        if high is not None and high < 0:
            return EMPTY
        bound = None if low is None or low <= 0 else Fraction(low)
        top = None if high is None else Fraction(high)
        return _decimals(bound, False, top, False, Fraction(1), frozenset(), Notation.PLAIN)

    def within(low: int | None, high: int | None, least: int, most: int) -> tuple[int, int]:
        return least if low is None else max(low, least), most if high is None else min(high, most)

    least, most = (None if last is None else -last), (None if first is None else -first)
    plus = optional(literal(b"+"))
    if spelling is Spelling.ANY:
        zeros = repeat(literal(b"0"))
        texts = concat(plus, zeros, whole(first, last)), concat(_MINUS, zeros, whole(least, most))
        return concat(_E, alternation(texts))
    large, small = within(first, last, FIRST_LARGE, LAST_LARGE), within(least, most, FIRST_SMALL, LAST_SMALL)
    # Python writes two digits at least, JavaScript as many as there are.
    padded = concat(optional(literal(b"0")), whole(small[0], min(small[1], 9)))
    negative = concat(_MINUS, alternation((padded, whole(max(small[0], 10), small[1]))))
    return concat(literal(b"e"), alternation((concat(plus, whole(*large)), negative)))


def _too_large() -> GuidedError:
    return refusals.MULTIPLES.at(limit=MAX_STATES)


@lru_cache(maxsize=4096)
def _decimals(
    low: Fraction | None,
    low_open: bool,
    high: Fraction | None,
    high_open: bool,
    step: Fraction | None = None,
    avoid: frozenset[Fraction] = frozenset(),
    notation: Notation = Notation.ANY,
) -> Expr:
    """Decimals without sign and exponent, in the range and fitting the steps."""
    if not avoid and step in (None, 1):
        return bounded_decimals(low, low_open, high, high_open, step is not None, notation)
    numbers = NumberRange(
        low, low is not None and low_open, high, high is not None and high_open, step, avoid, notation
    )
    decimals = Decimals(numbers)
    if decimals.bound_on_states() <= FEW_STATES or len(avoid) > MAX_AVOIDED:
        return automaton(decimals.start, decimals.row, decimals.accepts)
    if replace(numbers, low=numbers.low or Fraction(0)).is_empty():
        return EMPTY
    if decimals.bound_on_states() > MAX_STATES and decimals.exceeds(MAX_STATES):
        raise _too_large()
    return stepwise(decimals, decimals.start)


def automaton(
    start: Hashable, row_of: Callable[[Any], Sequence[tuple[int, int, Hashable]]], accepts: Callable[[Any], bool]
) -> Expr:
    """The language of a deterministic automaton given by what leads on from its states; dead ends are trimmed.

    A row is of disjoint ranges of bytes, ascending, each with the state that it leads to.

    States on no cycle become plain switches and those with only a loop to themselves a repetition, so that equal
    languages are the same object as far as possible; larger cycles become recursive expressions.  Raises a refusal for
    too many states.
    """
    order: list[Hashable] = [start]
    table: dict[Hashable, Sequence[tuple[int, int, Hashable]]] = {}
    sources: dict[Hashable, list[Hashable]] = {start: []}
    for state in order:
        row = table[state] = row_of(state)
        for _, _, target in row:
            if target not in sources:
                sources[target] = []
                order.append(target)
            sources[target].append(state)
        if len(order) > MAX_STATES:
            raise _too_large()
    final = {state for state in order if accepts(state)}
    live = {*final}
    work = list(live)
    while work:
        for source in sources[work.pop()]:
            if source not in live:
                live.add(source)
                work.append(source)
    if start not in live:
        return EMPTY
    rows = {state: [edge for edge in table[state] if edge[2] in live] for state in live}
    built: dict[Hashable, Expr] = {}
    waiting = {state: len({target for _, _, target in row if target != state}) for state, row in rows.items()}
    ready = [state for state, count in waiting.items() if count == 0]
    while ready:
        state = ready.pop()
        built[state] = _state(rows[state], state, built, state in final)
        for source in set(sources[state]):
            if source in waiting and source != state:
                waiting[source] -= 1
                if waiting[source] == 0:
                    ready.append(source)
    if start not in built:
        rest = [state for state in rows if state not in built]
        # Interning a recursive expression needs its cycle first, so these are made here, one per state and automaton.
        for state in rest:
            built[state] = Expr(Kind.RECURSION, (), state in final, True)
        for state in rest:
            edges = _edges(rows[state], built)
            built[state].parts = (switch(edges, state in final),)
    return built[start]


def _edges(row: list[tuple[int, int, Hashable]], built: dict[Hashable, Expr]) -> list[Edge]:
    return [(low, high, built[target]) for low, high, target in row]


def _state(row: list[tuple[int, int, Hashable]], state: Hashable, built: dict[Hashable, Expr], final: bool) -> Expr:
    loop = 0
    for low, high, target in row:
        if target == state:
            loop |= (1 << high + 1) - (1 << low)
    rest = switch(_edges([edge for edge in row if edge[2] != state], built), final)
    return concat(repeat(byte_set(loop)), rest) if loop else rest
