"""Which strings can still come of one that has begun, where these are finitely many and few.

Whether such a string, an item of an array of distinct items, can still become one that is not there yet is then a look
at those: what they are depends on the automaton's state alone and is found once, while what is there grows with every
item.  A search for a way out (`guided.constraint.distinct.liveness`) would go through all that is there,
for every item anew.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from guided.constraint.distinct.json_text import BACKSLASH, NEEDS_ESCAPE, QUOTE, escaped
from guided.constraint.distinct.used_keys import UsedKeys
from guided.grammar.ir import Mark
from guided.kernels.layout import DEAD, STRING

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine

_PRINTED = 0x20
"""The first byte that a string may hold as it is."""
_SPACE = frozenset(b" \t\n\r")
_ESCAPE = frozenset((BACKSLASH,))
_PLACES = 20_000
"""States that one listing may visit; 280 names of some 12 characters have 11,800 with all their escapes."""
_BYTES = 1 << 23
"""Memory that the texts of one listing may take."""
_STRING_OVERHEAD = 50
"""Bytes that a text takes beside its own."""
_FAILURES = 3
"""Listings that may turn out too long before no other is begun: each takes up to a second."""


class Rests:
    """The texts that may still come before a string's end, in characters; ``whole``: nothing but these may come."""

    __slots__ = ("_hint", "texts", "whole")

    def __init__(self, texts: tuple[bytes, ...], whole: bool) -> None:
        self.texts = texts
        self.whole = whole
        self._hint = 0

    def has_new(self, begun: bytes, seen: UsedKeys) -> bool:
        """Is one of them, behind ``begun``, not in the set?  The last that was not is tried first."""
        texts = self.texts
        for at in (*range(self._hint, len(texts)), *range(self._hint)):
            if begun + texts[at] not in seen:
                self._hint = at
                return True
        return False


_Place = tuple[int, bytes]
"""An automaton's state within a string, and the escape that is being read."""


class FiniteStrings:
    """Lists the rests of strings for one machine; the machine's lock must be held."""

    def __init__(self, machine: DistinctMachine) -> None:
        self._machine: DistinctMachine = weakref.proxy(machine)
        self._rests: dict[_Place, Rests | None] = {}
        self._values: dict[int, Rests | None] = {}
        self._repeats: dict[tuple[int, Mark], bool] = {}
        """By what comes behind a string: is one that is there already refused by all threads?"""
        self._failures = 0

    def known(self, state: int, pending: bytes | None) -> Rests | None:
        """As `listed`, but does no work: None as well where nothing is listed yet."""
        return self._values.get(state) if pending is None else self._rests.get((state, pending))

    def listed(self, state: int, pending: bytes | None) -> Rests | None:
        """What may come within a string, or with None for ``pending`` where a value begins; None: too much for a list.

        Where a value begins other values may come as well as strings: then these are not the whole.
        """
        if pending is not None:
            return self._within((state, pending))
        if state not in self._values:
            self._values[state] = self._beginning(state)
        return self._values[state]

    def _beginning(self, state: int) -> Rests | None:
        machine = self._machine
        found: set[bytes] = set()
        whole = True
        seen = {state}
        work = [state]
        while work:
            at = work.pop()
            whole = whole and not machine.look.may_end(at)
            for byte in machine.look.next_byte_set(at):
                then = machine.byte_step(at, byte)
                if then == DEAD:
                    continue
                if byte in _SPACE:
                    if then not in seen:
                        seen.add(then)
                        work.append(then)
                elif byte == QUOTE:
                    rests = self._within((then, b""))
                    if rests is None:
                        return None
                    found.update(rests.texts)
                else:
                    whole = False
        return Rests(tuple(sorted(found)), whole)

    def _within(self, start: _Place) -> Rests | None:
        """Depth first, what comes behind a place before the place; None where a place leads back to itself."""
        rests = self._rests
        if start in rests or self._failures >= _FAILURES:
            return rests.get(start)
        ways: dict[_Place, list[tuple[bytes, _Place]] | None] = {}
        ends: dict[_Place, bool] = {}
        stack = [start]
        size = 0
        while stack:
            place = stack[-1]
            if place in rests:
                stack.pop()
                continue
            if place not in ways:
                told = None if place[1] else self.told(place[0], Mark.DISTINCT)
                if told is not None:
                    rests[place] = Rests(told, True)
                    continue
                ways[place], ends[place] = self._ways(place)
                missing = [then for _, then in ways[place] or () if then not in rests]
                if any(then in ways for then in missing):
                    # It is not done, so it is on the way here: round this circle infinitely many texts may come.
                    ways[place] = None
                elif missing:
                    stack += missing
                    continue
            stack.pop()
            found = rests[place] = self._joined(ways[place], ends[place])
            if found is not None:
                size += sum(map(len, found.texts)) + _STRING_OVERHEAD * len(found.texts)
            if len(ways) > _PLACES or size > _BYTES:
                self._failures += 1
                for unfinished in ways:
                    rests.setdefault(unfinished, None)
                break
        return rests[start]

    def told(self, state: int, mark: Mark) -> tuple[bytes, ...] | None:
        """What may come within a string, an item or a name by the mark, where the lexer states list it: in order.

        That takes no steps.  None where they do not, or where a repeated one would not be refused by all threads.
        """
        texts = self._machine.look.inside.texts(state)
        if not texts:
            return None
        # Behind any of them the automaton is in one state, and so it is wherever the same comes behind.
        key = (self._machine.look.inside.threads(state)[0][1], mark)
        found = self._repeats.get(key)
        if found is None:
            plain = next((text for text in texts if not NEEDS_ESCAPE.search(text)), None)
            if plain is None:
                return None
            found = self._repeats[key] = self._is_repeated_behind(state, plain, mark)
        return texts if found else None

    def _is_repeated_behind(self, state: int, plain: bytes, mark: Mark) -> bool:
        """Is such a text, where it is there already, refused by all threads?"""
        behind = self._machine.inner.advance_text(state, plain + b'"')
        if behind == DEAD:
            return False
        frames = self._machine.frames
        if mark is Mark.UNDECLARED:
            return frames.without_undeclared_name(behind) == DEAD
        return frames.without(behind, mark) == DEAD

    def _ways(self, place: _Place) -> tuple[list[tuple[bytes, _Place]] | None, bool]:
        """The places one byte on, each with the characters that the byte completes; and whether the string may end.

        None for the ways where a place must not be listed: a repeated string would not be refused behind it, or not
        by all threads, or the whole text may end within.
        """
        machine = self._machine
        state, pending = place
        if machine.look.may_end(state):
            return None, False
        ways: list[tuple[bytes, _Place]] = []
        ends = False
        following = machine.look.next_byte_set(state)
        machine.byte_steps(state, following - _ESCAPE)
        for byte in following:
            # The step into an escape is the longest.
            if byte == BACKSLASH and not pending and not self._needs_escape(state):
                continue
            then = machine.byte_step(state, byte)
            if then == DEAD:
                continue
            if pending:
                decoded, escape = escaped(pending + bytes((byte,)).lower())
                ways.append((decoded, (then, escape)))
            elif byte == QUOTE:
                if machine.frames.without(then, Mark.DISTINCT) != DEAD:
                    return None, False
                ends = True
            elif byte == BACKSLASH:
                ways.append((b"", (then, b"\\")))
            else:
                ways.append((bytes((byte,)), (then, b"")))
        return ways, ends

    def _needs_escape(self, state: int) -> bool:
        """May the next character be one that a string holds in an escape only?  Others are told without."""
        states = self._machine.inner.states
        for lexer_state, _, _ in self._machine.look.inside.threads(state):
            if not states.arrays.mode[lexer_state] & STRING or states.arrays.decode[lexer_state]:
                return True
            if any(
                low < _PRINTED or low <= QUOTE <= high or low <= BACKSLASH <= high
                for low, high, _ in states.edges(lexer_state)
            ):
                return True
        return False

    def _joined(self, ways: list[tuple[bytes, _Place]] | None, ends: bool) -> Rests | None:
        if ways is None:
            return None
        found = {b""} if ends else set()
        for decoded, then in ways:
            behind = self._rests.get(then)
            if behind is None:
                return None
            if len(ways) == 1 and not decoded and not ends:
                return Rests(behind.texts, True)
            found.update(decoded + text for text in behind.texts)
        return Rests(tuple(sorted(found)), True)
