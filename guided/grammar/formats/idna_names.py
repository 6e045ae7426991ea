"""Internationalized host names read from left to right, with what no automaton holds: lengths, normal form, encoding.

A label of ASCII counts with its characters, any other with those of its encoded form (``xn--`` and Punycode, RFC 3492);
a label has at most 63, a name 253 with its full stops.  Reading never leads into a dead end: behind whatever was read
there is a short way to the end of some name, which `HostName.ending` knows.  Two kinds of names are not read for that:
those with an encoded label that is long before it can stand for anything (`_encoded_ending`), and those with a
beginning that leaves no room, whether for a letter more (which may take none) or for one of some chosen endings.
`is_host_name` knows them all.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from guided.grammar.formats.idna_characters import SEPARATORS, characters
from guided.grammar.formats.idna_labels import DEAD, Direction, Kind, labels

MOST_IN_LABEL, MOST_IN_NAME = 63, 253
"""RFC 1035, section 2.3.4; a name of 255 octets on the wire has 253 characters."""
PREFIX = "xn--"
"""What an encoded label begins with."""
_TRIED, _MARKS_TRIED = 2, 64
"""Characters of each class that are tried when some of the bytes of one are there; marks may compose or not."""
_LETTERS = "a0l\u03b1\u30a2\u05d0\u0628\u1820"
"""Letters that bring a label to an end: for each rule one that it asks for; none composes with another."""
_LONGEST_ENDING = 2
"""Every state of the automaton has an ending of so many letters or fewer."""


class HostName(NamedTuple):
    """Immutable; equal places go on equally."""

    state: int
    """In the automaton of `idna_labels`."""
    before: int
    """Octets of the labels before this one, with their full stops."""
    label: str
    partial: bytes
    """The beginning of a character."""
    strict: bool
    """Labels were read that the automaton alone knows less of."""

    def step(self, byte: int) -> HostName | None:
        """The place after one more byte of UTF-8; None where no name goes on so."""
        if byte < 0x80:
            return None if self.partial else self.read(chr(byte))
        partial = self.partial + bytes((byte,))
        ranges = _spelled(partial)
        if ranges is None:
            return None
        low, high = ranges
        if low == high:
            return self._replace(partial=b"").read(chr(low))
        found = self._replace(partial=partial)
        return found if found.first_of(((low, high),)) is not None else None

    def read(self, letter: str) -> HostName | None:
        """The place after a character; None where no name goes on so."""
        return _read(self, letter)

    @property
    def encoded(self) -> str | None:
        """What follows ``xn--``, in lower case; None in other labels."""
        return self.label[len(PREFIX) :].lower() if self.label[: len(PREFIX)].lower() == PREFIX else None

    @property
    def ends(self) -> bool:
        """May the name end here?"""
        return not self.partial and _after_label(self) is not None

    @property
    def ending(self) -> str:
        """A short text behind which the name may end, from between two characters."""
        found = _ending(self)
        assert found is not None
        return found

    @property
    def completed(self) -> str:
        """A character that begins as the one that has begun, and with which the name may go on."""
        ranges = _spelled(self.partial)
        found = None if ranges is None else self.first_of((ranges,))
        assert found is not None
        return found

    def first_of(self, ranges: Iterable[tuple[int, int]]) -> str | None:
        """A character of some ranges with which the name may go on; not all are tried."""
        whole = self._replace(partial=b"")
        found = (_first_between(whole, low, high) for low, high in ranges)
        return next((letter for letter in found if letter is not None), None)

    @property
    def tail(self) -> str:
        """From the last character on that marks behind it can compose with."""
        at = len(self.label) - 1
        while at > 0 and unicodedata.combining(self.label[at]):
            at -= 1
        return self.label[max(at, 0) :]


@lru_cache(maxsize=1)
def beginning() -> HostName:
    """Before the first character."""
    return HostName(labels(Kind.HOST).starts[Direction.OPEN], 0, "", b"", False)


@lru_cache(maxsize=1 << 14)
def _read(name: HostName, letter: str) -> HostName | None:
    table, of = labels(Kind.HOST), characters().of
    if letter in SEPARATORS:
        after = _after_label(name)
        if after is None:
            return None
        strict = name.strict or after != table.rows[name.state][of[0x2E]]
        found = HostName(after, name.before + octets(name.label) + 1, "", b"", strict)
    else:
        state = table.rows[name.state][of[ord(letter)]]
        # Hardly any label has room for a letter that it would not have for an octet; such are not read.
        if state == DEAD or not _fits(name, octets(name.label) + 1):
            return None
        found = name._replace(state=state, label=name.label + letter)
        if not _is_normal(found.label):
            return None
    return found if _ending(found) is not None else None


def _after_label(name: HostName) -> int | None:
    """Where the automaton is behind a full stop that comes here; None where the label is none, or too long."""
    table = labels(Kind.HOST)
    if not table.accepts[name.state] or not _fits(name, octets(name.label)):
        return None
    encoded = name.encoded
    if encoded is not None:
        return _after_encoded(encoded, _beginning_of(name.state))
    state = table.rows[name.state][characters().of[0x2E]]
    return None if state == DEAD else state


@lru_cache(maxsize=16)
def _beginning_of(state: int) -> int:
    """Of a state in an encoded label: where the label began, which tells what was known of directions."""
    table, of = labels(Kind.HOST), characters().of
    return table.rows[table.rows[state][of[0x61]]][of[0x2E]]


@lru_cache(maxsize=1 << 14)
def _after_encoded(encoded: str, state: int) -> int | None:
    """Where the automaton is behind an encoded label that began in a state; None where it is none."""
    if not encoded or encoded.endswith("-"):
        return None
    try:
        text = encoded.encode("ascii").decode("punycode")
        if text.isascii() or _punycode(text) != encoded:
            return None
    except (UnicodeError, OverflowError, ValueError):
        return None
    if not _is_normal(text) or any(letter in SEPARATORS for letter in text):
        return None
    table, of = labels(Kind.HOST), characters().of
    for letter in (*text, "."):
        state = table.rows[state][of[ord(letter)]]
        if state == DEAD:
            return None
    return state


def _fits(name: HostName, size: int) -> bool:
    return size <= MOST_IN_LABEL and name.before + size <= MOST_IN_NAME


@lru_cache(maxsize=1 << 14)
def _ending(name: HostName) -> str | None:
    encoded = name.encoded
    if encoded is not None:
        found = _encoded_ending(encoded, _beginning_of(name.state))
        return found if found is not None and _fits(name, len(name.label) + len(found)) else None
    for text in _endings(name.state):
        if _fits(name, octets(name.label + text)):
            return text
    return None


@lru_cache(maxsize=512)
def _endings(state: int) -> tuple[str, ...]:
    """The shortest texts that bring a label to an end; what is left of one is again such a text for the state there."""
    table, of = labels(Kind.HOST), characters().of
    found: list[str] = []
    for length in range(_LONGEST_ENDING + 1):
        if found:
            break
        for letters in itertools.product(_LETTERS, repeat=length):
            at = state
            for letter in letters:
                at = table.rows[at][of[ord(letter)]]
                if at == DEAD:
                    break
            else:
                if table.accepts[at]:
                    found.append("".join(letters))
    return tuple(found)


@lru_cache(maxsize=512)
def least_to_end(kind: Kind, state: int) -> int:
    """Characters that are missing to the end of a label, at least; of ASCII where all are so far."""
    table = labels(kind)
    reached, left = {state}, 0
    while not any(table.accepts[at] for at in reached):
        reached = {target for at in reached for target in table.rows[at] if target != DEAD}
        left += 1
    return left


@lru_cache(maxsize=1 << 14)
def _encoded_ending(encoded: str, state: int) -> str | None:
    """What is missing to the end of an encoded label; None where nothing was found that fits.

    All of its ASCII characters may come before the rest of it, so what was read can always be those of some label with
    other characters around them.  Where that would be too long, what was read must be such a label, or on its way.
    """
    if _after_encoded(encoded, state) is not None:
        return ""
    for basic in dict.fromkeys((encoded, encoded.rpartition("-")[0])):
        for whole in _around(basic, state):
            if whole.startswith(encoded) and len(whole) + len(PREFIX) <= MOST_IN_LABEL:
                return whole[len(encoded) :]
    return None


@lru_cache(maxsize=1 << 12)
def _around(basic: str, state: int) -> tuple[str, ...]:
    """Encoded labels of these characters of ASCII and others before and behind them, shortest first."""
    found = {_punycode("\xdf" * before + basic + "\xdf" * behind) for before in range(4) for behind in range(2)}
    return tuple(sorted((text for text in found if _after_encoded(text, state) is not None), key=len))


@lru_cache(maxsize=1 << 14)
def octets(label: str) -> int:
    """How many octets a label has on the wire."""
    if label.isascii():
        return len(label)
    codes = [ord(letter) for letter in label]
    above = sorted({code for code in codes if code >= 0x80})
    handled = basic = sum(code < 0x80 for code in codes)
    size = len(PREFIX) + basic + (basic > 0)
    # RFC 3492, section 6.3, counting digits instead of writing them.
    at, bias, delta = 0x80, 72, 0
    for code in above:
        delta += (code - at) * (handled + 1)
        for other in codes:
            if other < code:
                delta += 1
            elif other == code:
                size += _digits(delta, bias)
                delta = delta // 700 if handled == basic else delta // 2
                handled += 1
                delta += delta // handled
                bias = 0
                while delta > 455:
                    delta //= 35
                    bias += 36
                bias += 36 * delta // (delta + 38)
                delta = 0
        delta += 1
        at = code + 1
    return size


def _digits(value: int, bias: int) -> int:
    """How many digits a number has where the thresholds follow a bias."""
    count = 1
    place = 36
    while True:
        threshold = min(max(place - bias, 1), 26)
        if value < threshold:
            return count
        value = (value - threshold) // (36 - threshold)
        count += 1
        place += 36


def _punycode(text: str) -> str:
    return text.encode("punycode").decode("ascii")


def _is_normal(label: str) -> bool:
    return label.isascii() or unicodedata.is_normalized("NFC", label)


@lru_cache(maxsize=65536)
def is_host_name(text: str) -> bool:
    """Is a text an internationalized host name?"""
    if not text:
        return False
    table, of = labels(Kind.HOST), characters().of
    name = beginning()
    for letter in text + ".":
        if letter in SEPARATORS:
            after = _after_label(name)
            if after is None or not _is_normal(name.label):
                return False
            name = HostName(after, name.before + octets(name.label) + 1, "", b"", False)
            continue
        state = table.rows[name.state][of[ord(letter)]]
        if state == DEAD or len(name.label) >= MOST_IN_LABEL:
            return False
        name = name._replace(state=state, label=name.label + letter)
    return True


def _spelled(partial: bytes) -> tuple[int, int] | None:
    """The first and last character whose UTF-8 begins so."""
    lead = partial[0]
    size = 2 if 0xC2 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4 if 0xF0 <= lead < 0xF5 else 0
    if not size or any(not 0x80 <= byte < 0xC0 for byte in partial[1:]):
        return None
    missing = size - len(partial)
    low = lead & (0xFF >> size + 1)
    for byte in partial[1:]:
        low = low << 6 | byte & 0x3F
    low, high = low << 6 * missing, (low + 1 << 6 * missing) - 1
    low, high = max(low, (0x80, 0x800, 0x10000)[size - 2]), min(high, 0x10FFFF)
    return (low, high) if low <= high else None


@lru_cache(maxsize=1 << 14)
def _first_between(name: HostName, low: int, high: int) -> str | None:
    """A character between two with which a name may go on, of those that are tried."""
    if name.encoded is None and not _fits(name, octets(name.label) + 1):
        # Only a full stop could follow, which stands for itself or has bytes of its own.
        letters: Iterable[str] = (letter for letter in SEPARATORS if low <= ord(letter) <= high)
    else:
        letters = _candidates(name, low, high)
    return next((letter for letter in letters if name.read(letter) is not None), None)


def _candidates(name: HostName, low: int, high: int) -> Iterator[str]:
    """Characters between two that the automaton allows.

    First those of the label itself, then some of each class: with a narrower range that holds one of them it is again
    among them.
    """
    row = labels(Kind.HOST).rows[name.state]
    yield from (letter for letter in dict.fromkeys(name.label) if low <= ord(letter) <= high)
    waiting: list[Sequence[str]] = []
    for kind in _classes_between(low, high):
        if row[kind] != DEAD:
            waiting.append(_first_of_class(kind, low, high))
    # Of every class one, then of every class another, since a class that fails does so as a whole.
    for letters in itertools.zip_longest(*waiting):
        yield from (letter for letter in letters if letter is not None)


@lru_cache(maxsize=1 << 12)
def _classes_between(low: int, high: int) -> tuple[int, ...]:
    return tuple(sorted(set(characters().of[low : high + 1]) - {0}))


@lru_cache(maxsize=1 << 14)
def _first_of_class(kind: int, low: int, high: int) -> str:
    of = characters().of
    found: list[str] = []
    at = of.find(kind, low, high + 1)
    most = _MARKS_TRIED if characters().classes[kind].is_mark else _TRIED
    while at >= 0 and len(found) < most:
        found.append(chr(at))
        at = of.find(kind, at + 1, high + 1)
    return "".join(found)
