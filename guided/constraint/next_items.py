"""Tokens that end an item or member which is surely new and go just to the next: which are free, whatever came before.

A new item may be followed by another if there is one more value that no item has yet, and where values are infinitely
many the automaton's state alone tells that.  So the verdict on such a token depends on the state and on the containers
that are open, and is found once; where the values are finitely many it depends on their number.  So it is with names,
where not every one can go on in infinitely many ways.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

from guided.constraint.crossings import Crossing, Crossings, Place
from guided.constraint.json_text import BACKSLASH, QUOTE, Level, Mode, Text
from guided.constraint.json_values import STRING_KEY
from guided.constraint.string_counts import MANY
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.checked import CheckedMachine


class _Verdicts(NamedTuple):
    """Of the tokens that reach a next item those that are not surely free."""

    doubtful: list[int]
    counted: list[tuple[int, int, bytes]]
    """Free where more strings may come than are seen: the token, the state in the string, and what is pending in it."""
    holding: list[tuple[int, bytes, bytes]]
    """Free where the string that such a token ends, and the item behind it, are new: the end, and the item."""
    named: list[tuple[int, int, int]]
    """Free where a next name may go on by more bytes than names were read: the token, the number of these bytes, and
    how many containers the token closes before."""


class NextItems:
    """Verdicts for the states of one checked machine."""

    def __init__(self, machine: CheckedMachine) -> None:
        self._machine: CheckedMachine = weakref.proxy(machine)
        self._crossings = Crossings.of(machine.vocabulary)
        self._verdicts: dict[tuple[int, Place, int], _Verdicts] = {}

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
        for token, number, closed in found.named:
            around = _around(level, closed)
            # One name more is what such a token ends, or what is in progress.
            if number <= (1 if around is None else around.seen.size + 1):
                doubtful.append(token)
        if level is None:
            return doubtful
        seen = level.seen
        more_than = self._machine.look.counts.more_than
        # The item that such a token ends is one more.
        doubtful += [token for token, at, pending in found.counted if not more_than(at, pending, seen.size + 1)]
        for token, end, item in found.holding:
            if STRING_KEY + item in seen or text.text + end == item:
                doubtful.append(token)
        return doubtful

    def _judged(self, own: int, level: Level | None, place: Place, tokens: list[int]) -> _Verdicts:
        found = _Verdicts([], [], [], [])
        alike: dict[bytes, tuple[int, bytes] | bool] | None = None
        if place is Place.STRING and self._machine.look.holds_any_text(own):
            alike = {}
        ways: dict[int | bytes, int | None] = {}
        for token in tokens:
            crossing = self._crossings.crossing(token, place)
            if crossing is None:
                found.doubtful.append(token)
                continue
            around = _around(level, crossing.closed)
            first = level is None and not crossing.closed
            if not crossing.crosses or (around is None and not first):
                continue
            if around is None or not around.compares:
                # In an array the item in progress goes on, which is new already.
                if (around is None or not around.is_array) and not self._machine.open_names:
                    if around is not None and around.collects:
                        found.doubtful.append(token)
                        continue
                    by = token if alike is None or crossing.behind is None else crossing.behind
                    if by not in ways:
                        ways[by] = self._ways(own, token, crossing)
                    number = ways[by]
                    if number is not None:
                        found.named.append((token, number, crossing.closed))
                continue
            behind = None if alike is None else crossing.behind
            verdict = None if alike is None or behind is None else alike.get(behind)
            if verdict is None:
                verdict = self._judge(own, around is level, token, crossing)
                if alike is not None and behind is not None:
                    alike[behind] = verdict
            if isinstance(verdict, tuple):
                found.counted.append((token, *verdict))
            elif not verdict:
                found.doubtful.append(token)
            elif crossing.held is not None and crossing.end is not None:
                found.holding.append((token, crossing.end, crossing.held))
        return found

    def _ways(self, own: int, token: int, crossing: Crossing) -> int | None:
        """By how many bytes the name behind a token may go on, each to another name; None where names are infinite.

        A token that reaches no name just so has none.
        """
        machine = self._machine
        if crossing.held is not None or crossing.opened or crossing.number:
            return 0
        after = machine.inner.advance_token_text(own, token)
        inside = after if after == DEAD or crossing.quoted else machine.byte_step(after, QUOTE)
        if inside == DEAD:
            return 0
        if machine.look.counts.is_infinite(inside, crossing.pending):
            return None
        # Every byte but that of an escape leads to names that differ from those behind other bytes.
        return 0 if crossing.pending else len(machine.look.next_byte_set(inside) - {BACKSLASH})

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
        infinite = countable and counts.is_infinite(inside, crossing.pending)
        if countable and not infinite and counts.more_than(inside, crossing.pending, MANY):
            return inside, crossing.pending
        if infinite or machine.look.is_free(after, mode, crossing.pending, in_array, compares=in_array):
            return crossing.held is None or (innermost and crossing.end is not None)
        return (inside, crossing.pending) if countable else False


def _around(level: Level | None, closed: int) -> Level | None:
    """The container that is the innermost after some were closed."""
    for _ in range(closed):
        if level is None:
            break
        level = level.parent
    return level
