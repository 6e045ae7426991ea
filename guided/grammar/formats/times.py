r"""Formats of dates and times: RFC 3339, and its appendix A for durations.

A leap second is 23:59:60 UTC, so the local time must fit its offset.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import cast

from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular.derivative import derivative
from guided.grammar.regular.expr import Expr, alternation, concat
from guided.grammar.regular.overapproximation import Overapproximated
from guided.grammar.regular.rests import tell_most_left
from guided.grammar.regular.stepwise import Measured, Step, stepwise

_LEAP_PAIR = "(?:[02468][048]|[13579][26])"
"""Two digits that a number divisible by 4 ends in."""
_LEAP_PAIR_NOT_ZERO = "(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = f"(?:{_LEAP_PAIR}00|[0-9][0-9]{_LEAP_PAIR_NOT_ZERO})"
_FULL_DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_HOUR = "(?:[01][0-9]|2[0-3])"
_MINUTE = "[0-5][0-9]"
_PART = r"(?:\.[0-9]+)?"
_DISTANCE = f"[+-]{_HOUR}:{_MINUTE}"
_OFFSET = f"(?:[Zz]|{_DISTANCE})"


_CLOCK = f"{_HOUR}:{_MINUTE}:{_MINUTE}{_PART}{_OFFSET}"


_AFTER_SECONDS, _AFTER_DOT, _IN_FRACTION = range(3)


class _LeapSecond(Overapproximated, Measured):
    """``hh:mm:60``, a fraction perhaps, and an offset that makes it 23:59 UTC: of each sign there is one.

    A state is what was read of the clock, as bytes; then ``(hour, minute, place in the fraction)``; then what is left
    of the offset, as text.
    """

    def accepts(self, state: Hashable) -> bool:
        """Has the offset been read?"""
        return state == ""

    def steps(self, state: Hashable) -> Iterable[Step]:
        """Ranges of bytes in ascending order, and the states that they lead to."""
        if isinstance(state, bytes):
            for byte in _clock_bytes(state):
                text = state + bytes([byte])
                yield byte, byte, text if len(text) < 8 else (int(text[:2]), int(text[3:5]), _AFTER_SECONDS)
        elif isinstance(state, str):
            yield from [(ord(state[0]), ord(state[0]), state[1:])] if state else ()
        else:
            hour, minute, place = cast("tuple[int, int, int]", state)
            local = 60 * hour + minute
            if place != _AFTER_DOT:
                for sign, offset in ((b"+", (local + 1) % 1440), (b"-", 1439 - local)):
                    yield sign[0], sign[0], f"{offset // 60:02}:{offset % 60:02}"
            if place == _AFTER_SECONDS:
                yield ord("."), ord("."), (hour, minute, _AFTER_DOT)
            else:
                yield ord("0"), ord("9"), (hour, minute, _IN_FRACTION)
            if place != _AFTER_DOT and local == 1439:
                yield from [(letter, letter, "") for letter in b"Zz"]

    def least(self, state: Hashable) -> int:
        """What is left of the clock, a digit of the fraction, and the offset: a letter at one minute of the day."""
        if isinstance(state, str):
            return len(state)
        if isinstance(state, bytes):
            return len(_UTC) - len(state) + (1 if _UTC.startswith(state) else len(_ANY_OFFSET))
        hour, minute, place = cast("tuple[int, int, int]", state)
        return (place == _AFTER_DOT) + (1 if 60 * hour + minute == 1439 else len(_ANY_OFFSET))

    def overapproximation(self, state: Hashable) -> Expr | None:
        """The same with any offset: 40 states for 8,700.  That of UTC itself comes at one minute of the day only."""
        return _any_offset(state, _UTC.startswith(state)) if isinstance(state, bytes) else None


def _clock_bytes(text: bytes) -> bytes:
    """What may come next of ``hh:mm:60``."""
    if len(text) == 1:
        return b"0123" if text == b"2" else b"0123456789"
    return (b"012", b"", b":", b"012345", b"0123456789", b":", b"6", b"0")[len(text)]


_UTC = b"23:59:60"
_ANY_OFFSET = b"+hh:mm"


@lru_cache(maxsize=1 << 13)
def _any_offset(text: bytes, is_utc: bool) -> Expr:
    """What may follow the beginning of ``hh:mm:60`` if the offset is any, that of UTC only where it may be that."""
    if not text:
        return pattern_language(f"{_HOUR}:{_MINUTE}:60{_PART}{_OFFSET if is_utc else _DISTANCE}")
    found = derivative(_any_offset(text[:-1], is_utc), text[-1])
    assert found is not None
    return found


@lru_cache(maxsize=1)
def _leap_second() -> Expr:
    return stepwise(_LeapSecond(), b"")


@lru_cache(maxsize=1)
def date() -> Expr:
    """RFC 3339."""
    return pattern_language(_FULL_DATE)


@lru_cache(maxsize=1)
def time() -> Expr:
    """RFC 3339."""
    # From anywhere inside: the longest is 23:59:60.0+23:59, whose fraction may end behind any digit.
    return tell_most_left(alternation((pattern_language(_CLOCK), _leap_second())), 16)


@lru_cache(maxsize=1)
def date_time() -> Expr:
    """RFC 3339."""
    return concat(pattern_language(f"{_FULL_DATE}[Tt]"), time())


@lru_cache(maxsize=1)
def duration() -> Expr:
    """RFC 3339."""
    seconds = "[0-9]+S"
    minutes = f"[0-9]+M(?:{seconds})?"
    hours = f"[0-9]+H(?:{minutes})?"
    time = f"T(?:{hours}|{minutes}|{seconds})"
    days = "[0-9]+D"
    months = f"[0-9]+M(?:{days})?"
    years = f"[0-9]+Y(?:{months})?"
    return pattern_language(f"P(?:(?:{days}|{months}|{years})(?:{time})?|{time}|[0-9]+W)")
