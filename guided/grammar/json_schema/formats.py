r"""The formats that are asserted, each as a language over the inside of a JSON string; unknown ones are annotations.

Written as patterns of this project's own regex front end (Python's notation, whole string), combined with
intersection where a rule is easier said twice.  Sources: RFC 3339 and its errata (date-time; a leap second is 23:59:60
UTC, so the local time must fit its offset), RFC 5321 (e-mail), RFC 1123 (host names), RFC 2673 and 4291 (addresses), RFC 3986
(URI), RFC 4122 (UUID), ISO 8601 as in appendix A of RFC 3339 (durations).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from guided.grammar.json_schema.strings import CHARACTER, JSON_STRING
from guided.grammar.regular.expr import Expr, intersection, repeat


def format_language(name: Any) -> Expr | None:
    """The strings of a format, or None for a format that asserts nothing here."""
    build = FORMATS.get(name) if isinstance(name, str) else None
    return None if build is None else build()


def _pattern(pattern: str) -> Expr:
    from guided.grammar.regex.lower import lower
    from guided.grammar.regex.parse import parse

    return lower(parse(pattern), JSON_STRING)


def _shortest_to(language: Expr, low: int, high: int) -> Expr:
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


def _leap_second() -> str:
    """``hh:mm:60`` with the offset that makes it 23:59 UTC: one alternative for each of the 1,440 offsets and signs."""
    by_hour = []
    for hour in range(24):
        by_minute = []
        for minute in range(60):
            local = hour * 60 + minute
            east, west = (local - 1439) % 1440, (1439 - local) % 1440
            offsets = [f"\\+{east // 60:02}:{east % 60:02}", f"-{west // 60:02}:{west % 60:02}"]
            if local == 1439:
                offsets.append("[Zz]")
            by_minute.append(f"{minute:02}:60{_PART}(?:{'|'.join(offsets)})")
        by_hour.append(f"{hour:02}:(?:{'|'.join(by_minute)})")
    return f"(?:{'|'.join(by_hour)})"


def _full_time() -> str:
    return f"(?:{_HOUR}:{_MINUTE}:{_MINUTE}{_PART}{_OFFSET}|{_leap_second()})"


@lru_cache(maxsize=1)
def _date() -> Expr:
    return _pattern(_FULL_DATE)


@lru_cache(maxsize=1)
def _time() -> Expr:
    return _pattern(_full_time())


@lru_cache(maxsize=1)
def _date_time() -> Expr:
    return _pattern(f"{_FULL_DATE}[Tt]{_full_time()}")


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
    return _shortest_to(_pattern(rf"{_LABEL}(?:\.{_LABEL})*"), 1, 253)


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


@lru_cache(maxsize=1)
def _uri() -> Expr:
    unreserved = "[A-Za-z0-9._~-]"
    escaped = "%[0-9A-Fa-f]{2}"
    letter = f"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{escaped})"
    user = f"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|{escaped})*@"
    future = f"[Vv][0-9A-Fa-f]+\\.(?:{unreserved}|[!$&'()*+,;=:])+"
    name = f"(?:[A-Za-z0-9._~!$&'()*+,;=-]|{escaped})*"
    host = rf"(?:\[(?:{_ipv6_pattern()}|{future})\]|{name})"
    authority = f"//(?:{user})?{host}(?::[0-9]*)?(?:/{letter}*)*"
    path = f"(?:/(?:{letter}+(?:/{letter}*)*)?|{letter}+(?:/{letter}*)*)?"
    rest = f"(?:{letter}|[/?])*"
    return _pattern(rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{authority}|{path})(?:\?{rest})?(?:#{rest})?")


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
    "uuid": _uuid,
}
"""The formats that are enforced, by name."""
