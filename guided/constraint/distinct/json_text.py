"""An incremental reader of JSON text: which containers are open, what they hold, what is being read.

It reads no more than the checker needs: from the first undeclared name of an object, or the opening of an array whose
items are compared, to the closing of that container; before and after, the text is *idle* (``None`` here).  Everything
is an immutable value, interned, so that equal situations are the same object.  It knows no grammar: the text is known
to be JSON, and what only the automaton knows (is this name undeclared, are this array's items compared) is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from guided.collection import untrack
from guided.constraint.distinct.json_values import LITERALS, Items, Values
from guided.constraint.distinct.used_keys import UsedKeys

QUOTE, BACKSLASH, COMMA, COLON = b'"\\,:'
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"
_IN_SCALAR = frozenset(b"0123456789+-.eEtruefalsn")
_ESCAPES = {
    ord(k): v
    for k, v in {'"': b'"', "\\": b"\\", "/": b"/", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t"}.items()
}


_HEX = re.compile(rb"\\u[0-9a-f]{4}(?:\\ud[c-f][0-9a-f]{2})?")
_UNESCAPED = re.compile(rb'[^"\\]*')
_BETWEEN = re.compile(rb'[^"\[\]{},]*')


class Mode(IntEnum):
    """What is being read."""

    BETWEEN = 0
    """Nothing that is kept: punctuation, white space, scalars whose value does not matter."""
    NAME = 1
    """A name that may be undeclared."""
    STRING = 2
    """A string whose value matters."""
    SCALAR = 3
    """A number or literal whose value matters."""
    SKIPPED = 4
    """A string that does not matter."""
    SKIPPED_ESCAPE = 5
    """The same, just behind a backslash."""


BETWEEN, NAME, STRING, SCALAR, SKIPPED, SKIPPED_ESCAPE = Mode
"""By themselves: Python 3.11 takes 0.1 us for ``Mode.NAME``, and a piece of a name asked six times."""


class Expects(IntEnum):
    """What may come next in a container."""

    NAME = 0
    COLON = 1
    VALUE = 2
    COMMA = 3


class Level:
    """An open container: what it holds so far, and whether that matters.

    ``compares``: an array in which some thread wants all items to differ.  ``collects``: the container is in such an
    array's item, so its own value matters.  ``used`` holds the names of an object that were undeclared, or the keys of
    the items of an array that compares; ``items`` and ``members`` the whole content where the level collects.  Of a
    container whose values do not matter, ``expects`` only tells names from everything else.
    """

    __slots__ = (
        "collects",
        "compares",
        "expects",
        "is_array",
        "items",
        "members",
        "name",
        "origin",
        "parent",
        "repeating",
        "shape",
        "used",
    )

    def __init__(
        self, parent: Level | None, is_array: bool, compares: bool, collects: bool, expects: Expects, used: UsedKeys,
        items: Items, members: frozenset[tuple[bytes, int]], name: bytes | None,
    ) -> None:  # fmt: skip
        self.parent = parent
        self.is_array = is_array
        self.compares = compares
        self.collects = collects
        self.expects = expects
        self.used = used
        self.items = items
        self.members = members
        self.name = name
        self.shape = 0
        """The same for containers that are open in the same way, whatever they hold."""
        self.origin: Level | None = None
        """The level one part earlier, when it is known."""
        self.repeating: tuple[int, ...] = used.tokens
        """The tokens that hold a name of this container, or of one around it, as a whole string."""
        if parent is not None and parent.repeating:
            self.repeating = tuple(sorted({*used.tokens, *parent.repeating}))

    @property
    def gathers(self) -> bool:
        """Do the values in it matter?"""
        return self.compares or self.collects


class Text:
    """Where the reader is: the innermost open container, and what is being read in it.

    ``text`` is what was read of it: characters of a name or string in UTF-8 (escapes resolved), the text of a number.
    ``pending`` is an escape that is not complete yet, in lower case.
    """

    __slots__ = ("level", "may_collide", "mode", "pending", "text")

    def __init__(self, level: Level | None, mode: Mode, text: bytes, pending: bytes) -> None:
        self.level = level
        self.mode = mode
        self.text = text
        self.pending = pending
        self.may_collide: bool | None = None
        """Remembered by `guided.constraint.distinct.collisions`."""


class Reader:
    """Makes texts from texts; owns the tables that intern them.

    A level knows what it came from, never what comes of it: that is looked up here.  So no cycle leads through levels
    and texts, of which a reader makes thousands, and the garbage collector need not walk them.
    """

    def __init__(self, wholes: Mapping[bytes, tuple[int, ...]] | None = None) -> None:
        self.values = Values()
        self.nothing = UsedKeys()
        self.most_used = 0
        """The most names or items that a container held so far."""
        self._wholes = wholes or {}
        """The tokens that hold a string as a whole (`guided.constraint.distinct.token_texts`)."""
        self._levels: dict[tuple[object, ...], Level] = {}
        self._shapes: dict[tuple[int, bool, bool], int] = {}
        self._turned: dict[tuple[int, Expects], Level] = {}
        """By the id of a level and what may come next: the level that differs from it only in that."""
        self._texts: dict[int, dict[bytes, Text]] = {id(None): {}}
        """By the id of the level, and by what is read in it."""

    def text(self, level: Level | None, mode: Mode = BETWEEN, text: bytes = b"", pending: bytes = b"") -> Text | None:
        """The one text of this content; idle when nothing is open and nothing is read."""
        if level is None and mode is BETWEEN:
            return None
        texts = self._texts[id(level)]
        key = b"%c%c%b%b" % (mode, len(pending), pending, text)
        found = texts.get(key)
        if found is None:
            found = texts[key] = Text(level, mode, text, pending)
            untrack(found)
        return found

    def level(
        self, parent: Level | None, is_array: bool, *, compares: bool = False, collects: bool = False,
        expects: Expects, used: UsedKeys | None = None, items: Items | None = None,
        members: frozenset[tuple[bytes, int]] = frozenset(), name: bytes | None = None, origin: Level | None = None,
    ) -> Level:  # fmt: skip
        """The one level of this content."""
        used = used or self.nothing
        items = items or self.values.empty
        key = (id(parent), is_array, compares, collects, expects, id(used), id(items), members, name)
        found = self._levels.get(key)
        if found is None:
            untrack(key)
            found = self._levels[key] = Level(parent, is_array, compares, collects, expects, used, items, members, name)
            untrack(found)
            found.origin = origin
            shape = (0 if parent is None else parent.shape, is_array, compares)
            found.shape = self._shapes.setdefault(shape, len(self._shapes) + 1)
            self._texts[id(found)] = {}
            self.most_used = max(self.most_used, used.size)
        return found

    def changed(
        self, level: Level, *, expects: Expects, used: UsedKeys | None = None, items: Items | None = None,
        members: frozenset[tuple[bytes, int]] | None = None, name: bytes | None = None,
    ) -> Level:  # fmt: skip
        """A level with other content."""
        return self.level(
            level.parent, level.is_array, compares=level.compares, collects=level.collects, expects=expects,
            used=used or level.used, items=items or level.items,
            members=level.members if members is None else members, name=name, origin=level,
        )  # fmt: skip

    def turned(self, level: Level, expects: Expects) -> Level:
        """The level when something else may come next."""
        if level.expects is expects:
            return level
        key = (id(level), expects)
        found = self._turned.get(key)
        if found is None:
            untrack(key)
            found = self._turned[key] = self.changed(level, expects=expects)
        return found

    # Inside names, strings and scalars.

    def inside(self, text: Text, byte: int) -> Text | None:
        """The text after a byte that stays inside the name, string or scalar being read; None when it ends there."""
        mode = text.mode
        if mode is SKIPPED:
            if byte == QUOTE:
                return None
            return text if byte != BACKSLASH else self.text(text.level, SKIPPED_ESCAPE)
        if mode is SKIPPED_ESCAPE:
            return self.text(text.level, SKIPPED)
        if mode is SCALAR:
            if byte not in _IN_SCALAR or text.text in LITERALS:
                return None
            longer = text.text + bytes((byte,))
            return None if longer in LITERALS else self.text(text.level, mode, longer)
        if mode is BETWEEN:
            return None
        if text.pending:
            decoded, pending = escaped(text.pending + bytes((byte,)).lower())
            return self.text(text.level, mode, text.text + decoded, pending)
        if byte == QUOTE:
            return None
        if byte == BACKSLASH:
            return self.text(text.level, mode, text.text, b"\\")
        return self.text(text.level, mode, text.text + bytes((byte,)))

    def plain(self, text: Text, data: bytes) -> Text | None:
        """The text after bytes without quotes, backslashes, brackets, commas and colons; None: ask for each byte."""
        mode = text.mode
        if mode is NAME or mode is STRING:
            return None if text.pending else self.text(text.level, mode, text.text + data)
        if mode is BETWEEN:
            return None if text.level is not None and text.level.gathers else text
        return text if mode is SKIPPED else None

    def name(self, level: Level | None, data: bytes, at: int) -> Text:
        """The text in a name of which the data from ``at`` on is the beginning."""
        text = self.text(level, NAME)
        assert text is not None
        return text if at == len(data) else self.spelled(text, data, at)[0]

    def spelled(self, text: Text, data: bytes, at: int) -> tuple[Text, int]:
        """Read on in a name or string: the text where it ends or the data does, and the place of its end."""
        size = len(data)
        while at < size:
            if not text.pending:
                run = _UNESCAPED.match(data, at)
                assert run is not None
                if run.end() > at:
                    at = run.end()
                    text = self.text(text.level, text.mode, text.text + run.group())  # type: ignore[assignment]
                    continue
            then = self.inside(text, data[at])
            if then is None:
                break
            text = then
            at += 1
        return text, at

    def skimmed(self, text: Text, data: bytes, at: int) -> tuple[Text | None, int]:
        """Read on in a container whose values do not matter: to the beginning of a name, to its end, or to the data's.

        Returns the text there, and the place behind it.
        """
        level, mode = text.level, text.mode
        assert level is not None
        size = len(data)
        while at < size:
            if mode is SKIPPED_ESCAPE:
                mode = SKIPPED
                at += 1
                continue
            event = (_BETWEEN if mode is BETWEEN else _UNESCAPED).match(data, at)
            assert event is not None
            at = event.end()
            if at == size:
                break
            byte = data[at]
            at += 1
            if mode is SKIPPED:
                if byte == BACKSLASH:
                    mode = SKIPPED_ESCAPE
                else:
                    mode = BETWEEN
                    if level.expects is Expects.NAME:
                        level = self.turned(level, Expects.COMMA)
            elif byte == QUOTE:
                if level.expects is Expects.NAME:
                    return self.text(level, NAME), at
                mode = SKIPPED
            elif byte == COMMA:
                if not level.is_array:
                    level = self.turned(level, Expects.NAME)
            elif byte in (_OPEN_ARRAY, _OPEN_OBJECT):
                level = self.opened(level, byte == _OPEN_ARRAY, False)
            elif level.parent is None:
                return None, at
            else:
                level = level.parent
        return self.text(level, mode), at

    # Between them.

    def opened(self, level: Level | None, is_array: bool, compares: bool) -> Level:
        """A container that has just been opened in another."""
        collects = level is not None and level.gathers
        expects = Expects.NAME if not is_array else Expects.VALUE if compares or collects else Expects.COMMA
        return self.level(level, is_array, compares=compares, collects=collects, expects=expects)

    def begun(self, level: Level, byte: int) -> Text | None:
        """The text after the first byte of a name or scalar, a comma or a colon; the same level for white space."""
        if byte == QUOTE:
            if not level.is_array and level.expects is Expects.NAME:
                return self.text(level, NAME)
            return self.text(level, STRING if level.gathers else SKIPPED)
        if byte == COMMA:
            if not level.is_array:
                return self.text(self.turned(level, Expects.NAME))
            return self.text(self.turned(level, Expects.VALUE) if level.gathers else level)
        if level.gathers:
            if byte == COLON:
                return self.text(self.changed(level, expects=Expects.VALUE, name=level.name))
            if byte in _IN_SCALAR:
                return self.text(level, SCALAR, bytes((byte,)))
        return self.text(level)

    def scalar(self, text: bytes) -> int:
        """The value of a number or literal."""
        return self.values.literal(text) if text in LITERALS else self.values.number(text)

    def closed(self, level: Level) -> int | None:
        """The value of a container that has just been closed, if it matters."""
        if not level.collects:
            return None
        return self.values.array(level.items) if level.is_array else self.values.thing(level.members)

    def with_value(self, level: Level, value: int | None) -> Level:
        """The level after one more value; it is new, where that matters, or need not be."""
        if value is None:
            return self.turned(level, Expects.COMMA)
        used = level.used
        if level.compares and (key := self.values.keys[value]) not in used:
            used = used.with_key(key)
        if not level.collects:
            return self.changed(level, expects=Expects.COMMA, used=used)
        if level.is_array:
            return self.changed(level, expects=Expects.COMMA, used=used, items=level.items.with_item(value))
        members = level.members | {(level.name or b"", value)}
        return self.changed(level, expects=Expects.COMMA, used=used, members=members)

    def with_name(self, level: Level | None, name: bytes, undeclared: bool) -> Text | None:
        """The text behind a name; a name that was not undeclared need not be remembered."""
        if level is None:
            if not undeclared:
                return None
            return self.text(self.level(None, False, expects=Expects.COMMA, used=self._named(self.nothing, name)))
        used = self._named(level.used, name) if undeclared and name not in level.used else level.used
        if not level.collects:
            return self.text(self.changed(level, expects=Expects.COMMA, used=used))
        return self.text(self.changed(level, expects=Expects.COLON, used=used, name=name))

    def _named(self, used: UsedKeys, name: bytes) -> UsedKeys:
        return used.with_key(name, self._wholes.get(name, ()))


def escaped(pending: bytes) -> tuple[bytes, bytes]:
    """The character that an escape spells, and what is still pending; nothing for what is no escape of JSON."""
    size = len(pending)
    if size in (6, 12) and not _HEX.fullmatch(pending):
        return b"", b""
    if size == 2 and pending[1] != 0x75:
        return _ESCAPES.get(pending[1], b""), b""
    if size == 6:
        code = int(pending[2:], 16)
        if 0xD800 <= code < 0xDC00:
            return b"", pending
        return chr(code).encode("utf-8", "surrogatepass"), b""
    if size == 12:
        high, low = int(pending[2:6], 16), int(pending[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).encode("utf-8", "surrogatepass"), b""
    return b"", pending
