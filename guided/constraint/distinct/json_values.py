"""JSON values as small ints, equal exactly when JSON Schema calls the values equal.

Numbers by value whatever their spelling (``1``, ``1.0``, ``10e-1``; ``-0`` is ``0``), strings by their characters,
arrays item by item, objects without order.  A value is interned once all of it has been read, so comparing two is
comparing ints, at any depth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

Number: TypeAlias = "tuple[bool, str, int]"
"""Is it negative, its digits without zeros at either end, and the power of ten of the last one; zero has no digits."""

ZERO: Number = (False, "", 0)
LITERALS = (b"null", b"true", b"false")
STRING_KEY, ARRAY_KEY, OBJECT_KEY, ZERO_KEY, POSITIVE_KEY, NEGATIVE_KEY = b"s", b"a", b"o", b"z", b"n+", b"n-"
"""How the keys of values begin."""


_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class Items:
    """The items of an array as far as it goes: a list that is shared by all that begin with it."""

    __slots__ = ("item", "length", "longer", "shorter")

    def __init__(self, shorter: Items | None = None, item: int = -1) -> None:
        self.shorter = shorter
        self.item = item
        self.length: int = 0 if shorter is None else shorter.length + 1
        self.longer: dict[int, Items] = {}

    def with_item(self, item: int) -> Items:
        """One item more; the same object each time."""
        found = self.longer.get(item)
        if found is None:
            found = self.longer[item] = Items(self, item)
        return found

    def as_list(self) -> list[int]:
        """All items in order."""
        found = []
        at = self
        while at.shorter is not None:
            found.append(at.item)
            at = at.shorter
        return found[::-1]


class Values:
    """The table of one constraint's values; ids are never reused."""

    def __init__(self) -> None:
        self._ids: dict[object, int] = {}
        self.content: list[object] = []
        """For each id: `bytes` of a literal in a tuple, `bytes` of a string (UTF-8), `Number` in a `NumberValue`,
        a list of ids, or a mapping of names to ids."""
        self.keys: list[bytes] = []
        """For each id a byte string that is its own, ordered so that values with a common beginning are neighbours."""
        self.empty = Items()

    def literal(self, text: bytes) -> int:
        """``null``, ``true`` or ``false``."""
        return self._id(b"l" + text, (text,), b"l" + text)

    def string(self, text: bytes) -> int:
        """A string of these characters, in UTF-8."""
        key = STRING_KEY + text
        return self._id(key, text, key)

    def number(self, text: bytes) -> int:
        """The number that a JSON text spells; any other text stands for itself."""
        if not _NUMBER.fullmatch(text):
            return self.literal(text)
        value = exact_number(text)
        key = number_key(value)
        return self._id(key, NumberValue(value), key)

    def array(self, items: Items) -> int:
        """An array of these items."""
        found = self._ids.get(items)
        return self._id(items, items.as_list(), ARRAY_KEY) if found is None else found

    def thing(self, members: frozenset[tuple[bytes, int]]) -> int:
        """An object of these members."""
        found = self._ids.get(members)
        return self._id(members, dict(members), OBJECT_KEY) if found is None else found

    def _id(self, identity: object, content: object, key: bytes) -> int:
        found = self._ids.get(identity)
        if found is None:
            found = self._ids[identity] = len(self.content)
            self.content.append(content)
            self.keys.append(key + found.to_bytes(8, "big") if key in (ARRAY_KEY, OBJECT_KEY) else key)
        return found


def composite_of(key: bytes) -> int:
    """The id of the array or object with this key."""
    return int.from_bytes(key[1:], "big")


def number_key(value: Number) -> bytes:
    """The key of a number: sign, digits, then the power of ten, so that equal digits are neighbours."""
    negative, digits, power = value
    return b"%s%s\0%d" % (NEGATIVE_KEY if negative else POSITIVE_KEY, digits.encode(), power) if digits else ZERO_KEY


@dataclass(frozen=True, slots=True)
class NumberValue:
    """A number among other values."""

    value: Number


@dataclass(frozen=True, slots=True)
class NumberPrefix:
    """What the beginning of a number's text says: sign, digits without leading zeros, and the exponent if it began.

    ``scale`` is the power of ten of the last digit so far.
    """

    negative: bool
    digits: str
    scale: int
    exponent: str | None

    def may_become(self, value: Number) -> bool:
        """Can some longer text spell this number?  Never wrongly False; True where only further digits could tell."""
        negative, digits, power = value
        if not digits:
            return not self.digits
        if self.negative is not negative:
            return False
        if not self.digits:
            return self.exponent is None
        stripped = self.digits.rstrip("0")
        if self.exponent is None:
            return digits.startswith(self.digits) or stripped == digits
        if stripped != digits:
            return False
        missing = power - self.scale - (len(self.digits) - len(stripped))
        written = self.exponent
        if written[:1] in "+-" and written:
            if missing and (missing < 0) is not (written[0] == "-"):
                return False
            written = written[1:]
        elif missing < 0:
            return not written
        return _decimal(abs(missing)).startswith(written.lstrip("0"))


def read_prefix(text: bytes) -> NumberPrefix:
    """Take the beginning of a number's text apart.

    >>> read_prefix(b"-0.05")
    NumberPrefix(negative=True, digits='5', scale=-2, exponent=None)
    """
    shown = text.decode("ascii").lower()
    negative = shown.startswith("-")
    mantissa, e, exponent = shown.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    return NumberPrefix(negative, (whole + fraction).lstrip("0"), -len(fraction), exponent if e else None)


def is_zero(text: bytes) -> bool:
    """Is a number's text zero whatever follows: has its exponent begun and no digit but zeros come before?"""
    mantissa, e, _ = text.lower().partition(b"e")
    return bool(e) and not mantissa.strip(b"-0.")


def exact_number(text: bytes) -> Number:
    """The value of a number's text, at any size.

    >>> exact_number(b"-12.50e3"), exact_number(b"-0.0")
    ((True, '125', 2), (False, '', 0))
    """
    prefix = read_prefix(text)
    digits = prefix.digits.rstrip("0")
    if not digits:
        return ZERO
    power = prefix.scale + len(prefix.digits) - len(digits)
    return prefix.negative, digits, power + _whole(prefix.exponent or "0")


_CHUNK = 4000
"""Digits converted at once: Python refuses more than 4,300."""


def _whole(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    text = text.lstrip("+-")
    value = 0
    for at in range(0, len(text), _CHUNK):
        part = text[at : at + _CHUNK]
        value = value * 10 ** len(part) + int(part)
    return sign * value


def _decimal(value: int) -> str:
    """A whole number's digits, none for zero."""
    parts = []
    while value:
        value, rest = divmod(value, 10**_CHUNK)
        parts.append(str(rest).rjust(_CHUNK, "0") if value else str(rest))
    return "".join(reversed(parts))
