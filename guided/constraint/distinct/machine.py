"""The machine of a grammar in which names or items must not repeat.

A state is a pair of the automaton's state and of what the text holds (`guided.constraint.distinct.json_text`).  Where
the text holds nothing to remember, the pair is the automaton's own state: texts without undeclared names and distinct
items cost what they cost without a checker.  So do the beginnings of names that turn out to be declared: the first one
that leads to a state is kept with that state, and only others make a pair.  A pair is refused where a name or item
repeats a used one, and where nothing else is possible (`guided.constraint.distinct.liveness`).

It has the methods of `ConstraintMachine` on which `Constraint` and `Completions` rest, and the same contracts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from guided.collection import untrack
from guided.constraint.distinct.budgets import Budgets
from guided.constraint.distinct.completion import DistinctCompletions
from guided.constraint.distinct.json_text import (
    BETWEEN,
    NAME,
    QUOTE,
    SKIPPED,
    SKIPPED_ESCAPE,
    Expects,
    Level,
    Text,
)  # fmt: skip
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.marked_rules import marks_of
from guided.constraint.distinct.refusals import Follows, Refusals
from guided.constraint.distinct.steps import Steps
from guided.constraint.distinct.supply import Supply
from guided.constraint.effects.character_tokens import CharacterTokens
from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.engine.plans import Plan, SelfLoop, Track
from guided.constraint.limits import Limits
from guided.constraint.product import ProductMachine
from guided.errors import UnsupportedError, VocabularyError
from guided.grammar.ir import Grammar, Mark
from guided.grammar.rules import every_rule
from guided.kernels.data.addresses import address
from guided.kernels.data.layout import DEAD
from guided.kernels.masking.tracks import BEGUN, ENDED, HELD_WHOLE, MOST_DEPTH, MOST_NAME, NAME_AT, Mode
from guided.kernels.parsing.marks import BEHIND, INSIDE
from guided.vocab.vocabulary import Vocabulary

__all__ = ["DistinctMachine"]

MOST_USED = 64
"""Used names of a container beyond which none is told."""

_MODES = {BETWEEN: Mode.BETWEEN, SKIPPED: Mode.STRING, SKIPPED_ESCAPE: Mode.ESCAPE, NAME: Mode.NAME}
"""What kernels call the places in a container whose values do not matter."""


class DistinctMachine(ProductMachine[Text]):
    """The append-only tables of a compiled constraint whose rules are marked; states are ints into them.

    Raises `UnsupportedError` for an array in which two items must be equal, `VocabularyError` where no tokens spell a
    text that repeats nothing.
    """

    inner: ConstraintMachine

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits) -> None:
        marks = marks_of(grammar)
        if Mark.REPEATING in marks:
            where = next(rule.name for rule in every_rule(grammar.rules) if rule.mark is Mark.REPEATING)
            raise UnsupportedError(
                "an array in which two items must be equal",
                where=where,
                remedy="Drop the negated uniqueItems.",
            )
        super().__init__(ConstraintMachine(grammar, vocabulary, limits, tells=Mark.UNDECLARED))
        self.steps = steps = Steps(self.inner, compares=Mark.DISTINCT in marks)
        self.supply = Supply(steps)
        self.liveness = Liveness(steps, self.supply, limits)
        self.refusals = Refusals(steps, self.supply, self.liveness)
        self.completions = DistinctCompletions(self, steps, self.liveness)
        self._budgets = Budgets(self, steps, self.liveness, self.refusals, self.completions)
        self._texts = steps.tokens
        self._reader = steps.reader
        self._events = self._texts.events_or_arrays if steps.compares else self._texts.events
        self._byte_complete = vocabulary.byte_complete
        self._begun: dict[int, bytes] = {}
        """By the automaton's own state: what was read of a name, the first time, where nothing else is remembered."""
        self.start = self.join(self.inner.start, None)
        if self.start == DEAD:
            raise VocabularyError(
                "this vocabulary's tokens cannot spell any text of the grammar that repeats no name and no item",
                remedy="Use a tokenizer that has tokens for these characters.",
            )
        # None of them is in a cycle: those that refer to this do so weakly.
        parts: tuple[object, ...] = (
            self, steps, steps.frames, steps.reader, steps.collisions, self.supply, self.liveness, self.refusals,
            self.completions, self._budgets,
        )  # fmt: skip
        for part in parts:
            untrack(part)

    @cached_property
    def _keeps_begun(self) -> bool:
        """Is the mask of a state in which a name has begun, and nothing else is remembered, the automaton's own?"""
        return self.refusals.trusts_idle and not self.inner.owing

    @cached_property
    def _characters(self) -> bytes:
        """For steps of a batch, as `Constraint` has it."""
        return CharacterTokens.of(self.vocabulary).whole

    # Pairs.

    def split(self, state: int) -> tuple[int, Text | None]:
        """The automaton's state, and what the text holds."""
        if state < self.first_pair:
            name = self._begun.get(state)
            return state, None if name is None else self._reader.text(None, NAME, name)
        return self._pairs[state - self.first_pair]

    def join(self, state: int, side: Text | None) -> int:
        """The one state of a pair; `DEAD` where nothing can follow."""
        if side is None:
            return state if self._byte_complete or self.liveness.goes_on(state, None) else DEAD
        if side.level is None and side.mode is NAME and not side.pending and self._keeps_begun:
            return self._begin(state, side.text)
        return self.pair(state, side)

    def _begin(self, state: int, name: bytes) -> int:
        """The one state of a pair in which a name has begun and nothing else is remembered."""
        if state == DEAD or self._begun.setdefault(state, name) == name:
            return state
        text = self._reader.text(None, NAME, name)
        assert text is not None
        return self.pair(state, text)

    def goes_on(self, state: int, side: Text | None) -> bool:
        """Can the text go on to an end?"""
        return self.liveness.goes_on(state, side)

    def read(self, state: int, side: Text | None, data: bytes) -> tuple[int, Text | None]:
        """The pair after some bytes, `DEAD` where one is refused or completes a duplicate."""
        return self.steps.read(state, side, data)

    # Steps.

    def advance_token(self, state: int, token: int) -> int:
        """The state after a token's bytes (not an end-of-text id)."""
        inner = self.inner
        if inner.plain:
            if not self._events[token] and state < self.first_pair and state not in self._begun:
                # Most tokens; planned like the others these would take a third more.
                return inner.advance_token(state, token)
            with self.lock:
                planned = self.plan(state, token)
                if planned is not None:
                    own, marking, land, given = planned
                    found = inner.step(own, token, marking)
                    return found if land is None else land(found, given)
        with self.lock:
            own, text = self.split(state)
            data = self._texts.spelled(token)
            return self.join(*self.steps.read(own, text, data, token)) if data else DEAD

    def plan(self, state: int, token: int) -> Plan | None:
        """As `ProductMachine.plan`: what the text is after the token is known before the automaton takes it."""
        texts = self._texts
        events = self._events[token]
        if state < self.first_pair:
            name = self._begun.get(state)
            if name is None:
                if events == 1:
                    return state, True, self._quoted, token
                return None if events else (state, False, None, None)
            if not texts.structural[token]:
                return state, False, self._begin, name + texts.spelled(token)
            if events == 1 and texts.lone[token]:
                # As below, but no name is there, which would have to be read from the text.
                return state, True, self._ended, (None, name, texts.spelled(token))
        own, text = self.split(state)
        assert text is not None
        data = texts.spelled(token)
        then: Text | None
        if not texts.structural[token]:
            then = self._reader.plain(text, data)
            return None if then is None else (own, False, self._on, then)
        if text.mode is NAME:
            if events == 1 and texts.lone[token] and self._ends_anew(text, data):
                return own, True, self._ended, (text.level, text.text, data)
        elif not self.steps.compares:
            then, at = self._reader.skimmed(text, data, 0)
            if then is not None and then.mode is NAME:
                then, at = self._reader.spelled(then, data, at)
            if at == len(data):
                return own, False, self._on, then
        return None

    def _on(self, after: int, then: Text | None) -> int:
        """The state of a pair of which the automaton was not asked."""
        if after == DEAD:
            return DEAD
        return self.join(after, self.steps.still_name(after, then) if then is not None and then.mode is NAME else then)

    def _quoted(self, found: int, token: int) -> int:
        """The state after a token with one quotation mark, where nothing is remembered; the kernel says ``found``."""
        # A name that is begun by the only quotation mark has not ended: else nothing is remembered.
        if not found & INSIDE:
            return self.join(found >> 2, None)
        data = self._texts.spelled(token)
        at = data.index(QUOTE) + 1
        if self._texts.lone[token] and self._keeps_begun:
            return self._begin(found >> 2, data[at:])
        return self.join(found >> 2, self._reader.name(None, data, at))

    def _ends_anew(self, text: Text, data: bytes) -> bool:
        """Is a name whose end is in a token surely none that is there, and nothing else to be remembered of it?"""
        level = text.level
        if text.pending or (level is not None and level.collects):
            return False
        return level is None or text.text + data[: data.index(QUOTE)] not in level.used

    def _ended(self, found: int, given: tuple[Level | None, bytes, bytes]) -> int:
        """The state after a token with the only quotation mark that ends a name, of which the kernel says ``found``."""
        if found == DEAD:
            return DEAD
        level, begun, data = given
        at = data.index(QUOTE)
        then = self._reader.with_name(level, begun + data[:at], bool(found & BEHIND))
        if then is not None and at + 1 < len(data):
            then, _ = self._reader.skimmed(then, data, at + 1)
        return self.join(found >> 2, then)

    # What the rest of a constraint asks for.

    def mask(self, state: int, limit: int = -1) -> NDArray[np.uint32]:
        """The row of tokens that keep ``state`` alive; with ``limit`` only those after which so many tokens suffice."""
        with self.lock:
            if limit < 0:
                return self.refusals.mask(state, *self.split(state))
            self.begin_prices()
            row, _, _ = self.near(state, limit)
            return np.zeros(self.vocabulary.n_words, np.uint32) if row is None else row

    def near(self, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int, bool]:
        """As `ConstraintMachine.near`."""
        if (
            state < self.first_pair
            and self.refusals.trusts_idle
            and self._begun.get(state) not in self._texts.following
        ):
            return self.inner.near(state, limit)
        return self._budgets.near(state, limit)

    def need(self, state: int, limit: int = -1) -> int:
        """As `ConstraintMachine.need`: what the automaton says, and what it takes not to repeat anything."""
        budgets = self._budgets
        if state < self.first_pair:
            need = self.inner.need(state, limit)
            if budgets.never_idle and state not in self._begun:
                return need
        else:
            need = self.inner.need(self._pairs[state - self.first_pair][0], limit)
        # Mostly the budget is far above: then no text need be looked at, which takes several times as long.
        found = need + budgets.for_any_name
        if found <= limit:
            return found
        with self.lock:
            return budgets.enough(need, *self.split(state))

    def cheapest_text(self, state: int) -> bytes | None:
        """As the automaton's, perhaps behind the way out of what would repeat something."""
        found = super().cheapest_text(state)
        if found is None and self.inner.plain:
            own, text = self.split(state)
            if text is not None and self.steps.collisions.may_collide(text):
                out = self.liveness.way_out(own, text, self.inner.token_costs.to_end)
                rest = super().cheapest_text(self.advance_text(state, out))
                found = None if rest is None else out + rest
        return found

    def self_loop(self, state: int) -> SelfLoop | None:
        """As `ProductMachine.self_loop`: also inside a name that none of those can become which are there."""
        trusts = self.refusals.trusts_idle
        if state < self.first_pair:
            return SelfLoop(self._characters, self._grown if state in self._begun else None) if trusts else None
        _, text = self._pairs[state - self.first_pair]
        if text.mode is SKIPPED and trusts:
            return SelfLoop(self._characters, None)
        return SelfLoop(self._characters, self._grown) if text.mode is NAME and self.refusals.frees_name(text) else None

    def _grown(self, state: int, tokens: Sequence[int]) -> int:
        """The state behind a name that goes on by characters."""
        with self.lock:
            own, text = self.split(state)
            assert text is not None
            return self._on(own, self._reader.plain(text, b"".join(map(self._texts.spelled, tokens))))

    def track(self, state: int) -> Track | None:
        """As `ProductMachine.track`: not within an escape of a name."""
        own, text = self.split(state)
        follows = self.refusals.follows
        back = partial(self._behind, text)
        if text is None:
            return None if follows is Follows.NOTHING else Track(own, Mode.IDLE, back=back)
        level, is_free = text.level, text.mode is NAME and self.refusals.frees_name(text)
        mode = _MODES.get(text.mode)
        if text.pending or mode is None:
            return None
        if follows in (Follows.NOTHING, Follows.IDLE) or (level is not None and level.gathers):
            return Track(own, Mode.INSIDE, back=back) if is_free else None
        if level is None and text.mode is not NAME:
            return None
        levels: list[Level] = []
        while level is not None:
            levels.append(level)
            level = level.parent
        arrays, names, used = 0, 0, b""
        for depth, level in enumerate(reversed(levels)):
            arrays = arrays << 1 | level.is_array
            names = names << 1 | (level.expects is Expects.NAME)
            found = [*level.used.beginning(b"")] if level.used.size <= MOST_USED else None
            if found is None or max(map(len, found), default=0) > self.steps.room:
                return None
            wholes = self._texts.wholes
            used += b"".join(
                bytes((depth | HELD_WHOLE if name in wholes else depth, len(name))) + name for name in found
            )
        depth = len(levels) - 1
        if depth > MOST_DEPTH or len(used) > NAME_AT or len(text.text) > MOST_NAME:
            return Track(own, Mode.INSIDE, back=back) if is_free else None
        return Track(own, mode, depth, arrays, names, used, text.text, is_free, back)

    @cached_property
    def track_parts(self) -> tuple[int, int, int, int, int]:
        """As `ProductMachine.track_parts`."""
        texts, refusals = self._texts, self.refusals
        where = texts.openings_at if self.steps.compares else texts.quotes_at
        suspects = 0 if refusals.suspects is None else address(refusals.suspects)
        return where, *texts.held_at, suspects, self.steps.room

    def _behind(self, text: Text | None, own: int, taken: Sequence[int]) -> int:
        """The state behind tokens that kernels took from a text on."""
        with self.lock:
            reader, spelled = self._reader, self._texts.spelled
            run: list[bytes] = []
            for token in taken:
                if token < ENDED:
                    run.append(spelled(token))
                    continue
                text = self._after_run(text, b"".join(run), False)
                run.clear()
                data = spelled(token & ENDED - 1)
                if token & BEGUN:
                    text = reader.name(None, data, data.index(QUOTE) + 1)
                else:
                    text = self._after_run(text, data, True)
            text = self._after_run(text, b"".join(run), False)
            return own if text is None else self._on(own, text)

    def _after_run(self, text: Text | None, data: bytes, undeclared: bool) -> Text | None:
        """The text after bytes in which names end that were ``undeclared``, or not; none begins where all is idle."""
        reader, at = self._reader, 0
        while text is not None and at < len(data):
            if text.mode is not NAME:
                text, at = (text, len(data)) if text.level is None else reader.skimmed(text, data, at)
                continue
            text, at = reader.spelled(text, data, at)
            if at < len(data):
                text, at = reader.with_name(text.level, text.text, undeclared), at + 1
        return text

    def bare(self, state: int) -> int | None:
        """As `ProductMachine.bare`."""
        if state < self.first_pair:
            return state if self.refusals.trusts_idle else None
        own, text = self._pairs[state - self.first_pair]
        if not self.refusals.trusts_idle:
            return own if text.mode is NAME and self.refusals.frees_name(text) else None
        return own if self.refusals.shares_mask(state, own, text) else None

    def alike(self, state: int) -> int:
        """The automaton's own state, where it allows the same tokens and ends alike; else the state itself."""
        if state < self.first_pair:
            return state
        with self.lock:
            own, text = self._pairs[state - self.first_pair]
            return own if self.refusals.shares_mask(state, own, text) else state

    def visit(self, state: int) -> tuple[NDArray[np.uint32], bool, int]:
        """The mask of a state, to be written to where the text may end, whether it may, and the fingerprint or -1."""
        if state < self.first_pair and self.refusals.trusts_idle:
            return self.inner.visit(state)
        with self.lock:
            return self.refusals.visit(state, *self.split(state))

    def why_refused(self, state: int, byte: int) -> str | None:
        """Why the checker alone refuses a byte, after "it"; None when the automaton refuses it too."""
        own, text = self.split(state)
        with self.lock:
            if self.steps.byte_step(own, byte) == DEAD:
                return None
            if self.steps.step(own, text, byte)[0] != DEAD:
                return "leaves no way on that does not repeat a name or an item"
            if text is not None and text.mode is NAME:
                return f"would repeat the name {text.text.decode('utf-8', 'replace')!r}"
            return "would repeat an item of an array whose items must differ"
