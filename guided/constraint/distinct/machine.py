"""The machine of a grammar in which names or items must not repeat.

A state is a pair of the automaton's state and of what the text holds (`guided.constraint.distinct.json_text`).  Where
the text holds nothing to remember, the pair is the automaton's own state: texts without undeclared names and distinct
items cost what they cost without a checker.  So do the beginnings of names that turn out to be declared: the first
with which the automaton comes to a state is kept beside that state, and only others make a pair of it.  A pair is
refused where a name or item repeats one used before, and where it could only come to that
(`guided.constraint.distinct.liveness`).

It has the methods of `ConstraintMachine` on which `Constraint` and `Completions` rest, and the same contracts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from guided.collection import untrack
from guided.constraint.distinct.collisions import Collisions
from guided.constraint.distinct.completion import DistinctCompletions
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
)
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.marked_rules import has_open_names, marks_of
from guided.constraint.distinct.refusals import Refusals
from guided.constraint.distinct.spelling import Spelling
from guided.constraint.distinct.token_texts import TokenTexts
from guided.constraint.limits import Limits
from guided.constraint.machine import ConstraintMachine
from guided.constraint.product import ProductMachine
from guided.errors import UnsupportedError, VocabularyError
from guided.grammar.ir import Grammar, Mark
from guided.kernels.layout import DEAD, FAR, FINISHED
from guided.kernels.marks import BEHIND, INSIDE
from guided.vocab.vocabulary import Vocabulary

_PAIRED = 1 << 32
"""From here on states are pairs; the machine's own are 32-bit ints."""

_PLAIN = re.compile(rb'[^"\\\[\]{},:]+')
_NAMES, _NAMES_AND_ARRAYS = re.compile(rb'"'), re.compile(rb'["\[]')
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"


class DistinctMachine(ProductMachine):
    """The append-only tables of a compiled constraint whose rules are marked; states are ints into them."""

    inner: ConstraintMachine

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits) -> None:
        marks = marks_of(grammar)
        if Mark.REPEATING in marks:
            where = next(rule.name for rule in grammar.rules if rule.mark is Mark.REPEATING)
            raise UnsupportedError(
                "an array in which two items must be equal",
                where=where,
                remedy="Drop the negated uniqueItems.",
            )
        self.inner = ConstraintMachine(grammar, vocabulary, limits, tells=Mark.UNDECLARED)
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.limits = limits
        self.lock: threading.RLock = self.inner.lock
        self.lexed = self.inner.lexed
        self.owing = self.inner.owing
        self.compares = Mark.DISTINCT in marks
        """Are items of some array compared?"""
        self.frames = Frames(self.inner)
        self._texts = self.token_texts = TokenTexts.of(vocabulary)
        self.reader = Reader(self._texts.wholes)
        self.likeness = Collisions(self.reader)
        self.look = Liveness(self)
        self.refusals = Refusals(self)
        self._byte_steps: dict[tuple[int, int], int] = {}
        self._begun: dict[int, bytes] = {}
        """By the machine's own state: what was read of a name, the first time, where nothing else is remembered."""
        self._pairs: dict[int, int] = {}
        """Pairs by the text's number and the machine's state."""
        # Side by side, since every pair of its own would be one more object for the garbage collector to walk.
        self._pair_states: list[int] = []
        self._pair_texts: list[Text] = []
        self._events = self._texts.events_or_arrays if self.compares else self._texts.events
        self._wakes = _NAMES_AND_ARRAYS if self.compares else _NAMES
        self.completions = DistinctCompletions(self)
        self._spelled = None if vocabulary.byte_complete else Spelling(self)
        self.start = self.join(self.inner.start, None)
        if self.start == DEAD:
            raise VocabularyError(
                "this vocabulary's tokens cannot spell any text of the grammar that repeats no name and no item",
                remedy="Use a tokenizer that has tokens for these characters.",
            )
        # None of them is in a cycle: those that refer to this do so weakly.
        for part in (self, self.frames, self.reader, self.likeness, self.look, self.refusals, self.completions):
            untrack(part)

    @cached_property
    def open_names(self) -> bool:
        """Can every undeclared name go on in infinitely many ways?"""
        return has_open_names(self.grammar)

    @cached_property
    def only_names(self) -> bool:
        """Can nothing be refused but the end of a name that the object holds already?

        So it is where no items are compared, every byte can be spelled, and of infinitely many names only finitely
        many are taken: then nothing leads into a dead end.
        """
        return self._spelled is None and not self.compares and self.open_names

    @cached_property
    def _keeps_begun(self) -> bool:
        """Is the mask of a state in which a name has begun, and nothing else is remembered, the automaton's own?"""
        return self.refusals.trusts_idle and not self.inner.owing

    # Pairs.

    def split(self, state: int) -> tuple[int, Text | None]:
        """The machine's state, and what the text holds."""
        if state < _PAIRED:
            name = self._begun.get(state)
            return state, None if name is None else self.reader.text(None, NAME, name)
        return self._pair_states[state - _PAIRED], self._pair_texts[state - _PAIRED]

    def join(self, state: int, text: Text | None) -> int:
        """The one state of a pair; `DEAD` where nothing can follow."""
        if text is None:
            return state if self._spelled is None or self._spelled.alive(state, None) else DEAD
        if text.level is None and text.mode is NAME and not text.pending and self._keeps_begun:
            return self._begin(state, text.text)
        return self._pair(state, text)

    def _begin(self, state: int, name: bytes) -> int:
        """The one state of a pair in which a name has begun and nothing else is remembered."""
        if state == DEAD or self._begun.setdefault(state, name) == name:
            return state
        text = self.reader.text(None, NAME, name)
        assert text is not None
        return self._pair(state, text)

    def _pair(self, state: int, text: Text) -> int:
        pair = text.number << 32 | state
        found = self._pairs.get(pair)
        if found is None:
            found = DEAD
            if state != DEAD and self._lives(state, text):
                found = _PAIRED + len(self._pair_states)
                self._pair_states.append(state)
                self._pair_texts.append(text)
            self._pairs[pair] = found
        return found

    def _lives(self, state: int, text: Text | None) -> bool:
        """Can the text go on to an end?"""
        if self._spelled is not None:
            return self._spelled.alive(state, text)
        return text is None or self.only_names or self.look.alive(state, text)

    # Steps.

    def advance_token(self, state: int, token: int) -> int:
        """The state after a token's bytes (not an end-of-text id)."""
        if state < _PAIRED and self._spelled is None:
            name = self._begun.get(state)
            if name is not None:
                return self._name_on(state, name, token)
            events = self._events[token]
            if not events:
                return self.inner.advance_token(state, token)
            if events == 1 and not self.inner.owing:
                with self.lock:
                    return self._quoted(state, token)
        return self._advance(state, token)

    def _name_on(self, state: int, name: bytes, token: int) -> int:
        """The state after a token behind the beginning of a name, where nothing else is remembered."""
        inner, texts = self.inner, self._texts
        with self.lock:
            if not texts.structural[token]:
                return self._begin(inner.step(state, token), name + texts.spelled(token))
            if texts.lone[token] and self._events[token] == 1:
                return self._ended(inner.step(state, token, True), None, name, texts.spelled(token))
            return self._advance(state, token)

    def _advance(self, state: int, token: int) -> int:
        with self.lock:
            own, text = self.split(state)
            data = self._texts.spelled(token)
            if not data:
                return DEAD
            if text is None:
                if self._events[token] == 1 and not self.inner.owing:
                    return self._quoted(own, token)
            elif not self._texts.structural[token]:
                then = self.reader.plain(text, data)
                if then is not None:
                    after = self.inner.advance_token_text(own, token)
                    return self.join(after, self._still_name(after, then) if then.mode is NAME else then)
            elif text.mode is NAME and self._texts.lone[token] and self._events[token] == 1:
                after, ended = self._close_name(own, text, data, token)
                if ended:
                    return after
            return self.join(*self._read(own, text, data, token))

    def _quoted(self, own: int, token: int) -> int:
        """The state after a token with one quotation mark, where nothing is remembered."""
        # A name that is begun by the only quotation mark has not ended: else nothing is remembered.
        found = self.inner.step(own, token, True)
        if not found & INSIDE:
            return self.join(found >> 2, None)
        data = self._texts.spelled(token)
        at = data.index(QUOTE) + 1
        if self._texts.lone[token] and self._keeps_begun:
            return self._begin(found >> 2, data[at:])
        return self.join(found >> 2, self.reader.name(None, data, at))

    def _close_name(self, own: int, text: Text, data: bytes, token: int) -> tuple[int, bool]:
        """The state after a token in which a name ends, and whether this is known without reading it in pieces."""
        level = text.level
        if text.pending or self.inner.owing or (level is not None and level.collects):
            return DEAD, False
        if level is not None and text.text + data[: data.index(QUOTE)] in level.seen:
            return DEAD, False
        return self._ended(self.inner.step(own, token, True), level, text.text, data), True

    def _ended(self, found: int, level: Level | None, begun: bytes, data: bytes) -> int:
        """The state after a token with the only quotation mark that ends a name, of which the kernel says ``found``."""
        if found == DEAD:
            return DEAD
        at = data.index(QUOTE)
        then = self.reader.with_name(level, begun + data[:at], bool(found & BEHIND))
        if then is not None and at + 1 < len(data):
            then, _ = self.reader.skimmed(then, data, at + 1)
        return self.join(found >> 2, then)

    def lives(self, state: int, token: int) -> bool:
        """Is a token (not an end-of-text id) allowed?  As `advance_token`, but leaves no state behind."""
        return self.reads(state, self._texts.spelled(token))

    def reads(self, state: int, data: bytes) -> bool:
        """The same of some bytes."""
        after, then = self.read(*self.split(state), data)
        return after != DEAD and self._lives(after, then)

    def read(self, state: int, text: Text | None, data: bytes) -> tuple[int, Text | None]:
        """The pair after some bytes, `DEAD` where one is refused or completes a duplicate; looks no further ahead."""
        return self._read(state, text, data)

    def _read(self, state: int, text: Text | None, data: bytes, token: int = -1) -> tuple[int, Text | None]:
        """As `read`; ``token``: the id that has these bytes.

        The automaton is asked only where it must say what a name or array is; in between the text is read alone.
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
            state = self.inner.advance_token_text(state, token)
        elif asked < size:
            state = self._after(state, data[asked:])
        if state == DEAD:
            return DEAD, None
        return state, self._still_name(state, text) if text is not None and text.mode is NAME else text

    def _after(self, state: int, data: bytes) -> int:
        """The machine's state after some bytes; a token that has these is the cheapest way to say it."""
        token = self._texts.short.get(data)
        return self.inner.advance_text(state, data) if token is None else self.inner.advance_token_text(state, token)

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
        if level is not None and text.text in level.seen:
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
            token = self._texts.of_byte[byte] if state > FINISHED else None
            if token is None:
                found = self.inner.advance_text(state, bytes((byte,)))
            else:
                found = self.inner.advance_token_text(state, token)
            self._byte_steps[key] = found
        return found

    def byte_steps(self, state: int, data: Iterable[int]) -> None:
        """Remember the machine's states after each of some bytes, in one go where there are several."""
        steps, of_byte = self._byte_steps, self._texts.of_byte
        new = [byte for byte in data if (state, byte) not in steps and of_byte[byte] is not None]
        if len(new) > 1 and state > FINISHED:
            tokens = [token for byte in new if (token := of_byte[byte]) is not None]
            for byte, after in zip(new, self.inner.advance_each(state, tokens), strict=True):
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
            return after, self._still_name(after, then) if mode is NAME else then
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
        if level.compares and self.reader.values.keys[value] in level.seen:
            state = self.frames.without(state, Mark.DISTINCT)
            if state == DEAD:
                return DEAD, None
        return state, self.reader.text(self.reader.with_value(level, value))

    def _still_name(self, state: int, text: Text) -> Text | None:
        """The text in a name; once it is surely declared it need not be remembered."""
        level = text.level
        if self.only_names or (level is not None and level.collects) or self.frames.inside_undeclared_name(state):
            return text
        if level is None:
            return None
        return self.reader.text(level, SKIPPED_ESCAPE if text.pending == b"\\" else SKIPPED)

    # What the rest of a constraint asks for.

    def mask(self, state: int, limit: int = -1) -> NDArray[np.uint32]:
        """The row of tokens that keep ``state`` alive; with ``limit`` only those after which so many tokens suffice."""
        with self.lock:
            if limit < 0:
                return self.refusals.mask(state)
            self.begin_prices()
            row, _ = self.near(state, limit)
            return np.zeros(self.vocabulary.n_words, np.uint32) if row is None else row

    def near(self, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int]:
        """As `ConstraintMachine.near`."""
        if state < _PAIRED and self.refusals.trusts_idle and self._begun.get(state) not in self._texts.following:
            return self.inner.near(state, limit)
        return self.refusals.near(state, limit)

    def need(self, state: int) -> int:
        """As `ConstraintMachine.need`: what the automaton says, and what it takes not to repeat anything."""
        own, text = self.split(state)
        with self.lock:
            return min(self.inner.need(own) + self.completions.apart(text), FAR)

    def cheapest_text(self, state: int) -> bytes | None:
        """As the automaton's, perhaps behind the way out of what would repeat something."""
        found = super().cheapest_text(state)
        if found is None:
            own, text = self.split(state)
            if text is not None and self.likeness.consistent(text):
                out = self.look.way_out(own, text)
                rest = super().cheapest_text(self.advance_text(state, out))
                found = None if rest is None else out + rest
        return found

    def alike(self, state: int) -> int:
        """The automaton's own state, where it allows the same tokens and ends alike; else the state itself."""
        if state < _PAIRED:
            return state
        with self.lock:
            own, text = self._pair_states[state - _PAIRED], self._pair_texts[state - _PAIRED]
            return own if self.refusals.shares_mask(state, own, text) else state

    def visit(self, state: int) -> tuple[NDArray[np.uint32], bool, int]:
        """The mask of a state, to be written to where the text may end, whether it may, and the fingerprint or -1."""
        if state < _PAIRED and self.refusals.trusts_idle:
            return self.inner.visit(state)
        with self.lock:
            return self.refusals.visit(state)

    def repetition(self, state: int, byte: int) -> str | None:
        """Why the checker alone refuses a byte, after "it"; None when the automaton refuses it too."""
        own, text = self.split(state)
        with self.lock:
            if self.byte_step(own, byte) == DEAD:
                return None
            if self.step(own, text, byte)[0] != DEAD:
                return "leaves no way on that does not repeat a name or an item"
            if text is not None and text.mode is NAME:
                return f"would repeat the name {text.text.decode('utf-8', 'replace')!r}"
            return "would repeat an item of an array whose items must differ"
