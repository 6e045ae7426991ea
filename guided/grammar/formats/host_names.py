"""Host names of ASCII: as languages, with and without encoded labels, and one by one."""

from __future__ import annotations

from functools import lru_cache

from guided.grammar.formats.patterns import of_length, pattern_language
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.texts import holds_word

LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
"""A label of RFC 1123."""


@lru_cache(maxsize=1)
def hostname() -> Expr:
    """RFC 1123."""
    return of_length(pattern_language(rf"{LABEL}(?:\.{LABEL})*"), 1, 253)


_INNER, _END = "[A-Za-z0-9-]", "[A-Za-z0-9]"
_UNENCODED_LABEL = (
    f"(?:[A-WYZa-wyz0-9](?:{_INNER}{{0,61}}{_END})?|[Xx](?:[A-MO-Za-mo-z0-9-]{_INNER}{{0,60}}{_END}|{_END}"
    f"|[Nn](?:{_END}{_INNER}{{0,59}}{_END}|-{_END}{_INNER}{{0,58}}{_END}|-?{_END}))?)"
)
"""A label that does not begin with ``xn--``, which makes it an encoded one (RFC 5890, section 2.3.2.1)."""


@lru_cache(maxsize=1)
def unencoded_hostname() -> Expr:
    """RFC 1123, without labels that RFC 5891 would have to check."""
    return of_length(pattern_language(rf"{_UNENCODED_LABEL}(?:\.{_UNENCODED_LABEL})*"), 1, 253)


def is_ascii_host_name(text: str) -> bool:
    """Is a text a host name of RFC 1123 whose encoded labels stand for something?"""
    # The tables of IDNA are loaded where they are asked for.
    from guided.grammar.formats.idna_names import PREFIX, is_host_name

    encoded = [label for label in text.split(".") if label[: len(PREFIX)].lower() == PREFIX]
    return holds_word(hostname(), text) and all(map(is_host_name, encoded))
