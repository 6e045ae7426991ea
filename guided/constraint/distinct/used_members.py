"""Tokens refused in or before a name or string of an object that is an item, or part of one, like one seen so far.

They complete such an item, or can only come to that.  Which could is told by what is left of the names and strings
that would keep the object like one seen; and of most the automaton's state behind them tells that the item can still
become another, whatever has been seen, which is found once.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import NEEDS_ESCAPE, QUOTE, Expects, Level, Mode, Text
from guided.constraint.distinct.string_counts import ANY_ASCII, MANY
from guided.constraint.distinct.token_shapes import Ending, Place, TokenShapes
from guided.constraint.distinct.token_texts import TokenTexts, is_text
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine

_DOUBTFUL = -1
_QUOTE_MARK = bytes((QUOTE,))


class _Ways(NamedTuple):
    """Of the tokens that spell what is left of a string, or a part of that, those that are not surely free."""

    doubtful: list[int]
    closing: list[int]
    """Free where the object is not complete with that string, or with that name and its value."""
    counted: list[tuple[int, int, bytes]]
    """Free where more strings may come than there are objects like this: the token, the state behind it in the string,
    and what is pending there."""


class UsedMembers:
    """Answers for the states of one checked machine; the machine's lock must be held."""

    def __init__(self, machine: DistinctMachine) -> None:
        self._machine: DistinctMachine = weakref.proxy(machine)
        self._texts = TokenTexts.of(machine.vocabulary)
        self._crossings = TokenShapes.of(machine.vocabulary)
        self._ways: dict[tuple[int, Mode, bytes], _Ways] = {}
        self._counted: dict[tuple[int, int], int] = {}
        self._free: dict[int, bool] = {}

    def doubtful(self, own: int, row: NDArray[np.uint32], text: Text) -> list[int] | None:
        """Allowed tokens behind which the text may repeat an item or can only come to that; None where not told.

        Told are those before which the text agrees with what was seen as long as it goes.  Names that the object
        holds already are not looked for.
        """
        level, machine = text.level, self._machine
        if level is None or level.is_array or not level.collects or text.pending or not machine.open_names:
            return None
        likeness, mode = machine.likeness, text.mode
        rests = likeness.rests(text)
        if rests is None or (mode is Mode.BETWEEN and not self._is_free_behind_space(own)):
            return None
        found = list(self._texts.members) if rests else []
        nearly = likeness.is_nearly_complete(level)
        more_than, number = machine.look.counts.more_than, len(likeness.candidates(level))
        anyhow = self._goes_on_anyhow(own, level, mode)
        for rest in rests:
            key = (own, mode, rest)
            ways = self._ways.get(key)
            if ways is None:
                judged = self._judged_before if mode is Mode.BETWEEN else self._judged
                ways = self._ways[key] = judged(own, row, text, rest, anyhow and is_text(rest))
            found += ways.doubtful
            if nearly:
                found += ways.closing
            found += [token for token, after, pending in ways.counted if not more_than(after, pending, number)]
        return found

    def _goes_on_anyhow(self, own: int, level: Level, mode: Mode) -> bool:
        """May infinitely many names or strings come, of the one in progress or the next, whatever is read of it?"""
        if mode is not Mode.BETWEEN:
            return self._machine.look.inside.goes_on_anyhow(own, mode)
        inside = Mode.NAME if level.expects is Expects.NAME else Mode.STRING
        begun = (self._machine.byte_step(at, QUOTE) for at in self._machine.look.behind_space(own))
        return all(state != DEAD and self._machine.look.inside.goes_on_anyhow(state, inside) for state in begun)

    def _judged(self, own: int, row: NDArray[np.uint32], text: Text, rest: bytes, anyhow: bool) -> _Ways:
        """In a name or string, of which this is left; ``anyhow``: it may go on to infinitely many, whatever is read."""
        found = _Ways([], [], [])
        texts, mode = self._texts, text.mode
        closing = [token for ways in texts.closing.get(rest, ()) for token in ways.within(row)]
        # First, since what is found on the way from the string's end tells of most tokens that end it.
        told = anyhow or self._ends_freely(own, rest)
        self._judge_ending(found, own, closing, Place.STRING)
        spelled = told and (anyhow or self._machine.look.inside.is_text(own))
        escaping = texts.escaping_halves if anyhow else texts.escaping
        for size in range(min(len(rest), texts.longest_escaping) + 1) if escaping else ():
            for token, pending in escaping.get(rest[:size], ()):
                if not (spelled and not anyhow and _is_spelled(rest[size : size + 1], pending)):
                    self._judge_staying(found, own, mode, token, pending)
        if not told and not (rest.isascii() and self._machine.look.is_uniform(own, text)):
            for token in texts.beginning(rest):
                self._judge_staying(found, own, mode, token, b"")
        return found

    def _judged_before(self, own: int, row: NDArray[np.uint32], text: Text, content: bytes, anyhow: bool) -> _Ways:
        """Where this name or string may begin."""
        found = _Ways([], [], [])
        texts, level = self._texts, text.level
        mode = Mode.NAME if level is not None and level.expects is Expects.NAME else Mode.STRING
        wholes = [token for token in texts.wholes.get(content, ()) if tokenset.contains(row, token)]
        self._judge_ending(found, own, wholes, Place.BETWEEN)
        opening = texts.opening_halves if anyhow else texts.opening
        told = anyhow or all(self._ends_freely(at, content, _QUOTE_MARK) for at in self._machine.look.behind_space(own))
        for size in range(min(len(content), texts.longest_opening) + 1) if opening else ():
            for token, pending in opening.get(content[:size], ()):
                if not (told and texts.lone[token]):
                    self._judge_staying(found, own, mode, token, pending)
        return found

    def _ends_freely(self, own: int, rest: bytes, before: bytes = b"") -> bool:
        """Does what is left of a string, as it stands, lead to where it is plain that the item can be a new one?

        Then so does each beginning of it.
        """
        if NEEDS_ESCAPE.search(rest):
            return False
        behind = self._machine.inner.advance_text(own, before + rest + _QUOTE_MARK)
        return behind != DEAD and self._machine.look.leads_out_behind(behind)

    def _judge_ending(self, found: _Ways, own: int, tokens: list[int], place: Place) -> None:
        """Tokens that end the name or string."""
        going: list[tuple[int, Ending]] = []
        for token in tokens:
            ending = self._crossings.ending(token, place)
            if ending is None:
                found.doubtful.append(token)
            elif ending.closed:
                found.closing.append(token)
            else:
                going.append((token, ending))
        after = self._machine.inner.advance_each(own, [token for token, _ in going])
        for (token, ending), state in zip(going, after, strict=True):
            if not self._leads_out(state, ending):
                found.doubtful.append(token)

    def _judge_staying(self, found: _Ways, own: int, mode: Mode, token: int, pending: bytes) -> None:
        """A token that ends within it."""
        key = (own, token)
        after = self._counted.get(key)
        if after is None:
            after = self._counted[key] = self._behind_staying(own, mode, token, pending)
        if after == _DOUBTFUL:
            found.doubtful.append(token)
        elif after != DEAD:
            found.counted.append((token, after, pending))

    def _is_free_behind_space(self, own: int) -> bool:
        """Is there a way out from a place where a name or value begins, and behind any white space?"""
        found = self._free.get(own)
        if found is None:
            reached = self._machine.look.behind_space(own)
            free = (self._machine.look.is_free(at, Mode.BETWEEN, b"", False, compares=False) for at in reached)
            found = self._free[own] = bool(reached) and all(free)
        return found

    def _leads_out(self, after: int, ending: Ending) -> bool:
        in_array = ending.inner == b"["
        mode = Mode.NAME if ending.quoted else Mode.BETWEEN
        return self._machine.look.is_free(after, mode, ending.pending, in_array, compares=in_array)

    def _behind_staying(self, own: int, mode: Mode, token: int, pending: bytes) -> int:
        """`DEAD` for a token that is free, the state behind one that is counted, or `_DOUBTFUL`."""
        look = self._machine.look
        if (
            pending in ANY_ASCII
            and self._texts.size(token) == len(pending)
            and look.inside.loops_behind_escape(own, pending)
        ):
            return DEAD
        after = self._machine.inner.advance_token_text(own, token)
        if after == DEAD:
            return DEAD
        if mode is Mode.NAME and self._machine.frames.inside_undeclared_name(after):
            # Of infinitely many names that may still come finitely many are taken.
            return DEAD
        if look.is_open_string(after, mode, pending):
            return DEAD
        if mode is Mode.STRING and look.counts.more_than(after, pending, MANY):
            return after
        return DEAD if look.is_free(after, mode, pending, False, compares=False) else _DOUBTFUL


def _is_spelled(character: bytes, pending: bytes) -> bool:
    """May an escape that is being read, if one is, become this character of ASCII?"""
    return not pending or (character.isascii() and character != b"" and (b"\\u%04x" % character[0]).startswith(pending))
