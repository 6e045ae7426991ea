"""Reads bytes into pairs: the automaton's state, and what the text holds.

A byte is refused where the automaton refuses it, and where it completes a name or item that was used before.  What lies
ahead is not looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from guided.constraint.distinct.collisions import Collisions
from guided.constraint.distinct.frames import Frames
from guided.constraint.distinct.json_text import (
    BETWEEN,
    NAME,
    QUOTE,
    SCALAR,
    SKIPPED,
    SKIPPED_ESCAPE,
    STRING,
    Expects,
    Level,
    Reader,
    Text,
)  # fmt: skip
from guided.constraint.distinct.marked_rules import forces_several, has_open_names, room_of_names
from guided.constraint.distinct.token_texts import TokenTexts
from guided.constraint.engine.machine import ConstraintMachine
from guided.grammar.ir import Mark
from guided.kernels.data.layout import DEAD, FINISHED
from guided.kernels.masking.tracks import MOST_NAME, NAME_AT

_PLAIN = re.compile(rb'[^"\\\[\]{},:]+')
_NAMES, _NAMES_AND_ARRAYS = re.compile(rb'"'), re.compile(rb'["\[]')
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"

_FIRST = np.asarray(sorted(range(256), key=lambda byte: (not chr(byte).isalnum() or byte > 127, byte == 0x30, byte)))
"""Bytes in the order in which a way out is looked for: digits and letters, of which one usually is a new one, first.

A zero comes late, since zeros at the end of a number may be undone by an exponent.
"""

_LEAST_HELD = 3
"""Bytes that a line of kernels holds of a used name at least."""


class Steps:
    """Answers for one automaton; its lock must be held."""

    def __init__(self, automaton: ConstraintMachine, compares: bool) -> None:
        self.automaton = automaton
        self.compares = compares
        """Are items of some array compared?"""
        self.frames = Frames(automaton)
        self.tokens = TokenTexts.of(automaton.vocabulary)
        self.reader = Reader(self.tokens.wholes)
        self.collisions = Collisions(self.reader)
        self._wakes = _NAMES_AND_ARRAYS if compares else _NAMES
        self._byte_steps: dict[tuple[int, int], int] = {}
        self._bytes: dict[int, list[int]] = {}
        self._byte_sets: dict[int, frozenset[int]] = {}
        self._ends: dict[int, bool] = {}

    @cached_property
    def open_names(self) -> bool:
        """Can every undeclared name go on in infinitely many ways?"""
        return has_open_names(self.automaton.grammar)

    @cached_property
    def room(self) -> int:
        """The most bytes of an undeclared name behind which more of them come than a line of kernels holds; or -1.

        Then no name that is held leads into a dead end: nowhere in it are all that may come held.  One more may be
        asked for, of those that no object has yet.
        """
        if self.open_names:
            return MOST_NAME
        if forces_several(self.automaton.grammar):
            return -1
        return room_of_names(self.automaton.grammar, NAME_AT // _LEAST_HELD)

    @cached_property
    def only_names(self) -> bool:
        """Can nothing be refused but the end of a name that the object holds already?

        So it is where no items are compared, every byte can be spelled, and of infinitely many names only finitely
        many are taken: then nothing leads into a dead end.
        """
        return self.automaton.vocabulary.byte_complete and not self.compares and self.open_names

    def next_bytes(self, state: int) -> list[int]:
        """The bytes that the automaton can read next, likely ways out first."""
        found = self._bytes.get(state)
        if found is None:
            marked = self.automaton.next_bytes(state)
            found = self._bytes[state] = _FIRST[marked[_FIRST] != 0].tolist()
        return found

    def next_byte_set(self, state: int) -> frozenset[int]:
        """The same without order."""
        found = self._byte_sets.get(state)
        if found is None:
            found = self._byte_sets[state] = frozenset(self.next_bytes(state))
        return found

    def may_end(self, state: int) -> bool:
        """May the whole text end in a state of the automaton?"""
        found = self._ends.get(state)
        if found is None:
            found = self._ends[state] = self.automaton.is_accepting(state)
        return found

    def read(self, state: int, text: Text | None, data: bytes, token: int = -1) -> tuple[int, Text | None]:
        """The pair after some bytes, `DEAD` where one is refused or completes a duplicate.

        ``token``: the id that has these bytes, if it is known.  The automaton is asked only where it must say what a
        name or array is; in between the text is read alone.
        """
        reader = self.reader
        at, size = 0, len(data)
        asked = 0
        while at < size:
            if text is None:
                event = self._wakes.search(data, at)
                if event is None:
                    break
                at = event.end()
                state, asked = self._after(state, data[asked:at]), at
                if state == DEAD:
                    return DEAD, None
                text = self._woken(state, data[at - 1])
            elif text.mode is NAME:
                text, at = reader.spelled(text, data, at)
                if at < size:
                    at += 1
                    state, asked = self._after(state, data[asked:at]), at
                    if state == DEAD:
                        return DEAD, None
                    state, text = self._named(state, text)
                    if state == DEAD:
                        return DEAD, None
            elif not self.compares:
                text, at = reader.skimmed(text, data, at)
            else:
                run = _PLAIN.match(data, at)
                then = None if run is None else reader.plain(text, run.group())
                if run is not None and then is not None:
                    text, at = then, run.end()
                    continue
                if at > asked:
                    state, asked = self._after(state, data[asked:at]), at
                state, text = self.step(state, text, data[at])
                at += 1
                asked = at
                if state == DEAD:
                    return DEAD, None
        if asked == 0 and token >= 0:
            state = self.automaton.advance_token_text(state, token)
        elif asked < size:
            state = self._after(state, data[asked:])
        if state == DEAD:
            return DEAD, None
        return state, self.still_name(state, text) if text is not None and text.mode is NAME else text

    def _after(self, state: int, data: bytes) -> int:
        """The machine's state after some bytes; a token that has these is the cheapest way to say it."""
        token = self.tokens.short.get(data)
        return (
            self.automaton.advance_text(state, data)
            if token is None
            else self.automaton.advance_token_text(state, token)
        )

    def _woken(self, state: int, byte: int) -> Text | None:
        """What is remembered after a quotation mark or an opening bracket of which nothing is known."""
        if byte == QUOTE:
            return self.reader.name(None, b"", 0) if self.frames.inside_undeclared_name(state) else None
        if Mark.DISTINCT in self.frames.innermost(state):
            return self.reader.text(self.reader.opened(None, True, True))
        return None

    def _named(self, state: int, text: Text) -> tuple[int, Text | None]:
        """The pair behind the end of a name; `DEAD` where it repeats another."""
        level = text.level
        if level is not None and text.text in level.used:
            # Threads for which this is no such name may go on: text beside the JSON, in grammars that allow both.
            state = self.frames.without_undeclared_name(state)
            return (DEAD, None) if state == DEAD else (state, self.reader.with_name(level, text.text, False))
        return state, self.reader.with_name(level, text.text, self.frames.behind_undeclared_name(state))

    def byte_step(self, state: int, byte: int) -> int:
        """The machine's state after one byte, remembered."""
        key = (state, byte)
        found = self._byte_steps.get(key)
        if found is None:
            # A token is the cheapest way to say what is read.
            token = self.tokens.of_byte[byte] if state > FINISHED else None
            if token is None:
                found = self.automaton.advance_text(state, bytes((byte,)))
            else:
                found = self.automaton.advance_token_text(state, token)
            self._byte_steps[key] = found
        return found

    def byte_steps(self, state: int, data: Iterable[int]) -> None:
        """Remember the machine's states after each of some bytes, in one go where there are several."""
        steps, of_byte = self._byte_steps, self.tokens.of_byte
        new = [byte for byte in data if (state, byte) not in steps and of_byte[byte] is not None]
        if len(new) > 1 and state > FINISHED:
            tokens = [token for byte in new if (token := of_byte[byte]) is not None]
            for byte, after in zip(new, self.automaton.advance_each(state, tokens), strict=True):
                steps[state, byte] = after

    def step(self, state: int, text: Text | None, byte: int) -> tuple[int, Text | None]:
        """The pair after one byte, `DEAD` when the byte is refused or completes a duplicate; looks no further ahead."""
        after = self.byte_step(state, byte)
        if after == DEAD:
            return DEAD, None
        reader = self.reader
        if text is None:
            return after, self._woken(after, byte) if byte == QUOTE or (byte == _OPEN_ARRAY and self.compares) else None
        level, mode = text.level, text.mode
        if mode is BETWEEN:
            assert level is not None
            return self._between(after, level, byte)
        then = reader.inside(text, byte)
        if then is not None:
            return after, self.still_name(after, then) if mode is NAME else then
        if mode is NAME:
            return self._named(after, text)
        assert level is not None
        if mode is STRING:
            return self._completed(after, level, reader.values.string(text.text))
        if mode is SCALAR:
            longer = text.text + bytes((byte,))
            if text.text[:1] in b"ntf":
                return self._completed(after, level, reader.values.literal(longer))
            # A number ends with what follows it, so it is judged before that.
            value = reader.values.number(text.text)
            kept, then = self._completed(state, level, value)
            if kept == DEAD or then is None or then.level is None:
                return DEAD, None
            after = after if kept == state else self.byte_step(kept, byte)
            return (DEAD, None) if after == DEAD else self._between(after, then.level, byte)
        return after, reader.text(reader.turned(level, Expects.COMMA))

    def _between(self, after: int, level: Level, byte: int) -> tuple[int, Text | None]:
        reader = self.reader
        if byte == _OPEN_ARRAY:
            compares = self.compares and Mark.DISTINCT in self.frames.innermost(after)
            return after, reader.text(reader.opened(level, True, compares))
        if byte == _OPEN_OBJECT:
            return after, reader.text(reader.opened(level, False, False))
        if byte in (_CLOSE_ARRAY, _CLOSE_OBJECT):
            if level.parent is None:
                return after, None
            value = reader.closed(level)
            if value is None:
                return after, reader.text(reader.with_value(level.parent, None))
            return self._completed(after, level.parent, value)
        return after, reader.begun(level, byte)

    def _completed(self, state: int, level: Level, value: int) -> tuple[int, Text | None]:
        """The pair after a value; threads in which it must not repeat another are dropped where it does."""
        if level.compares and self.reader.values.keys[value] in level.used:
            state = self.frames.without(state, Mark.DISTINCT)
            if state == DEAD:
                return DEAD, None
        return state, self.reader.text(self.reader.with_value(level, value))

    def still_name(self, state: int, text: Text) -> Text | None:
        """The text in a name; once it is surely declared it need not be remembered."""
        level = text.level
        if self.only_names or (level is not None and level.collects) or self.frames.inside_undeclared_name(state):
            return text
        if level is None:
            return None
        return self.reader.text(level, SKIPPED_ESCAPE if text.pending == b"\\" else SKIPPED)
