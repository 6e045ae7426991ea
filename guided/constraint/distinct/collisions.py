"""May what is being read still become equal to something that was used?

A text *may collide* if the name in progress, or the item in progress of some open array that compares, may still turn
out equal to a used one, as far as its own content shows (what the grammar allows is not asked).  A text that cannot
collide differs in every open container already: nothing in progress can become a duplicate.
"""

from __future__ import annotations

from guided.constraint.distinct.json_text import BACKSLASH, QUOTE, Expects, Level, Mode, Reader, Text
from guided.constraint.distinct.json_values import (
    ARRAY_KEY,
    LITERALS,
    NEGATIVE_KEY,
    OBJECT_KEY,
    POSITIVE_KEY,
    STRING_KEY,
    ZERO_KEY,
    NumberPrefix,
    NumberValue,
    composite_of,
    read_prefix,
)
from guided.constraint.distinct.used_keys import UsedKeys


class Collisions:
    """Answers for the texts of one reader."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._content = reader.values.content
        self._levels: dict[Level, frozenset[int]] = {}

    def may_collide(self, text: Text | None) -> bool:
        """See above; remembered with the text."""
        if text is None or text.level is None:
            return False
        found = text.may_collide
        if found is None:
            found = text.may_collide = self._may_collide(text, text.level)
        return found

    def is_about_names(self, text: Text) -> bool:
        """Of a text that may collide: can nothing but the next name become a duplicate?"""
        level = text.level
        if level is None or not level.gathers:
            return True
        names = text.mode is Mode.NAME or (text.mode is Mode.BETWEEN and level.expects is Expects.NAME)
        return names and not self.candidates(level)

    def ways_on(self, text: Text) -> set[int] | None:
        """Bytes after which a name that may collide or string may still be so, or ends; None when that is not known."""
        level = text.level
        if level is None or text.pending or text.mode not in (Mode.NAME, Mode.STRING):
            return None
        found = {QUOTE, BACKSLASH}
        if text.mode is Mode.NAME:
            found |= level.used.next_bytes(text.text)
        elif level.compares:
            found |= level.used.next_bytes(STRING_KEY + text.text)
        found.update(rest[0] for rest in self._alike(text, level) if rest)
        return found

    def rests(self, text: Text) -> list[bytes]:
        """Of a name or string, what is left of those that it may become so that something were a duplicate."""
        level = text.level
        if level is None:
            return []
        found = self._alike(text, level)
        if text.mode is Mode.NAME:
            found += [name[len(text.text) :] for name in level.used.beginning(text.text)]
        elif level.compares:
            begun = STRING_KEY + text.text
            found += [key[len(begun) :] for key in level.used.beginning(begun)]
        return found

    def _alike(self, text: Text, level: Level) -> list[bytes]:
        """The same, of those that keep a container like a candidate."""
        if text.mode is Mode.NAME:
            like = [name for value in self.candidates(level) for name in self._members(value)] if level.collects else []
        else:
            like = [item for value in self._expected(level) if isinstance(item := self._content[value], bytes)]
        at = len(text.text)
        return [each[at:] for each in like if each.startswith(text.text)]

    def _may_collide(self, text: Text, level: Level) -> bool:
        mode = text.mode
        if mode is Mode.NAME:
            return self._name(text, level)
        if mode is Mode.STRING:
            return self._string(text, level)
        if mode is Mode.SCALAR:
            return self._scalar(text.text, level)
        if mode is Mode.BETWEEN:
            if level.expects is Expects.NAME:
                return bool(level.used.size) or bool(self.candidates(level))
            if level.expects is Expects.VALUE and level.gathers:
                if (level.compares and level.used.size) or self._expected(level):
                    return True
                # An array that has just been opened may also be closed.
                return level.is_array and not level.items.length and bool(self.candidates(level))
        return level.collects and bool(self.candidates(level))

    def _name(self, text: Text, level: Level) -> bool:
        if _goes_on(level.used, text.text, text.pending):
            return True
        if not level.collects:
            return False
        written = {name for name, _ in level.members}
        return any(
            name.startswith(text.text) and name not in written and (not text.pending or name != text.text)
            for candidate in self.candidates(level)
            for name in self._members(candidate)
        )

    def _string(self, text: Text, level: Level) -> bool:
        if level.compares and _goes_on(level.used, STRING_KEY + text.text, text.pending):
            return True
        for candidate in self._expected(level):
            content = self._content[candidate]
            if (
                isinstance(content, bytes)
                and content.startswith(text.text)
                and (not text.pending or content != text.text)
            ):
                return True
        return False

    def _scalar(self, text: bytes, level: Level) -> bool:
        if text[:1] in (b"n", b"t", b"f"):
            value = next(word for word in LITERALS if word.startswith(text))
            entry = self._reader.values.literal(value)
            return (level.compares and self._reader.values.keys[entry] in level.used) or entry in self._expected(level)
        prefix: NumberPrefix = read_prefix(text)
        if level.compares and _has_number(level.used, prefix):
            return True
        for candidate in self._expected(level):
            content = self._content[candidate]
            if isinstance(content, NumberValue) and prefix.may_become(content.value):
                return True
        return False

    def key(self, text: Text) -> tuple[object, ...]:
        """A key under which a search may take texts for the same: numbers with more zeros that tell nothing apart.

        Zeros behind the point, and in front of an exponent, can go on for ever without a new value.
        """
        if text.mode is not Mode.SCALAR or text.text[:1] not in b"-0123456789" or text.level is None:
            return (id(text),)
        prefix = read_prefix(text.text)
        digits = prefix.digits.rstrip("0")
        if prefix.exponent is not None:
            sign = prefix.exponent[:1] if prefix.exponent[:1] in ("+", "-") else ""
            written = prefix.exponent[len(sign) :]
            # Zero has the same value under every exponent.
            written = (written.lstrip("0") if digits else "") or ("0" if written else "")
            scale = prefix.scale + len(prefix.digits) - len(digits) if digits else 0
            return (id(text.level), prefix.negative, digits, scale, sign, written)
        if b"." not in text.text or text.text.endswith(b".") or len(digits) == len(prefix.digits) > 0:
            return (id(text),)
        if digits and not self._extends(prefix, text.level):
            # Only numbers with just these digits are like it, and for them one more zero is as good as many.
            return (id(text.level), prefix.negative, digits, prefix.scale + len(prefix.digits) - len(digits), "zeros")
        return (id(text.level), text.text if digits else text.text[:_ZEROS])

    def _extends(self, prefix: NumberPrefix, level: Level) -> bool:
        """Has some number of those that the text may become more digits?"""
        sign = NEGATIVE_KEY if prefix.negative else POSITIVE_KEY
        if level.compares and level.used.begins(sign + prefix.digits.encode()):
            return True
        return any(
            isinstance(content := self._content[value], NumberValue) and content.value[1].startswith(prefix.digits)
            for value in self._expected(level)
        )

    def candidates(self, level: Level) -> frozenset[int]:
        """The values that an open container may become so that an item around it, or it itself, were a duplicate."""
        if not level.collects:
            return _NONE
        # Levels are made one part at a time, so a known one is usually one step back; kept without recursion.
        way = []
        at: Level | None = level
        while at is not None and at.collects and at not in self._levels:
            way.append(at)
            at = at.origin or at.parent
        for item in reversed(way):
            self._levels[item] = self._candidates(item)
        return self._levels[level]

    def _candidates(self, level: Level) -> frozenset[int]:
        if level.origin is not None:
            before = self._levels[level.origin]
            if not before or (level.items is level.origin.items and level.members == level.origin.members):
                return before
        else:
            before = self._base(level)
        return frozenset(value for value in before if self._holds(value, level))

    def _base(self, level: Level) -> frozenset[int]:
        """The same before the container's own content is looked at."""
        parent = level.parent
        if parent is None:
            return _NONE
        kind = list if level.is_array else dict
        found = set(self._expected(parent))
        if parent.compares:
            found.update(map(composite_of, parent.used.beginning(ARRAY_KEY if level.is_array else OBJECT_KEY)))
        return frozenset(value for value in found if isinstance(self._content[value], kind))

    def _expected(self, level: Level) -> frozenset[int]:
        """The values of the next item or member that would keep a collecting level like a candidate."""
        if not level.collects:
            return _NONE
        candidates = self.candidates(level)
        if not candidates:
            return _NONE
        found = set()
        if level.is_array:
            at = level.items.length
            for candidate in candidates:
                items = self._items(candidate)
                if at < len(items):
                    found.add(items[at])
        elif level.name is not None:
            for candidate in candidates:
                value = self._members(candidate).get(level.name)
                if value is not None:
                    found.add(value)
        return frozenset(found)

    def _holds(self, candidate: int, level: Level) -> bool:
        """Does the candidate begin with the level's items, or have its members?"""
        if not level.is_array:
            members = self._members(candidate)
            return all(members.get(name) == value for name, value in level.members)
        items = self._items(candidate)
        if len(items) < level.items.length:
            return False
        at = level.items
        while at.shorter is not None:
            if items[at.length - 1] != at.item:
                return False
            if level.origin is not None:
                # All but the last item were compared for the level before.
                return True
            at = at.shorter
        return True

    def _items(self, value: int) -> list[int]:
        content = self._content[value]
        assert isinstance(content, list)
        return content

    def _members(self, value: int) -> dict[bytes, int]:
        content = self._content[value]
        assert isinstance(content, dict)
        return content


_NONE: frozenset[int] = frozenset()
_ZEROS = 64
"""Bytes of a number that is all zeros so far which a search tells apart."""
_SHORT = frozenset(b'"\\/\b\f\n\r\t')
"""Characters with an escape of two bytes, which is complete at once."""


def _goes_on(used: UsedKeys, prefix: bytes, pending: bytes) -> bool:
    """Does some key begin so, and go on with a character whose escape begins so if there is one?"""
    if not pending:
        return used.begins(prefix)
    for byte in used.next_bytes(prefix):
        if byte >= 0x80:
            # The first byte of a longer character; which one is not looked at.
            if pending[1:2] in (b"", b"u"):
                return True
        elif (b"\\u%04x" % byte).startswith(pending) or (pending == b"\\" and byte in _SHORT):
            return True
    return False


def _has_number(used: UsedKeys, prefix: NumberPrefix) -> bool:
    """May a number that begins so become one of the set?"""
    sign = NEGATIVE_KEY if prefix.negative else POSITIVE_KEY
    if not prefix.digits:
        return ZERO_KEY in used or (prefix.exponent is None and used.begins(sign))
    if prefix.exponent is None and used.begins(sign + prefix.digits.encode()):
        return True
    digits = prefix.digits.rstrip("0")
    return any(
        prefix.may_become((prefix.negative, digits, int(key[key.index(0) + 1 :])))
        for key in used.beginning(sign + digits.encode() + b"\0")
    )
