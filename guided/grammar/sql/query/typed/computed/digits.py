"""How large constants are at most, by their digits, and whether an engine that computes them may fail.

A number below 10 ** n has n digits; what is not known has `UNSURE` of them.  Those of a date are its year's.  An
interval has those of its largest part, months, days or microseconds of ten digits more: 9999 years are 119,988 months.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from guided.grammar.sql.query.typed.types import ANY_NULL, is_literal

__all__ = ["UNSURE", "amount_of", "amount_of_cast", "amount_of_operation", "digits_of", "digits_of_text"]

UNSURE = 99
_WHOLE = ("int2", "int4", "int8", "int16")
_FLOATS = ("float4", "float8")
_ROOM = {
    "int2": 2, "int4": 9, "int8": 18, "int16": 38, "numeric": 15, "numeric2": 8, "numeric3": 8, "numeric4": 8,
    "float4": 38, "float8": UNSURE, "date": 6, "timestamp": 6, "timestamptz": 6, "interval": 9,
}  # fmt: skip
"""The digits that a type has room for: a TINYINT is an ``int2``, a DECIMAL has 18 digits and 3 of them behind its point
(products need more behind it), and timestamps end with the year 294,247, which no three sums with `_SPAN` exceed."""
_SPAN = 6
"""Digits of intervals that may be added to a date: a million months are 83,333 years; a million days are fewer."""
_DIGITS = {
    "'whole": 4, "'integer": 9, "'decimal": 9, "'date": 4, "'timestamp": 4, "'interval": _SPAN, "date": 4,
    "timestamp": 4, "timestamptz": 4, "interval": _SPAN, "bool": 1,
}  # fmt: skip
"""Of literals, and of the words for moments."""
_DATES = ("date", "timestamp", "timestamptz")
_CLOCKS = ("time", "timetz")
_TEXTS = ("text", "varchar", "bpchar")
_DAYS = 7
"""Days between two dates of four digits."""

Amount = tuple[int, bool]
"""Digits at most, and whether it may not be computed."""


def digits_of(name: str) -> int:
    """The digits of a literal by the type that it is read as; of a text that is no number none."""
    return _DIGITS.get(name, 0 if is_literal(name) else UNSURE)


def digits_of_text(text: str) -> int:
    """The digits of a number before its point.

    >>> [digits_of_text(text) for text in ("0.5", "007", "1.5e3")]
    [0, 1, 4]
    """
    try:
        return max(0, Decimal(text).adjusted() + 1)
    except InvalidOperation:
        return UNSURE


def _is_number(name: str) -> bool:
    return name in _WHOLE or name in _FLOATS or name.startswith("numeric")


def amount_of(name: str, digits: int) -> Amount:
    """What has so many digits, as a value of a type."""
    return (digits, digits > _ROOM[name]) if name in _ROOM else (UNSURE, False)


def amount_of_operation(operator: str, left: str, of_left: int, right: str, of_right: int, given: str) -> Amount:
    """What an operator makes of two constants of so many digits; ``given`` is the type of its result.

    >>> amount_of_operation("*", "int4", 4, "int4", 5, "int4"), amount_of_operation("+", "int4", 9, "int4", 1, "int4")
    ((9, False), (10, True))
    >>> amount_of_operation("-", "date", 4, "interval", 6, "timestamp")
    (5, False)
    """
    if operator == "equal":
        # Beside a number the engine reads a text as one.
        return UNSURE, "text" in (left, right) and (_is_number(left) or _is_number(right))
    if operator not in ("+", "-", "*") or left in _CLOCKS or right in _CLOCKS:
        return UNSURE, False
    if left in _DATES and right in _DATES:
        return amount_of(given, _DAYS if max(of_left, of_right) <= _ROOM["date"] - 2 else UNSURE)
    if left in _DATES or right in _DATES:
        of_date, span = (of_left, of_right) if left in _DATES else (of_right, of_left)
        return amount_of(given, of_date + 1 if span <= _SPAN else UNSURE)
    return amount_of(given, of_left + of_right if operator == "*" else max(of_left, of_right) + 1)


def amount_of_cast(source: str, digits: int, target: str, room: int = 0) -> Amount:
    """What a cast makes of a constant; ``room`` is that of the type by its very name, 0 where it has none of its own.

    >>> amount_of_cast("int4", 3, "int2", 4), amount_of_cast("text", 99, "int4"), amount_of_cast("'date", 99, "date")
    ((3, False), (99, True), (4, False))
    """
    if source in (target, ANY_NULL) or target in _TEXTS:
        return digits, False
    if is_literal(source):
        digits = digits_of(source)
    elif source in (*_TEXTS, "jsonb"):
        return UNSURE, True
    elif source[0] == "_" and target[0] == "_":
        return UNSURE, amount_of_cast(source[1:], UNSURE, target[1:])[1]
    if source in _WHOLE and target in (*_WHOLE[_WHOLE.index(source) :], *_FLOATS):
        return digits, False
    if source == "bool":
        digits = 1
    return (digits, digits > room) if room else amount_of(target, digits)
