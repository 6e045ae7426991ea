r"""The formats that are asserted: strings as languages over the inside of a JSON string, numbers as ranges.

Formats that are not here are annotations.  Sources: RFC 4122 (UUID), RFC 9562 (its versions, by the names that Pydantic
gives them), RFC 6901 (pointers), RFC 4648 (base64), the format registry of OpenAPI; others in `guided.grammar.formats`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from guided.grammar.formats import addresses as addresses
from guided.grammar.formats import times as times
from guided.grammar.formats.host_names import hostname
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.json_schema.numbers.ranges import NumberRange
from guided.grammar.json_schema.reading.document import Document, Located
from guided.grammar.regular.expr import Expr


class Formats(Enum):
    """When ``format`` is asserted."""

    DEFAULT = "default"
    """In drafts 4 to 2019-09, where no draft is declared, and where the meta-schema asks for it.

    Draft 2020-12 calls it an annotation unless its meta-schema says otherwise; a schema that declares this draft has it
    asserted only where ``type`` says "string" beside it, which is how those write that mean it.
    """
    ASSERT = "assert"
    """Always."""
    ANNOTATE = "annotate"
    """Never."""


def asserts_format(formats: Formats, document: Document, at: Located, schema: dict[str, Any]) -> bool:
    """Is the ``format`` of a schema an assertion?"""
    if formats is not Formats.DEFAULT:
        return formats is Formats.ASSERT
    if not isinstance(schema["format"], str) or schema["format"] in ONLY_ON_DEMAND:
        return False
    dialect = at.resource.dialect
    if dialect.order < 2020 or not document.declared_dialect or dialect.asserts_formats:
        return True
    return schema.get("type") == "string"


def format_language(name: Any, draft: int = 2020) -> Expr | None:
    """The strings of a format, or None for one that asserts nothing about strings, or nothing that is regular."""
    if name == "hostname" and draft >= 7:
        return None
    build = FORMATS.get(name) if isinstance(name, str) else None
    return None if build is None else build()


def format_numbers(name: Any) -> NumberRange | None:
    """The numbers of a format, or None for a format that asserts nothing about numbers."""
    return NUMBER_FORMATS.get(name) if isinstance(name, str) else None


def format_note(name: Any) -> str | None:
    """What the user should know about how a format is read, if anything."""
    return NOTES.get(name) if isinstance(name, str) else None


UUID_VERSIONS = (1, 3, 4, 5, 6, 7, 8)
"""Version 2 is DCE's, whose standard is another; RFC 9562 only names it."""


@lru_cache(maxsize=1)
def _uuid() -> Expr:
    return pattern_language("[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")


@lru_cache(maxsize=len(UUID_VERSIONS))
def _uuid_of_version(version: int) -> Expr:
    return pattern_language(
        f"[0-9A-Fa-f]{{8}}-[0-9A-Fa-f]{{4}}-{version}[0-9A-Fa-f]{{3}}-[89ABab][0-9A-Fa-f]{{3}}-[0-9A-Fa-f]{{12}}"
    )


_POINTER = "(?:/(?:[^~/]|~[01])*)*"


@lru_cache(maxsize=1)
def _json_pointer() -> Expr:
    return pattern_language(f"(?s:{_POINTER})")


@lru_cache(maxsize=1)
def _relative_json_pointer() -> Expr:
    return pattern_language(f"(?s:(?:0|[1-9][0-9]*)(?:#|{_POINTER}))")


@lru_cache(maxsize=1)
def _base64() -> Expr:
    return pattern_language("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


FORMATS: dict[str, Callable[[], Expr]] = {
    "date": times.date,
    "time": times.time,
    "date-time": times.date_time,
    "duration": times.duration,
    "email": addresses.email,
    "idn-email": addresses.idn_email,
    "hostname": hostname,
    "ipv4": addresses.ipv4,
    "ipv6": addresses.ipv6,
    "uri": addresses.uri,
    "uri-reference": addresses.uri_reference,
    "iri": addresses.iri,
    "iri-reference": addresses.iri_reference,
    "uri-template": addresses.uri_template,
    "json-pointer": _json_pointer,
    "relative-json-pointer": _relative_json_pointer,
    "uuid": _uuid,
    **{f"uuid{version}": partial(_uuid_of_version, version) for version in UUID_VERSIONS},
    "byte": _base64,
}
"""The formats of strings that are enforced, by name."""


ONLY_ON_DEMAND = frozenset(("byte",))
"""Formats that no draft of JSON Schema names and real schemas use loosely: asserted with `Formats.ASSERT` only.

Of the 7,959 schemas of the MaskBench development rows, six have valid instances with a ``byte`` that is not base64; the
ranges of ``int32`` and ``int64`` fit all.
"""


def _whole(low: int, high: int) -> NumberRange:
    return NumberRange(Fraction(low), False, Fraction(high), False, Fraction(1))


NUMBER_FORMATS = {
    f"{'u' if low == 0 else ''}int{bits}": _whole(low, (1 << bits) + low - 1)
    for bits in (8, 16, 32, 64)
    for low in (0, -(1 << (bits - 1)))
}
"""The formats of numbers that are enforced, by name (OpenAPI)."""

NOTES = {
    "hostname": (
        "host names with encoded labels (xn--) are left out from draft 7 on, but where they are listed, and so "
        "under not: IDNA's rules are not regular"
    ),
    "idn-email": (
        "of idn-email, labels of the domain that are not ASCII are checked against IDNA but for their length and their "
        "normal form; encoded labels are not decoded"
    ),
    "idn-hostname": (
        "of idn-hostname, encoded labels (xn--) are left out that have more than 50 characters before they stand for "
        "anything, and labels whose beginning alone, encoded, leaves no room; characters are those of this "
        "interpreter's Unicode; beside pattern or a length, and as names of properties, there are no encoded labels, "
        "labels above ASCII have at most 9 characters, and no marks that may compose; under not only what breaks a "
        "rule that is regular"
    ),
    "regex": (
        "of regex, references come behind their groups, names of groups hold no escapes, groups nest at most 100 deep, "
        "beside pattern or maxLength there are no references and few class ranges, property names are not checked"
    ),
}
"""Formats of the specification that are enforced in part or not at all."""

CHECKED_FORMATS = frozenset(("idn-hostname", "regex"))
"""Formats of strings that are enforced with a checker: `guided.grammar.formats.regex_automata` and `idna_names`."""
