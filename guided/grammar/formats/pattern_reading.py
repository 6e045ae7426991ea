r"""Reading a pattern of ECMA-262 from left to right, with what it refers to: groups and their names.

A reference must come behind what it refers to: ``(a)\1`` and ``(?<n>a)\k<n>`` are read, ``\1(a)`` is not.  It never
leads into a dead end: whatever was read is the beginning of some pattern.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, cast

from guided.grammar.formats.regex_automata import EXACT, State
from guided.grammar.regular.stepwise import by_byte


class Groups(NamedTuple):
    """How many groups there are, and what some of them are called; None: any number, or all names."""

    number: int | None
    names: frozenset[bytes] | None


class Reading(NamedTuple):
    """What the rest of a pattern depends on."""

    state: State
    """In `EXACT`."""
    number: int
    """Groups that have begun."""
    names: frozenset[bytes]
    begun: bytes
    """The digits of the reference, or the name, that is being read."""
    known: Groups | None
    """The groups of the whole pattern; None: only those read so far are known."""

    def step(self, byte: int) -> Reading | None:
        """What is read after one more byte of UTF-8; None where no pattern goes on so."""
        target = row(self.state).get(byte)
        if target is None:
            return None
        kind = self.state[0]
        if kind not in _REFERRING:
            return Reading(target, self.number, self.names, self.begun, self.known)
        groups = self.known or Groups(self.number, self.names)
        if kind == "group":
            return self._replace(state=target, number=self.number + (byte != 0x3F))
        if kind in ("escape", "number"):
            if not 0x30 <= byte <= 0x39 or target[0] != "number":
                fails = kind == "escape" and byte == 0x6B and groups.names is not None and not groups.names
                return None if fails else self._replace(state=target, begun=b"")
            digits = self.begun + bytes((byte,))
            if groups.number is not None and (len(digits) > len(str(groups.number)) or int(digits) > groups.number):
                return None
            return self._replace(state=target, begun=digits if groups.number is not None else b"")
        return self._named(target, byte, groups)

    def _named(self, target: State, byte: int, groups: Groups) -> Reading | None:
        """As `step`, where a name may come or go on."""
        goal = target if self.state[0] != "name" or byte != 0x3E else self.state
        if goal[0] == "through":
            goal = goal[3]
        if goal[0] != "name":
            return self._replace(state=target)
        refers = goal[2][0] == "atom"
        if self.state[0] == "name" and byte == 0x3E:
            if refers:
                known = groups.names is None or self.begun in groups.names
                return self._replace(state=target, begun=b"") if known else None
            if self.begun in self.names:
                return None
            return self._replace(state=target, begun=b"", number=self.number + 1, names=self.names | {self.begun})
        begun = self.begun + bytes((byte,))
        if refers and groups.names is not None and not any(name.startswith(begun) for name in groups.names):
            return None
        return self._replace(state=target, begun=begun)

    def next_characters(self) -> frozenset[int] | None:
        """The characters that may come in the name of a reference; None elsewhere."""
        kind, _, *rest = self.state
        if kind != "reference" and not (kind == "name" and rest[0][0] == "atom"):
            return None
        rests = [name[len(self.begun) :] for name in self.names if name.startswith(self.begun)]
        return frozenset(ord(text.decode()[0]) if text else 0x3E for text in rests)

    @property
    def ends(self) -> bool:
        """May the pattern end here?"""
        return EXACT.accepts(self.state)


_REFERRING = frozenset(("group", "escape", "number", "angle", "reference", "name", "through"))
"""Kinds of states in which it matters what groups there are, or in which they come to be."""

START = Reading(EXACT.start, 0, frozenset(), b"", None)


@lru_cache(maxsize=1 << 14)
def row(state: State) -> dict[int, State]:
    """Where each byte leads."""
    kind, groups, *rest = state
    if kind == "behind":
        # There are as many such states as characters, and they differ from where an item comes in the dash only.
        return {**row(("items", groups)), 0x2D: ("range", groups, *rest)}
    return cast("dict[int, State]", by_byte(EXACT.steps(state)))


@lru_cache(maxsize=65536)
def is_pattern(text: str) -> bool:
    """Is a text a pattern?  References may also come before what they refer to."""
    data = text.encode("utf-8", "surrogatepass")
    whole = _read(START._replace(known=Groups(None, None)), data)
    return whole is not None and _read(START._replace(known=Groups(whole.number, whole.names)), data) is not None


def _read(reading: Reading, data: bytes) -> Reading | None:
    now: Reading | None = reading
    for byte in data:
        if now is None:
            return None
        now = now.step(byte)
    return now if now is not None and now.ends else None
