r"""A machine with a checker beside it for strings that are patterns of ECMA-262 (the format ``regex``).

The automaton knows how patterns are built, groups and their nesting included (`SKELETONS` in
`guided.grammar.json_schema.format_regex`), and nothing of values: is a class range in order, is ``m <= n`` in
``{m,n}``, is there a group that a reference refers to, is the name of a group new?  The checker reads the pattern
(`guided.constraint.pattern_text`) and takes out of a mask the tokens after which that could no longer be so.  What it
lets pass always has a way on, so nothing is looked ahead.

A state is a pair of the other machine's state and of the place in the pattern; outside patterns it is the other
machine's own.  It has the methods of `ConstraintMachine` on which `Constraint` rests, and the same contracts.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from guided.constraint.beside import BesideMachine
from guided.constraint.json_text import QUOTE
from guided.constraint.pattern_completion import PatternCompletions
from guided.constraint.pattern_refusals import PatternRefusals
from guided.constraint.pattern_text import BEGINNING, PatternText
from guided.constraint.refusals import without
from guided.constraint.token_texts import TokenTexts
from guided.errors import VocabularyError
from guided.grammar.json_schema.regex_languages import reads_skeleton
from guided.grammar.regular.expr import Expr, Kind
from guided.kernels.layout import DEAD, FINISHED
from guided.kernels.threads import intern_state

if TYPE_CHECKING:
    from guided.constraint.checked import CheckedMachine
    from guided.constraint.machine import ConstraintMachine

_PAIRED = 1 << 48
"""From here on states are pairs; those of the machine beside are below."""


class PatternMachine(BesideMachine):
    """The append-only tables of a compiled constraint in which some strings are patterns; states are ints into them."""

    def __init__(self, inner: ConstraintMachine | CheckedMachine, base: ConstraintMachine) -> None:
        if not inner.vocabulary.byte_complete:
            raise VocabularyError(
                "this vocabulary lacks single bytes, so it is not known which patterns of format 'regex' it can spell",
                remedy="Use a tokenizer that knows every byte, or formats='annotate'.",
            )
        self.inner = inner
        self.base = base
        self.grammar = inner.grammar
        self.vocabulary = inner.vocabulary
        self.limits = inner.limits
        self.lock: threading.RLock = inner.lock
        self.lexed = inner.lexed
        self.owing = inner.owing
        self.start = inner.start
        self._texts = TokenTexts.of(inner.vocabulary)
        self._quoted = self._texts.events
        self._pairs: list[tuple[int, PatternText]] = []
        self._ids: dict[tuple[int, PatternText], int] = {}
        self._reads: dict[int, bool] = {}
        """By lexer state: is it inside a pattern?"""
        self._inside: dict[int, bool] = {}
        """By state of the base machine: does some thread read a pattern?"""
        self._others: dict[int, int] = {}
        self.refusals = PatternRefusals(self)
        self.completions = PatternCompletions(self)

    # Pairs.

    def split(self, state: int) -> tuple[int, PatternText | None]:
        """The other machine's state, and the place in the pattern."""
        return (state, None) if state < _PAIRED else self._pairs[state - _PAIRED]

    def join(self, state: int, text: PatternText | None) -> int:
        """The one state of a pair."""
        if text is None or state <= FINISHED:
            return state
        key = (state, text)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = _PAIRED + len(self._pairs)
            self._pairs.append(key)
        return found

    def _base_state(self, state: int) -> int:
        return state if self.inner is self.base else cast("CheckedMachine", self.inner).split(state)[0]

    def reads_pattern(self, state: int) -> bool:
        """Does some thread of the other machine's state read a pattern?"""
        own = self._base_state(state)
        found = self._inside.get(own)
        if found is None:
            found = self._inside[own] = any(self._is_inside(thread[0]) for thread in self.base.threads(own))
        return found

    def _is_inside(self, lexer_state: int) -> bool:
        found = self._reads.get(lexer_state)
        if found is None:
            states = self.base.states
            found = self._reads[lexer_state] = _is_skeleton(states.keys[int(states.arrays.base[lexer_state])])
        return found

    def others(self, state: int) -> int:
        """The other machine's state of those threads that read no pattern; `DEAD` when there are none."""
        found = self._others.get(state)
        if found is None:
            own = self._base_state(state)
            threads = self.base.threads(own)
            kept = [thread for thread in threads if not self._is_inside(thread[0])]
            found = DEAD if not kept else state
            if kept and len(kept) < len(threads):
                scratch = self.base.scratch
                for at, (lexer_state, continuation, obligation) in enumerate(kept):
                    scratch.thread_a[at] = lexer_state << 32 | obligation
                    scratch.thread_b[at] = continuation
                found = self.base.run(intern_state, len(kept))
                if self.inner is not self.base:
                    checked = cast("CheckedMachine", self.inner)
                    found = checked.join(found, checked.split(state)[1])
            self._others[state] = found
        return found

    # Steps.

    def advance_token(self, state: int, token: int) -> int:
        """The state after a token's bytes (not an end-of-text id)."""
        if state < _PAIRED and not self._quoted[token]:
            return self.inner.advance_token(state, token)
        with self.lock:
            own, text = self.split(state)
            data = self._texts.spelled(token)
            if text is not None and not self._quoted[token]:
                for byte in data:
                    text = text.step(byte)
                    if text is None:
                        break
                else:
                    return self.join(self.inner.advance_token(own, token), text) if data else DEAD
                text = self.split(state)[1]
            return self.join(*self.read(own, text, data)) if data else DEAD

    def reads(self, state: int, data: bytes) -> bool:
        """Can some bytes come next?"""
        return self.read(*self.split(state), data)[0] != DEAD

    def read(self, state: int, text: PatternText | None, data: bytes) -> tuple[int, PatternText | None]:
        """The pair after some bytes.

        The other machine is asked at quotation marks and where the pattern fails, else once.
        """
        at = asked = 0
        size = len(data)
        while at < size:
            if text is None:
                quote = data.find(b'"', at)
                if quote < 0:
                    break
                at = quote + 1
                state, asked = self.inner.advance_text(state, data[asked:at]), at
                if state == DEAD:
                    return DEAD, None
                text = BEGINNING if self.reads_pattern(state) else None
            elif data[at] == QUOTE and not text.pending:
                text = None
                at += 1
                state, asked = self.inner.advance_text(state, data[asked:at]), at
                if state == DEAD:
                    return DEAD, None
            else:
                text = text.step(data[at])
                if text is None:
                    # Threads that read no pattern may go on.
                    state, asked = self.others(self.inner.advance_text(state, data[asked:at])), at
                    if state == DEAD:
                        return DEAD, None
                at += 1
        if asked < size:
            state = self.inner.advance_text(state, data[asked:])
        if state == DEAD:
            return DEAD, None
        return state, text if text is not None and self.reads_pattern(state) else None

    # What the rest of a constraint asks for.

    def mask(self, state: int, limit: int = -1) -> NDArray[np.uint32]:
        """The row of tokens that keep ``state`` alive; with ``limit`` only those after which so many tokens suffice."""
        with self.lock:
            row = self._row(state, limit)
            if limit >= 0:
                for token in self.refusals.doubtful(state).tolist():
                    if row[token >> 5] >> (token & 31) & 1 and not self.completions.is_near(
                        self.advance_token(state, token), limit
                    ):
                        row[token >> 5] &= ~np.uint32(1 << (token & 31))
            return row

    def _row(self, state: int, limit: int) -> NDArray[np.uint32]:
        own, text = self.split(state)
        refused = self.refusals.refused(state)
        row = without(self.inner.mask(own, limit), refused)
        if text is not None and refused.size:
            rest = self.others(own)
            if rest != DEAD:
                row |= self.inner.mask(rest, limit)
        return row

    def alike(self, state: int) -> int:
        """A state that allows the same tokens and ends alike: the other machine's, where nothing is refused."""
        if state < _PAIRED:
            return self.inner.alike(state)
        with self.lock:
            own = self._pairs[state - _PAIRED][0]
            return state if self.refusals.refused(state).size else self.inner.alike(own)

    def visit(self, state: int) -> tuple[NDArray[np.uint32], bool]:
        """As `ConstraintMachine.visit`."""
        with self.lock:
            if state < _PAIRED:
                row, ends = self.inner.visit(state)
                refused = self.refusals.opening(state, row)
                return (without(row, refused) if refused.size else row), ends
            return self.mask(state).copy(), self.is_accepting(state)

    def repetition(self, state: int, byte: int) -> str | None:
        """Why a checker alone refuses a byte, after "it"; None when the automaton refuses it too."""
        own, text = self.split(state)
        if text is None or self.inner.advance_text(own, bytes((byte,))) == DEAD:
            return None if self.inner is self.base else cast("CheckedMachine", self.inner).repetition(own, byte)
        return "leaves no pattern: a range or quantifier is out of order, a group is not there, or a name comes twice"


def _is_skeleton(key: object) -> bool:
    """Is it the rest of a JSON string whose text goes on as a skeleton of a pattern?"""
    if not isinstance(key, Expr) or key.kind is not Kind.JSON_STRING:
        return False
    return reads_skeleton(cast(Expr, key.parts[0]))
