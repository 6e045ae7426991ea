"""The live languages of monitors that know which names may come: one of them, whole, and then the text is free again.

A state is a small value: the slice of the sorted names that the letters so far begin.  Names that are prefixes of each
other stay both open; a name is over when a break character follows, any byte that no identifier holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Protocol

__all__ = ["FREE", "Expecting", "Free", "IdentifierBytes", "Names", "Verdict"]

_SHOWN = 8
"""Names that an explanation quotes."""


class Free(Enum):
    """The one value that means: nothing is demanded any more."""

    FREE = "free"


FREE = Free.FREE


class Verdict(Protocol):
    """Allowed continuations as a live language; a value, and from each some text leads to where the text may end."""

    @property
    def may_end(self) -> bool:
        """May the text end here?"""
        ...

    @property
    def rest(self) -> bytes:
        """The shortest text after which it may end, the first in byte order among equals."""
        ...

    @property
    def expected(self) -> str:
        """What may come, in words."""
        ...

    def step(self, byte: int) -> Verdict | Free | None:
        """The verdict after a byte, `FREE` when the byte ends what was demanded, None when it may not come."""
        ...

    @property
    def parts(self) -> tuple[Verdict, ...]:
        """Verdicts whose languages together are this one's; itself alone where it is simple."""
        ...

    @property
    def pattern(self) -> bytes | None:
        """A regular expression for whole tokens: those that it matches may come; None where few may, by walking.

        Tokens that run into free text count as allowed, whatever a monitor says there.
        """
        ...

    @property
    def most(self) -> int | None:
        """Bytes that `rest` never exceeds, here and later; None: no small number."""
        ...

    def releasing(self) -> bytes:
        """The bytes whose step is `FREE`, ascending."""
        ...

    def continuing(self) -> bytes:
        """The bytes whose step is another verdict, ascending."""
        ...


@dataclass(frozen=True)
class IdentifierBytes:
    """The bytes that identifiers of a programming language hold; all others are break characters.

    Bytes above 0x7F count as letters: no language has operators there.
    """

    held: bytes
    breaks: bytes

    @classmethod
    def of(cls, further: str = "") -> IdentifierBytes:
        """Letters, digits, the underscore and ``further`` ASCII characters, ``$`` in Java and JavaScript."""
        marks = {ord(character) for character in "_" + further}
        held = [b for b in range(255) if b >= 0x80 or bytes([b]).isalnum() or b in marks]
        # 0xFF is in no text (see `guided.special_bytes`), so it breaks nothing.
        return cls(bytes(held), bytes(b for b in range(255) if b not in held))


@dataclass(frozen=True, eq=False)
class Names:
    """Some names, sorted, in UTF-8; ``reserved`` and ``assignable`` are for places where a new one may be made.

    With ``assignable``, another identifier may come too if an assignment or annotation of it follows (``= ``, ``: ``).
    """

    names: tuple[bytes, ...]
    alphabet: IdentifierBytes
    assignable: bool = False
    reserved: frozenset[bytes] = frozenset()
    instead: bytes = b""
    """Break characters that may come in place of a name: the second dot of a range."""

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        alphabet: IdentifierBytes,
        *,
        assignable: bool = False,
        reserved: Iterable[str] = (),
        instead: bytes = b"",
    ) -> Names:
        """From names as text; the empty one and those with break characters in them are left out."""
        spelled = {name.encode("utf-8", "replace") for name in names}
        held = frozenset(alphabet.held)
        kept = sorted(name for name in spelled if name and held.issuperset(name))
        return cls(tuple(kept), alphabet, assignable, frozenset(word.encode() for word in reserved), instead)

    @cached_property
    def alone(self) -> Names:
        """The same names, and no new ones."""
        return Names(self.names, self.alphabet, instead=self.instead) if self.assignable else self

    def begin(self) -> Expecting:
        """Before the first letter; there must be a name."""
        return Expecting(self, 0, len(self.names), 0)


@dataclass(frozen=True)
class Expecting:
    """``names[low:high]`` are those that begin with the letters so far, ``depth`` bytes of them."""

    source: Names
    low: int
    high: int
    depth: int

    @property
    def _whole(self) -> bool:
        return self.depth > 0 and len(self.source.names[self.low]) == self.depth

    @property
    def may_end(self) -> bool:
        """A name is whole."""
        return self._whole

    @cached_property
    def rest(self) -> bytes:
        """Of the nearest name, or of a new one's shortest assignment."""
        if self._whole:
            return b""
        ways = [name[self.depth :] for name in self.source.names[self.low : self.high]]
        if self._new:
            ways.append(Creating(self.source, self._written).rest)
        return min(ways, key=lambda way: (len(way), way))

    @property
    def _written(self) -> bytes:
        return self.source.names[self.low][: self.depth]

    @property
    def _new(self) -> bool:
        """May it become a new name?  Those are ASCII."""
        return self.source.assignable and self._written.isascii()

    @property
    def expected(self) -> str:
        """Some of the names."""
        names = [name.decode("utf-8", "replace") for name in self.source.names[self.low : self.high]]
        more = f" or {len(names) - _SHOWN} other names" if len(names) > _SHOWN else ""
        new = " or a new attribute with = or :" if self.source.assignable else ""
        behind = f"after {self._written.decode('utf-8', 'replace')!r}, " if self.depth else ""
        return f"{behind}one of {', '.join(names[:_SHOWN])}{more}{new}"

    def step(self, byte: int) -> Verdict | Free | None:
        """One more letter of a name, or what ends it."""
        source = self.source
        child = self._child(byte)
        if child is not None:
            return child
        if byte in source.alphabet.breaks and (self._whole or (not self.depth and byte in source.instead)):
            return FREE
        return Creating(source, self._written).step(byte) if self._new else None

    @property
    def parts(self) -> tuple[Verdict, ...]:
        """The names, and what makes a new one."""
        if not self._new:
            return (self,)
        return Expecting(self.source.alone, self.low, self.high, self.depth), Creating(self.source, self._written)

    pattern = None
    most = None

    def _child(self, byte: int) -> Expecting | None:
        names, depth = self.source.names, self.depth

        def letter(name: bytes) -> int:
            return name[depth] if len(name) > depth else -1

        low = bisect_left(names, byte, self.low, self.high, key=letter)
        high = bisect_left(names, byte + 1, low, self.high, key=letter)
        return Expecting(self.source, low, high, depth + 1) if low < high else None

    def releasing(self) -> bytes:
        """Break characters behind a whole name; ``:`` behind a new one."""
        if self._whole:
            return self.source.alphabet.breaks
        new = Creating(self.source, self._written).releasing() if self._new else b""
        return new if self.depth else bytes(sorted(new + self.source.instead))

    def continuing(self) -> bytes:
        """The next letters of the names; any letter where a new one may be made."""
        names, depth = self.source.names, self.depth
        found = set()
        at = self.low + int(self._whole)
        while at < self.high:
            byte = names[at][depth]
            found.add(byte)
            child = self._child(byte)
            assert child is not None
            at = child.high
        if self._new:
            more = Creating(self.source, self._written).continuing()
            found.update(more if not self._whole else (byte for byte in more if byte in _LATER))
        return bytes(sorted(found))


_FIRST = bytes(b for b in range(0x80) if chr(b).isalpha() or b == 0x5F)
_LATER = bytes(b for b in range(0x80) if chr(b).isalnum() or b == 0x5F)
_MADE = rb" *(?:=(?:[^=\xff][^\xff]*)?|:[^\xff]*)?"
"""What may stand behind a new name: an assignment or annotation, or their beginning."""


class _Stage(Enum):
    NAME = "name"
    SPACE = "space behind it"
    EQUALS = "equals sign"


@dataclass(frozen=True)
class Creating:
    """A name that did not exist, which may come because an assignment or annotation follows."""

    source: Names
    written: bytes
    stage: _Stage = _Stage.NAME

    @property
    def may_end(self) -> bool:
        """It is assigned to."""
        return self.stage is _Stage.EQUALS

    @property
    def _reserved(self) -> bool:
        return self.written in self.source.reserved

    @property
    def rest(self) -> bytes:
        """The shortest way to have made it."""
        if self.stage is _Stage.EQUALS:
            return b""
        if not self.written:
            return b"A:"
        return b"0:" if self.stage is _Stage.NAME and self._reserved else b":"

    @property
    def parts(self) -> tuple[Verdict, ...]:
        """Itself."""
        return (self,)

    @property
    def pattern(self) -> bytes | None:
        """Letters, then what makes the name, unless the name is reserved; in free text all tokens but a few."""
        if self.stage is _Stage.EQUALS:
            return None
        if self.stage is _Stage.SPACE:
            return _MADE
        size = len(self.written)
        left = sorted(word[size:] for word in self.source.reserved if word.startswith(self.written))
        barred = rb"(?!(?:" + b"|".join(left) + rb")[ =:])" if left else b""
        return barred + (b"" if size else rb"[A-Za-z_]") + rb"[0-9A-Za-z_]*" + (rb"(?:" + _MADE + rb")")

    @property
    def most(self) -> int | None:
        """Two bytes."""
        return 2

    @property
    def expected(self) -> str:
        """An assignment."""
        if self.stage is _Stage.EQUALS:
            return "the value that is assigned"
        if not self.written:
            return "the letters of a new attribute"
        more = "more letters, " if self.stage is _Stage.NAME else ""
        return f"{more}= or : behind the new attribute {self.written.decode()!r}"

    def step(self, byte: int) -> Verdict | Free | None:
        """A letter of the name, a space, or what makes it."""
        if self.stage is _Stage.EQUALS:
            return FREE if byte not in b"=\xff" else None
        if self.stage is _Stage.NAME:
            if byte in (_LATER if self.written else _FIRST):
                return Creating(self.source, self.written + bytes([byte]))
            if self._reserved or not self.written:
                return None
        if byte == 0x20:
            return Creating(self.source, self.written, _Stage.SPACE)
        if byte == 0x3D:
            return Creating(self.source, self.written, _Stage.EQUALS)
        return FREE if byte == 0x3A else None

    def releasing(self) -> bytes:
        """Anything behind one ``=``, else ``:``."""
        if self.stage is _Stage.EQUALS:
            return bytes(b for b in range(255) if b != 0x3D)
        return b"" if self.stage is _Stage.NAME and (self._reserved or not self.written) else b":"

    def continuing(self) -> bytes:
        """Letters, spaces and ``=``."""
        if self.stage is _Stage.EQUALS:
            return b""
        if self.stage is _Stage.SPACE:
            return b" ="
        if not self.written:
            return _FIRST
        return _LATER if self._reserved else bytes(sorted(b" =" + _LATER))
