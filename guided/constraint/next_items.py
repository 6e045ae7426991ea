"""Tokens that end an item or member which is surely new and go just to the next: which are free, whatever came before.

A new item may be followed by another if there is one more value that no item has yet, and where values are infinitely
many the automaton's state alone tells that.  So the verdict on such a token depends on the state and on the containers
that are open, and is found once; where the values are finitely many it depends on their number.  So it is with names,
where not every one can go on in infinitely many ways.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from guided.constraint.crossings import Crossing, Crossings, Place
from guided.constraint.json_text import BACKSLASH, QUOTE, Level, Mode, Text
from guided.constraint.json_values import STRING_KEY
from guided.constraint.string_counts import MANY
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.checked import CheckedMachine

_FEW = 8
"""Tokens of which each is looked at by itself before it is asked whether all ends lead to the same state: 20 us."""

_Name: TypeAlias = tuple[int, int, bytes]
"""By how many bytes a name that has just begun may go on, each to another; the state in it, `DEAD` where a token
reaches no name just so, and what is pending there."""


class _Verdicts(NamedTuple):
    """Of the tokens that reach a next item those that are not surely free."""

    doubtful: list[int]
    counted: dict[tuple[int, bytes], list[int]]
    """Free where more strings may come than are seen: by the state in the string, and what is pending in it."""
    holding: list[tuple[int, bytes, bytes]]
    """Free where the string that such a token ends, and the item behind it, are new: the end, and the item."""
    named: dict[int, list[tuple[_Name, int]]]
    """Free where more names may come than were read: by how many containers the token closes before, those with the
    fewest ways first."""


class NextItems:
    """Verdicts for the states of one checked machine."""

    def __init__(self, machine: CheckedMachine) -> None:
        self._machine: CheckedMachine = weakref.proxy(machine)
        self._crossings = Crossings.of(machine.vocabulary)
        self._verdicts: dict[tuple[int, Place, int], _Verdicts] = {}
        # By the state behind a string's end, which is that of many states in the string, and by what comes from there.
        self._names_behind: dict[tuple[int, bytes], _Name] = {}
        self._judged_behind: dict[tuple[tuple[int, bytes], bool], tuple[int, bytes] | bool] = {}

    def doubtful(self, own: int, text: Text, place: Place, tokens: list[int]) -> list[int]:
        """Of the tokens that reach a next item or name, those that are not surely free.

        ``tokens`` is a function of the other arguments.  Where what is in progress may still turn out to be something
        seen, the tokens that make it so, and those that leave that open, are not looked for here.
        """
        level = text.level
        if text.pending or text.mode is Mode.SKIPPED_ESCAPE or not tokens:
            return tokens
        # A name that has begun where nothing else is remembered is the first of its object.
        key = (own, place, 0 if level is None else level.shape)
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = self._judged(own, level, place, tokens)
        if not found.counted and not found.holding and not found.named:
            return found.doubtful
        doubtful = found.doubtful.copy()
        more_than = self._machine.look.counts.more_than
        for closed, names in found.named.items():
            around = _around(level, closed)
            if around is not None and self._machine.likeness.candidates(around):
                doubtful += [token for _, token in names]
                continue
            # One name more is what such a token ends, or what is in progress.
            taken = 1 if around is None else around.seen.size + 1
            for (number, inside, pending), token in names:
                if number > taken:
                    break
                if inside == DEAD or not more_than(inside, pending, taken):
                    doubtful.append(token)
        if level is None:
            return doubtful
        seen = level.seen
        # The item that such a token ends is one more.
        for (inside, pending), counted in found.counted.items():
            if not more_than(inside, pending, seen.size + 1):
                doubtful += counted
        for token, end, item in found.holding:
            if STRING_KEY + item in seen or text.text + end == item:
                doubtful.append(token)
        return doubtful

    def _judged(self, own: int, level: Level | None, place: Place, tokens: list[int]) -> _Verdicts:
        found = _Verdicts([], {}, [], {})
        ends: dict[bytes, int] = {}
        many = len(tokens) > _FEW and place is Place.STRING
        alike = many and self._machine.look.ends_alike(own)
        any_text = many and not alike and self._machine.look.holds_any_text(own)
        for token in tokens:
            crossing = self._crossings.crossing(token, place)
            if crossing is None:
                found.doubtful.append(token)
                continue
            around = _around(level, crossing.closed)
            first = level is None and not crossing.closed
            if not crossing.crosses or (around is None and not first):
                continue
            in_items = around is not None and around.compares
            # In an array the item in progress goes on, which is new already.
            if not in_items and (self._machine.open_names or (around is not None and around.is_array)):
                continue
            behind = None
            if crossing.end is not None:
                end = b"" if alike or (any_text and crossing.plain) else crossing.end
                if end not in ends:
                    ends[end] = self._behind_end(own, crossing.end if alike else end)
                behind = ends[end], crossing.behind
            if not in_items:
                name = None if behind is None else self._names_behind.get(behind)
                if name is None:
                    name = self._name(own, token, crossing)
                    if behind is not None:
                        self._names_behind[behind] = name
                found.named.setdefault(crossing.closed, []).append((name, token))
                continue
            innermost = around is level
            verdict = None if behind is None else self._judged_behind.get((behind, innermost))
            if verdict is None:
                verdict = self._judge(own, innermost, token, crossing)
                if behind is not None:
                    self._judged_behind[behind, innermost] = verdict
            if isinstance(verdict, tuple):
                found.counted.setdefault(verdict, []).append(token)
            elif not verdict:
                found.doubtful.append(token)
            elif crossing.held is not None and crossing.end is not None:
                found.holding.append((token, crossing.end, crossing.held))
        for names in found.named.values():
            names.sort()
        return found

    def _behind_end(self, own: int, end: bytes) -> int:
        """The automaton's state behind what is left of a string, and the quotation mark."""
        machine = self._machine
        return machine.inner.advance_text(own, end + b'"') if end else machine.byte_step(own, QUOTE)

    def _name(self, own: int, token: int, crossing: Crossing) -> _Name:
        machine = self._machine
        if crossing.held is not None or crossing.opened or crossing.number:
            return 0, DEAD, b""
        after = machine.inner.advance_token_text(own, token)
        inside = after if after == DEAD or crossing.quoted else machine.byte_step(after, QUOTE)
        if inside == DEAD or crossing.pending:
            return 0, inside, crossing.pending
        # Every byte but that of an escape leads to names that differ from those behind other bytes.
        return len(machine.look.next_byte_set(inside) - {BACKSLASH}), inside, b""

    def _judge(self, own: int, innermost: bool, token: int, crossing: Crossing) -> tuple[int, bytes] | bool:
        """Is a token free, if the item that it may hold is new?  Or what to ask of the strings that may come."""
        machine = self._machine
        after = machine.inner.advance_token_text(own, token)
        opened = crossing.opened
        in_array = opened != b"{"
        if crossing.number:
            mode = Mode.SCALAR
        elif crossing.quoted:
            mode = Mode.STRING if in_array else Mode.NAME
        else:
            mode = Mode.BETWEEN
        counts = machine.look.counts
        inside = after if crossing.quoted else machine.byte_step(after, QUOTE)
        countable = innermost and not opened and mode is not Mode.SCALAR and inside != DEAD and crossing.held is None
        if countable and counts.more_than(inside, crossing.pending, MANY):
            return inside, crossing.pending
        if machine.look.is_free(after, mode, crossing.pending, in_array, compares=in_array):
            return crossing.held is None or (innermost and crossing.end is not None)
        return (inside, crossing.pending) if countable else False


def _around(level: Level | None, closed: int) -> Level | None:
    """The container that is the innermost after some were closed."""
    for _ in range(closed):
        if level is None:
            break
        level = level.parent
    return level
