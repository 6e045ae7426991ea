r"""The formats that are asserted, each as a language over the inside of a JSON string; unknown ones are annotations.

Written as patterns of this project's own regex front end (Python's notation, whole string), combined with
intersection where a rule is easier said twice.  Sources: RFC 3339 (date-time; a leap second is 23:59:60 UTC, so the
local time must fit its offset; durations as in its appendix A), RFC 5321 (e-mail), RFC 1123 (host names), RFC 2673 and
4291 (addresses), RFC 3986 (URI), RFC 4122 (UUID), RFC 6901 (pointers).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from guided.grammar.json_schema.strings import CHARACTER, TEXT
from guided.grammar.regular.expr import Expr, alternation, concat, intersection, repeat


def format_language(name: Any, draft: int = 2020) -> Expr | None:
    """The strings of a format, or None for a format that asserts nothing here."""
    if name == "hostname" and draft >= 7:
        return _checked_hostname()
    build = FORMATS.get(name) if isinstance(name, str) else None
    return None if build is None else build()


def format_note(name: Any) -> str | None:
    """What the user should know about how a format is read, if anything."""
    if name == "hostname":
        return "host names with encoded labels (xn--) are left out from draft 7 on: whether one is valid is not regular"
    if name in _NOT_ENFORCED:
        return f"the format {name!r} is not enforced"
    return None


_NOT_ENFORCED = frozenset(("idn-email", "idn-hostname", "iri", "iri-reference", "uri-template", "regex"))
"""Formats of the specification that are annotations here."""


def _pattern(pattern: str) -> Expr:
    from guided.grammar.regex.lower import lower
    from guided.grammar.regex.parse import parse

    return lower(parse(pattern), TEXT)


def _of_length(language: Expr, low: int, high: int) -> Expr:
    return intersection((language, repeat(CHARACTER, low, high)))


# -- dates and times --------------------------------------------------------------------------------------------------

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
        return _pattern("|".join(pattern.format(f"{left:02}", f"{right:02}") for left, right in pairs))

    hour_pattern = "{0}:[0-9][0-9]:60[^+-]*[+-]{1}:[0-9][0-9]"
    minute_pattern = "[0-9][0-9]:{0}:60[^+-]*[+-][0-9][0-9]:{1}"
    west = [
        _pattern(f"[0-9:]{{6}}60{_PART}-[0-9:]{{5}}"),
        groups(hour_pattern, [(hour, 23 - hour) for hour in range(24)]),
        groups(minute_pattern, [(minute, 59 - minute) for minute in range(60)]),
    ]
    east = _pattern(f"[0-9:]{{6}}60{_PART}\\+[0-9:]{{5}}")
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
        (_pattern(f"23:59:60{_PART}[Zz]"), intersection(west), intersection(same_hour), intersection(next_hour))
    )


@lru_cache(maxsize=1)
def _date() -> Expr:
    return _pattern(_FULL_DATE)


@lru_cache(maxsize=1)
def _time() -> Expr:
    return alternation((_pattern(_CLOCK), _leap_second()))


@lru_cache(maxsize=1)
def _date_time() -> Expr:
    return concat(_pattern(f"{_FULL_DATE}[Tt]"), _time())


@lru_cache(maxsize=1)
def _duration() -> Expr:
    seconds = "[0-9]+S"
    minutes = f"[0-9]+M(?:{seconds})?"
    hours = f"[0-9]+H(?:{minutes})?"
    time = f"T(?:{hours}|{minutes}|{seconds})"
    days = "[0-9]+D"
    months = f"[0-9]+M(?:{days})?"
    years = f"[0-9]+Y(?:{months})?"
    return _pattern(f"P(?:(?:{days}|{months}|{years})(?:{time})?|{time}|[0-9]+W)")


# -- internet ---------------------------------------------------------------------------------------------------------

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def _ipv6_pattern() -> str:
    group = "[0-9A-Fa-f]{1,4}"
    last = f"(?:{group}:{group}|{_IPV4})"
    options = [f"(?:{group}:){{6}}{last}"]
    for before in range(8):
        head = f"(?:{group}(?::{group}){{0,{before - 1}}})?" if before else ""
        after = 7 - before  # groups that may follow the double colon, at most, when `before` stand in front of it
        tails = [f"{head}::"]
        if after >= 1:
            tails.append(f"{head}::(?:{group}:){{0,{after - 1}}}{group}")
        if after >= 2:
            tails.append(f"{head}::(?:{group}:){{0,{after - 2}}}{_IPV4}")
        options.extend(tails)
    return "(?:" + "|".join(options) + ")"


@lru_cache(maxsize=1)
def _ipv4() -> Expr:
    return _pattern(_IPV4)


@lru_cache(maxsize=1)
def _ipv6() -> Expr:
    return _pattern(_ipv6_pattern())


@lru_cache(maxsize=1)
def _hostname() -> Expr:
    return _of_length(_pattern(rf"{_LABEL}(?:\.{_LABEL})*"), 1, 253)


_ANY_LETTER, _END_LETTER = "[A-Za-z0-9-]", "[A-Za-z0-9]"
_CHECKED_LABEL = (
    f"{_END_LETTER}(?:{_END_LETTER}|{_ANY_LETTER}{{1,2}}{_END_LETTER}|{_ANY_LETTER}"
    f"(?:{_END_LETTER}{_ANY_LETTER}|-{_END_LETTER}){_ANY_LETTER}{{0,58}}{_END_LETTER})?"
)
"""A label without hyphens in both its third and fourth place, which would make it an encoded one (RFC 5891)."""


@lru_cache(maxsize=1)
def _checked_hostname() -> Expr:
    return _of_length(_pattern(rf"{_CHECKED_LABEL}(?:\.{_CHECKED_LABEL})*"), 1, 253)


_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'


@lru_cache(maxsize=1)
def _email() -> Expr:
    literal = rf"\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_ipv6_pattern()})\]"
    local = rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})"
    return _pattern(rf"{local}@(?:{_LABEL}(?:\.{_LABEL})*|{literal})")


@lru_cache(maxsize=1)
def _uuid() -> Expr:
    return _pattern("[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")


def _uri_pattern() -> tuple[str, str]:
    """Patterns of an absolute URI and of a relative reference (RFC 3986, appendix A)."""
    unreserved = "[A-Za-z0-9._~-]"
    escaped = "%[0-9A-Fa-f]{2}"
    letter = f"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{escaped})"
    no_colon = f"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|{escaped})"
    user = f"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|{escaped})*@"
    future = f"[Vv][0-9A-Fa-f]+\\.(?:{unreserved}|[!$&'()*+,;=:])+"
    name = f"(?:[A-Za-z0-9._~!$&'()*+,;=-]|{escaped})*"
    host = rf"(?:\[(?:{_ipv6_pattern()}|{future})\]|{name})"
    authority = f"//(?:{user})?{host}(?::[0-9]*)?(?:/{letter}*)*"
    absolute = f"/(?:{letter}+(?:/{letter}*)*)?"
    tail = rf"(?:\?(?:{letter}|[/?])*)?(?:#(?:{letter}|[/?])*)?"
    scheme = "[A-Za-z][A-Za-z0-9+.-]*:"
    full = f"{scheme}(?:{authority}|(?:{absolute}|{letter}+(?:/{letter}*)*)?){tail}"
    return full, f"(?:{authority}|(?:{absolute}|{no_colon}+(?:/{letter}*)*)?){tail}"


@lru_cache(maxsize=1)
def _uri() -> Expr:
    return _pattern(_uri_pattern()[0])


@lru_cache(maxsize=1)
def _uri_reference() -> Expr:
    full, relative = _uri_pattern()
    return _pattern(f"{full}|{relative}")


_POINTER = "(?:/(?:[^~/]|~[01])*)*"


@lru_cache(maxsize=1)
def _json_pointer() -> Expr:
    return _pattern(f"(?s:{_POINTER})")


@lru_cache(maxsize=1)
def _relative_json_pointer() -> Expr:
    return _pattern(f"(?s:(?:0|[1-9][0-9]*)(?:#|{_POINTER}))")


FORMATS: dict[str, Callable[[], Expr]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "duration": _duration,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "uri": _uri,
    "uri-reference": _uri_reference,
    "json-pointer": _json_pointer,
    "relative-json-pointer": _relative_json_pointer,
    "uuid": _uuid,
}
"""The formats that are enforced, by name."""
