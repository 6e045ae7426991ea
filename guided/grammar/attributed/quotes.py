"""The quotes of names: what closes them, and what is doubled within."""

from __future__ import annotations

__all__ = ["BRACKET", "closes", "doubled", "is_doubled", "single"]

BRACKET, _CLOSING = b"[]"
"""``[x]`` is a name to some engines, of whatever characters but the bracket that closes it."""


def closes(quote: int) -> int:
    """The byte that ends what a quote begins."""
    return _CLOSING if quote == BRACKET else quote


def is_doubled(quote: int) -> bool:
    """Is the byte that ends it doubled where it belongs to the name?"""
    return quote != BRACKET


def doubled(text: bytes, quote: int) -> bytes:
    """A text as it is written in quotes.

    >>> doubled(b'say "x"', ord('"')), doubled(b"a[0", ord("["))
    (b'say ""x""', b'a[0')
    """
    one = bytes([quote])
    return text.replace(one, one + one) if is_doubled(quote) else text


def single(text: bytes, quote: int) -> bytes:
    """What a text in quotes means."""
    one = bytes([quote])
    return text.replace(one + one, one) if is_doubled(quote) else text
