r"""Formats of dates and times: RFC 3339, and its appendix A for durations.

A leap second is 23:59:60 UTC, so the local time must fit its offset.
"""

from __future__ import annotations

from functools import lru_cache

from guided.grammar.json_schema.format_patterns import pattern_language
from guided.grammar.regular.expr import Expr, alternation, concat, intersection

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
_OFFSET = f"(?:[Zz]|[+-]{_HOUR}:{_MINUTE})"


_CLOCK = f"{_HOUR}:{_MINUTE}:{_MINUTE}{_PART}{_OFFSET}"


def _leap_second() -> Expr:
    """``hh:mm:60`` with an offset that makes it 23:59 UTC.

    An offset to the west is 23:59 minus the local time, digit group by digit group.  To the east it is the local time
    plus a minute: the same hour and the next minute, or from minute 59 the next hour and minute 0.
    """

    def groups(pattern: str, pairs: list[tuple[int, int]]) -> Expr:
        return pattern_language("|".join(pattern.format(f"{left:02}", f"{right:02}") for left, right in pairs))

    hour_pattern = "{0}:[0-9][0-9]:60[^+-]*[+-]{1}:[0-9][0-9]"
    minute_pattern = "[0-9][0-9]:{0}:60[^+-]*[+-][0-9][0-9]:{1}"
    west = [
        pattern_language(f"[0-9:]{{6}}60{_PART}-[0-9:]{{5}}"),
        groups(hour_pattern, [(hour, 23 - hour) for hour in range(24)]),
        groups(minute_pattern, [(minute, 59 - minute) for minute in range(60)]),
    ]
    east = pattern_language(f"[0-9:]{{6}}60{_PART}\\+[0-9:]{{5}}")
    same_hour = [
        east,
        groups(hour_pattern, [(hour, hour) for hour in range(24)]),
        groups(minute_pattern, [(minute, minute + 1) for minute in range(59)]),
    ]
    next_hour = [
        east,
        groups(hour_pattern, [(hour, (hour + 1) % 24) for hour in range(24)]),
        groups(minute_pattern, [(59, 0)]),
    ]
    return alternation(
        (pattern_language(f"23:59:60{_PART}[Zz]"), intersection(west), intersection(same_hour), intersection(next_hour))
    )


@lru_cache(maxsize=1)
def date() -> Expr:
    """RFC 3339."""
    return pattern_language(_FULL_DATE)


@lru_cache(maxsize=1)
def time() -> Expr:
    """RFC 3339."""
    return alternation((pattern_language(_CLOCK), _leap_second()))


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
