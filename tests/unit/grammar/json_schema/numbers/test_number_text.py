"""The texts of number ranges against exact arithmetic on every text tried."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest

from guided.errors import LimitError
from guided.grammar.json_schema.layout import Spelling
from guided.grammar.json_schema.numbers import ranges as numbers
from guided.grammar.json_schema.numbers.number_text import number_text
from guided.grammar.json_schema.numbers.ranges import Notation, NumberRange
from guided.grammar.regular.derivative import matches
from tests.amounts import mostly_slow

STEPS = [
    None,
    None,
    Fraction(1),
    Fraction(1),
    Fraction(3),
    Fraction(1, 2),
    Fraction(1, 100),
    Fraction(5, 2),
    Fraction(12),
]


def random_number(rnd: random.Random) -> Fraction:
    return Fraction(rnd.randrange(-2000, 2000), 10 ** rnd.randrange(0, 4))


def random_range(rnd: random.Random) -> NumberRange:
    low = random_number(rnd) if rnd.random() < 0.6 else None
    high = random_number(rnd) if rnd.random() < 0.6 else None
    if low is not None and high is not None and low > high:
        low, high = high, low
    avoid = frozenset([rnd.choice([Fraction(1), Fraction(2), Fraction(3, 10)])]) if rnd.random() < 0.15 else frozenset()
    notation = rnd.choice([Notation.ANY] * 6 + [Notation.PLAIN, Notation.FRACTIONAL])
    return NumberRange(low, rnd.random() < 0.3, high, rnd.random() < 0.3, rnd.choice(STEPS), avoid, notation)


def holds(item: NumberRange, value: Fraction) -> bool:
    if item.low is not None and (value < item.low or (value == item.low and item.low_open)):
        return False
    if item.high is not None and (value > item.high or (value == item.high and item.high_open)):
        return False
    return (item.step is None or value % item.step == 0) and all(value % step for step in item.avoid)


def spelled_right(item: NumberRange, text: str) -> bool:
    fractional = any(sign in text for sign in ".eE")
    return item.notation is Notation.ANY or fractional is (item.notation is Notation.FRACTIONAL)


def texts(item: NumberRange, value: Fraction) -> list[str]:
    """Spellings of one value that the text language is meant to cover."""
    plain = format(Decimal(value.numerator) / Decimal(value.denominator), "f")
    found = [plain, plain + ("00" if "." in plain else ".0")]
    if item.step is None and not item.avoid and value:
        mantissa, exponent = format(Decimal(plain), ".12E").split("E")
        found += [f"{mantissa}e{exponent}", f"{mantissa.rstrip('0').rstrip('.')}E{exponent}"]
    return found + (["-0", "-0.0"] if value == 0 else [])


@pytest.mark.parametrize("seed", mostly_slow(range(8), 3))
def test_texts_of_random_ranges(seed: int) -> None:
    rnd = random.Random(seed)
    right = 0
    for _ in range(60):
        item = random_range(rnd)
        language = number_text(item)
        values = [Fraction(0), *(random_number(rnd) for _ in range(25))]
        values += [(item.step or Fraction(1)) * rnd.randrange(-100, 100) for _ in range(15)]
        for bound in (item.low, item.high):
            if bound is not None:
                values += [bound, bound * 10, bound / 10, bound + Fraction(1, 1000), bound - Fraction(1, 1000)]
        for value in values:
            for text in texts(item, value):
                wanted = holds(item, value) and spelled_right(item, text)
                assert matches(language, text.encode()) is wanted, (item, text)
                right += wanted
    assert right > 100


@pytest.mark.parametrize("seed", mostly_slow(range(4), 1))
def test_intersection_and_complement_are_those_of_sets(seed: int) -> None:
    rnd = random.Random(100 + seed)
    for _ in range(150):
        a, b = random_range(rnd), random_range(rnd)
        both = numbers.intersect(a, b)
        others = numbers.complement(a)
        for _ in range(40):
            value = random_number(rnd) if rnd.random() < 0.7 else Fraction(rnd.randrange(-20, 20))
            for fractional in (True, False) if value.denominator == 1 else (True,):
                text = "1.0" if fractional else "1"

                def inside(item: NumberRange, value: Fraction = value, text: str = text) -> bool:
                    return holds(item, value) and spelled_right(item, text)

                assert (both is not None and inside(both)) is (inside(a) and inside(b)), (a, b, value)
                assert any(inside(other) for other in others) is not inside(a), (a, value)


def test_emptiness_is_sure() -> None:
    rnd = random.Random(7)
    for _ in range(400):
        item = random_range(rnd)
        if item.is_empty():
            assert not any(holds(item, Fraction(n, 10)) for n in range(-2000, 2000) if item.notation is Notation.ANY)


@pytest.mark.parametrize(
    ("item", "yes", "no"),
    [
        (NumberRange(), ["0", "-0", "1e5", "1.5E-7", "12e0"], ["01", "+1", ".5", "1.", "1e", "NaN", "--1", ""]),
        (numbers.INTEGER, ["0", "-7", "1.0", "1.000", "12345678901234567890"], ["1.5", "1.01", "00", "-"]),
        (numbers.PLAIN_INTEGER, ["0", "-7"], ["1.0", "1e2"]),
        (NumberRange(Fraction(0)), ["0", "-0", "0e9", "-0.0e1", "1e-400", "25e3"], ["-1", "-1e-9", "-0.001"]),
        (NumberRange(Fraction(0), True), ["1", "0.001", "12e9"], ["0", "0.0", "-0", "0e5", "-1"]),
        (NumberRange(high=Fraction(100)), ["1e2", "9.9e1", "-1e300", "100.00"], ["1.01e2", "1e3", "100.01"]),
        (NumberRange(Fraction(10**30), step=Fraction(1)), ["1" + "0" * 30, "2" + "0" * 30], ["9" * 30, "-" + "1" * 40]),
    ],
)
def test_chosen_texts(item: NumberRange, yes: list[str], no: list[str]) -> None:
    language = number_text(item)
    assert [text for text in yes if not matches(language, text.encode())] == []
    assert [text for text in no if matches(language, text.encode())] == []


def test_scientific_notation_covers_what_python_writes() -> None:
    rnd = random.Random(3)
    for _ in range(60):
        value = rnd.choice([1, -1]) * rnd.random() * 10.0 ** rnd.randint(-30, 30)
        low, high = sorted(rnd.choice([1, -1]) * 10.0 ** rnd.randint(-30, 30) for _ in range(2))
        item = NumberRange(numbers.exact(low), False, numbers.exact(high), False)
        assert matches(number_text(item), repr(value).encode()) is (low <= value <= high), (item, value)


def test_a_step_with_too_many_remainders_is_a_limit() -> None:
    with pytest.raises(LimitError, match="multipleOf"):
        number_text(NumberRange(step=Fraction(1_000_003)))


@pytest.mark.parametrize(
    ("step", "low"), [("1", None), ("1", "18"), ("5", "5"), ("0.01", "0"), ("0.25", None), ("3", None), ("500", None)]
)
def test_exponents_of_multiples(step: str, low: str | None) -> None:
    numbers = NumberRange(None if low is None else Fraction(low), step=Fraction(step))
    language = number_text(numbers)
    rnd = random.Random(step)
    taken = 0
    for _ in range(3000):
        digits = rnd.choice(["0", "1", "5", "12", "9"]) + rnd.choice(["", ".5", ".0", ".25", ".123456"])
        text = rnd.choice(["", "-"]) + digits + rnd.choice(["", "e5", "E+2", "e-1", "e06", "e+16", "e0", "e-07"])
        value = Fraction(text)
        inside = value % Fraction(step) == 0 and (low is None or value >= Fraction(low))
        assert inside or not matches(language, text.encode()), text
        taken += matches(language, text.encode())
    assert taken > 50
    large = [f"{mantissa}e{exponent}" for mantissa in ("1", "2.5", "9.007199254740993") for exponent in (18, "+30")]
    assert [matches(language, text.encode()) for text in large] == [step != "3"] * len(large)


@pytest.mark.parametrize(
    ("item", "yes", "no"),
    [
        (
            NumberRange(),
            ["0", "-0.0", "1.0", "19.90", "1e-05", "1e-7", "1.5e+16", "1e22", "-1.7976931348623157e+308", "5e-324"],
            ["1e5", "1E-07", "1e-005", "1e-012", "0e5", "12e-7", "1e-4", "1e15", "1e+016", "1e309", "1e-325", "01", "+1"],
        ),
        (numbers.INTEGER, ["0", "-7", "12345678901234567890"], ["-0", "1.0", "1e16", "1e+22", "00", "-"]),
        (numbers.PLAIN_INTEGER, ["0", "-7"], ["1.0", "1e2", "-0"]),
        (NumberRange(Fraction(-2), False, Fraction(2), False, Fraction(1)), ["-2", "0", "2"], ["-0", "3", "1.0", "2.0"]),
        (NumberRange(Fraction(-2), step=Fraction(1)), ["-2", "0", "20"], ["-0", "-3", "1.0", "1e16"]),
        (NumberRange(Fraction(0), False, Fraction(1)), ["0", "0.5", "1.0", "1e-05", "9e-7"], ["1e-04", "5e-1", "1.1", "0e-7"]),
        (NumberRange(step=Fraction(1, 100)), ["0.25", "1e+16", "1.5"], ["1e5", "1e-2", "0.001"]),
        (NumberRange(Fraction(2), False, Fraction(2)), ["2"], ["2.0", "2e0"]),
        (NumberRange(Fraction("1e-7"), False, Fraction("1e-7")), ["1e-07", "1e-7", "0.0000001"], ["0.00000010", "1.0e-7"]),
        (NumberRange(high=Fraction("1e-9")), ["1e-10", "1e-09", "-1e+20", "-3.5"], ["1e-08", "1e-010", "-1e10"]),
    ],
)  # fmt: skip
def test_plain_texts(item: NumberRange, yes: list[str], no: list[str]) -> None:
    language = number_text(item, Spelling.PLAIN)
    assert [text for text in yes if not matches(language, text.encode())] == []
    assert [text for text in no if matches(language, text.encode())] == []


@pytest.mark.parametrize("seed", mostly_slow(range(4), 1))
def test_plain_texts_are_some_of_all_and_miss_no_number(seed: int) -> None:
    rnd = random.Random(200 + seed)
    met = 0
    for _ in range(60):
        item = random_range(rnd)
        every, plain = number_text(item), number_text(item, Spelling.PLAIN)
        values = [Fraction(0), *(random_number(rnd) for _ in range(25))]
        values += [(item.step or Fraction(1)) * rnd.randrange(-100, 100) for _ in range(15)]
        for value in values:
            spelled = [text for text in texts(item, value) if matches(plain, text.encode())]
            assert all(matches(every, text.encode()) for text in spelled), item
            if item.notation is Notation.ANY and holds(item, value):
                shortest = texts(item, value)[0]
                assert shortest in spelled, (item, shortest)
                met += 1
            if item.step is not None and item.step.denominator == 1 and item.notation is not Notation.FRACTIONAL:
                assert not any(sign in text for text in spelled for sign in ".e"), item
    assert met > 100


def test_plain_texts_are_those_that_python_writes() -> None:
    rnd = random.Random(5)
    for _ in range(60):
        value = rnd.choice([1, -1]) * rnd.random() * 10.0 ** rnd.randint(-30, 30)
        low, high = sorted(rnd.choice([1, -1]) * 10.0 ** rnd.randint(-30, 30) for _ in range(2))
        item = NumberRange(numbers.exact(low), False, numbers.exact(high), False)
        assert matches(number_text(item, Spelling.PLAIN), repr(value).encode()) is (low <= value <= high), (item, value)
