"""`Constraint`: a grammar compiled for a vocabulary, whose run-time state is an `int`.

This is the public face; the tables and kernels behind it are in `guided.constraint.engine.machine`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.collection import hold, release
from guided.constraint.effects.character_tokens import CharacterTokens
from guided.constraint.effects.shared_rows import KeptRow, SharedRows, with_address
from guided.constraint.end_tokens import EndTokens
from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.engine.plans import Plan, SelfLoop, Track
from guided.constraint.explain import explain
from guided.constraint.limits import Limits
from guided.constraint.machines import machine_for
from guided.constraint.product import COUNT, STRIDE
from guided.constraint.shown import constraint_html
from guided.constraint.special import named_special_tokens
from guided.grammar.ir import Grammar
from guided.kernels.data.layout import DEAD, FINISHED
from guided.kernels.data.requests import OUT_OF_FUEL
from guided.kernels.masking.tracks import Mode
from guided.special_bytes import SENTINEL, special_names_in
from guided.vocab.vocabulary import Vocabulary

_COUNTS = (1 << COUNT) - 1
"""The bits of a state that may be a count."""

_ENDED = 2
"""States after which no token comes."""


class Constraint:
    """A language over tokens.  States are ints, never change meaning, and cost nothing to keep, copy or go back to.

    ``mask`` bit ``t`` is 1 exactly when ``advance(state, t) != 0``, and from every live state some accepted text can
    still be reached.  Safe to share between threads, sequences, beams and particles; picklable (states are not: they
    are numbered in the order in which one object met them).

    >>> import guided
    >>> letters = guided.Vocabulary.from_tokens([b"n", b"o", b"ye", b"s", None], eos_ids=[4])
    >>> constraint = guided.compile(guided.choice(["no", "yes"]), letters)
    >>> state = constraint.advance(constraint.start, 2)
    >>> constraint.forced(state), constraint.is_accepting(constraint.advance(state, 3)), constraint.advance(state, 0)
    (b's', True, 0)
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.limits = limits or Limits()
        self._special_bytes = named_special_tokens(grammar, vocabulary)
        self._machine = machine_for(grammar, vocabulary, self.limits)
        machine = self._machine
        self._checked = None if isinstance(machine, ConstraintMachine) else machine
        """The machine, where there is more to it than an automaton."""
        self._far = None if self._checked is None else self._checked.far
        """What is known of states that differ in a count, which are not remembered one by one."""
        self._automaton = machine if isinstance(machine, ConstraintMachine) else machine.automaton
        self.start: int = machine.start
        """The state before any text."""
        self.end: int = FINISHED
        """The state after an end-of-text id; only such ids are allowed in it."""
        self._ending = EndTokens.of(vocabulary)
        self._n_tokens = vocabulary.size
        self._most_masks = self.limits.mask_bytes // max(4 * vocabulary.n_words, 1)
        self._most_steps = self.limits.steps
        self._steps: dict[int, int] = {}
        self._masks = {FINISHED: with_address(self._ending.row), DEAD: with_address(self._ending.nothing)}
        self._shared = SharedRows.of(vocabulary)
        effects = self._automaton.effects
        one, other = effects.any_strings
        self.mask_parts = effects.root, one << 32 | other, self._masks[FINISHED][0], vocabulary.n_words
        """What kernels need to write a mask: the root of the tries, the lexer states of a string that takes any
        characters as one number, where the row of end-of-text ids is, and its words."""
        self._far_masks: dict[int, tuple[int, KeptRow]] = {}
        """Masks of states that differ in a count that is greater than a number, by what they have in common."""
        self._accepting: dict[int, bool] = {DEAD: False, FINISHED: True}
        self._needs: dict[int, int] = {DEAD: 0, FINISHED: 0}
        """By state, a token budget from which on the mask is the mask without one."""
        self._loop: SelfLoop | None = None
        """For steps of a batch: the first of them waits for it, and no constraint."""
        self._near = 0
        """Such a budget of the last state: with less, a state is not asked for one before its mask."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Constraint, (self.grammar, self.vocabulary, self.limits))

    def __repr__(self) -> str:
        return f"<Constraint {self.grammar!r} over {self.vocabulary!r}>"

    def _repr_html_(self) -> str:
        return constraint_html(self, self.grammar)

    def fill_mask(self, state: int, row: NDArray[np.uint32]) -> None:
        """Write the mask of ``state`` to ``row`` (``uint32[n_words]``): bit ``t & 31`` of word ``t >> 5`` per token.

        A state met before costs one copy of the row.
        """
        found = self._masks.get(state)
        row[...] = (self._mask(state) if found is None else found)[1]

    def remembered_row(self, state: int, budget: int | None = None) -> KeptRow | None:
        """The mask of a state, under a budget of tokens, where it is at hand."""
        if budget is not None and not self.is_ample(state, budget):
            return None
        return self._masks.get(state)

    def kept_row(self, state: int, budget: int | None = None) -> KeptRow:
        """The mask of a state, made where it is not at hand; see `fill_budget_mask` for budgets."""
        if budget is not None:
            need = self._needs.get(state)
            if need is None and budget >= self._near:
                need = self._need(state, budget)
            if need is None or budget < need:
                return self._near_row(state, budget)
        found = self._masks.get(state)
        return self._mask(state) if found is None else found

    def advance(self, state: int, token: int) -> int:
        """The state after ``token``: 0 when it is not allowed; `end` after an end-of-text id."""
        found = self._steps.get(state * STRIDE + token)
        return self._advance(state, token) if found is None else found

    def known_step(self, state: int, token: int) -> int | None:
        """The state after ``token``, if that was asked before."""
        return self._steps.get(state * STRIDE + token)

    def hold_free(self) -> bool:
        """Take the constraint's lock, to be given back by `end_step`, where no other thread has it."""
        return self._machine.lock.acquire(blocking=False)

    def end_step(self) -> None:
        """Give back the lock."""
        self._machine.lock.release()

    def plan_step(self, state: int, token: int, priced: bool) -> tuple[int, Plan] | None:
        """A table, and how a kernel takes a step (`guided.kernels.masking.stepping`); the lock must be held.

        None where it does not.
        """
        automaton, checked = self._automaton, self._checked
        if (
            (priced and automaton.needs is None)
            or state <= FINISHED
            or not 0 <= token < self._n_tokens
            or token in self._ending.ids
            or len(self._steps) >= self._most_steps
            or not automaton.plain
        ):
            return None
        planned = (state, False, None, None) if checked is None else checked.plan(state, token)
        return None if planned is None else (automaton.current_table(), planned)

    def self_loop(self, state: int) -> SelfLoop | None:
        """The tokens that change no mask, from a state in a string that takes any characters; the lock must be held."""
        if self._checked is not None:
            return self._checked.self_loop(state)
        if self._loop is None:
            self._loop = SelfLoop(CharacterTokens.of(self.vocabulary).whole, None)
        return self._loop

    def track(self, state: int) -> Track | None:
        """Where a text stands for kernels that go on by themselves; None where they do not, or another thread is here.

        For texts without a budget.  Kernels see all arrays as they are now, as behind `renew`.
        """
        automaton, checked, lock = self._automaton, self._checked, self._machine.lock
        if state <= FINISHED or not automaton.plain or not lock.acquire(blocking=False):
            return None
        try:
            automaton.current_table()
            return Track(state, Mode.FREE) if checked is None else checked.track(state)
        finally:
            lock.release()

    @cached_property
    def track_parts(self) -> tuple[int, ...]:
        """What kernels need for that: the numbers from `guided.kernels.masking.tracks.TABLE` to ``ROOM``."""
        characters = CharacterTokens.of(self.vocabulary).where
        checked = (0,) * 5 if self._checked is None else self._checked.track_parts
        return self._automaton.table, *self.mask_parts, characters, *checked

    def provide(self) -> bool:
        """Have what kernels asked for, but for more fuel, if anything."""
        with self._machine.lock:
            provided = self._automaton.serve(OUT_OF_FUEL)
            self._automaton.current_table()
            return provided

    @property
    def lock(self) -> threading.RLock:
        """What whoever has kernels go on holds."""
        return self._machine.lock

    def renew(self) -> None:
        """Have kernels see all arrays as they are now, which they must: some are replaced when they grow."""
        with self._machine.lock:
            self._automaton.current_table()

    def bare(self, state: int) -> int | None:
        """The automaton's state that has the same mask, where one has; the lock must be held."""
        return state if self._checked is None else self._checked.bare(state)

    def keep_step(self, state: int, token: int, after: int) -> None:
        """Remember a step that a kernel took; the lock must be held."""
        self._steps[state * STRIDE + token] = after

    def mask_at_hand(self, state: int, budget: int | None) -> KeptRow | None:
        """As `remembered_row`, also where a state shares the mask of another; the lock must be held."""
        masks, machine, checked = self._masks, self._machine, self._checked
        found = masks.get(state)
        if found is None and checked is not None:
            bare = checked.bare(state)
            found = None if bare is None else masks.get(bare)
        if found is None or budget is None:
            return found
        enough = self._needs.get(state)
        if enough is None:
            enough = self._needs[state] = machine.need(state, budget - 2) + 2
        return found if budget >= enough else None

    def mask_job(self, state: int) -> tuple[int, ...] | None:
        """A line for `guided.kernels.masking.stepping.fill_rows`, which is to be kept by `keep_mask`.

        The lock must be held.  None where its kernel is not for the state.
        """
        automaton, checked = self._automaton, self._checked
        own = state if checked is None else checked.bare(state)
        if own is None or not automaton.plain:
            return None
        root, _, where, words = self.mask_parts
        return automaton.current_table(), root, own, where, 1, words

    def keep_mask(
        self, state: int, own: int, code: int, need: int, row: NDArray[np.uint32], budget: int | None
    ) -> KeptRow | None:
        """Remember a mask that a kernel made; it, where it is the mask under the budget.  The lock must be held.

        ``own`` is the state of the job, ``code`` and ``need`` what the kernel says, and ``row`` is copied.
        """
        ends = code & 1 == 1
        self._accepting[own] = ends
        kept = self._shared.share(row, -1 if ends else code >> 1)
        self._keep_mask(own, kept)
        needs = self._automaton.needs
        if needs is not None:
            needs[own] = need
        if budget is None:
            return kept
        enough = self._needs[state] = self._machine.need(state, budget - 2) + 2
        return kept if budget >= enough else None

    def advance_all(self, state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The tokens of the mask, ``int64[n]`` in an order that is the same for all states, and the state after each.

        Costs a walk over the vocabulary, 2 ms for 128,000 tokens where nearly all are allowed, and is not remembered.
        None where a checker beside the automaton reads tokens one by one (names or items that must not repeat).
        """
        machine = self._machine
        if not isinstance(machine, ConstraintMachine):
            return None
        held = hold()
        try:
            tokens, states = np.zeros((2, 0), np.int64)
            if state > FINISHED:
                tokens, states = machine.advance_all(state)
                text = np.isin(tokens, self._ending.array, invert=True)
                if not text.all():
                    tokens, states = tokens[text], states[text]
            if state != DEAD and self.is_accepting(state):
                tokens = np.concatenate((tokens, self._ending.array))
                states = np.concatenate((states, np.full_like(self._ending.array, FINISHED)))
            return tokens, states
        finally:
            if held:
                release()

    def advance_bytes(self, state: int, data: bytes) -> int:
        """The state after the bytes of a text, however they would be tokenized; 0 when they cannot come here.

        A special token is `guided.special_bytes.special_bytes` of its name, whole.
        """
        if self.vocabulary.has_special and special_names_in(data, self.vocabulary.special_tokens) is None:
            return DEAD
        return self._machine.advance(state, data)

    @property
    def counts_tokens(self) -> bool:
        """Are there limits on tokens: may bytes come next, of a longer token, that come as a token of their own not?"""
        return self._far is not None

    def has_state(self, state: int) -> bool:
        """Is this a state of the constraint that a text led to?  No other method asks, and others may do anything."""
        return self._machine.has_state(state)

    def is_accepting(self, state: int) -> bool:
        """May the text end here?  Exactly then are end-of-text ids allowed."""
        found = self._accepting.get(state)
        if found is None:
            found = self._accepting[state] = self._machine.is_accepting(state)
        return found

    def forced(self, state: int) -> bytes:
        """The longest text that must come next: empty where there is a choice, or where the text may end.

        A special token in it is `guided.special_bytes.special_bytes` of its name.
        """
        out = bytearray()
        while len(out) < self.limits.forced_bytes and not self.is_accepting(state):
            pieces = [bytes([byte]) for byte in np.flatnonzero(self._machine.next_bytes(state)).tolist()]
            if SENTINEL in pieces:
                pieces += self._special_bytes
            after = [(piece, then) for piece in pieces if (then := self.advance_bytes(state, piece))]
            if len(after) != 1:
                break
            piece, state = after[0]
            out += piece
        return bytes(out)

    def forced_tokens(self, state: int, tokenizer: Any, before: Sequence[int]) -> list[int]:
        """The tokens that must come next after the tokens ``before``, in ``tokenizer``'s own spelling.

        See `guided.constraint.spelling.forcing.forced_tokens`.
        """
        from guided.constraint.spelling.forcing import forced_tokens

        return forced_tokens(self, state, tokenizer, before)

    def possible_bytes(self, state: int) -> NDArray[np.uint8]:
        """``uint8[256]``: 0 for every byte that cannot come next; of the others a few may turn out dead."""
        with self._machine.lock:
            return self._machine.next_bytes(state).copy() if state > FINISHED else np.zeros(256, np.uint8)

    def shortest_text(self, state: int) -> bytes:
        """The shortest text that completes a live state, the first in byte order among equals."""
        with self._machine.lock:
            return self._machine.completions.text(state)

    def shortest_completion(self, state: int) -> int:
        """Tokens to the nearest end, the end-of-text token not counted: of the shortest text, in its fewest tokens.

        Can be kept always: after the first of those tokens the number is one less.  A longer text may take fewer.
        """
        return len(self._machine.completions.tokens(state))

    def is_ample(self, state: int, budget: int) -> bool:
        """Is a text known to fit in ``budget`` tokens, as `fill_budget_mask` counts them, whichever token comes next?

        Costs nothing: it is known once a mask of the state under a large budget was made, and False before.
        """
        need = self._needs.get(state)
        return need is not None and budget >= need

    def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """As `fill_mask`, but only tokens after which the text can still be completed within ``budget`` tokens.

        ``budget`` counts the token itself, all that follow it and the end-of-text token.  The mask is never empty;
        raises `guided.LimitError` when even the shortest completion does not fit.
        """
        need = self._needs.get(state)
        if need is None and budget >= self._near:
            need = self._need(state, budget)
        # A row that nobody keeps is written where it is wanted.
        if (need is None or budget < need) and self._fill_near(state, row, budget):
            return
        row[...] = self.kept_row(state)[1]

    def _near_row(self, state: int, budget: int) -> KeptRow:
        """The mask under a budget that may forbid something."""
        row = np.empty(self.vocabulary.n_words, np.uint32)
        return with_address(row) if self._fill_near(state, row, budget) else self.kept_row(state)

    def _fill_near(self, state: int, row: NDArray[np.uint32], budget: int) -> bool:
        """Write it; False where it forbids nothing, and nothing is written."""
        machine = self._machine
        with machine.lock:
            near = None
            if machine.prices and budget > 1:
                # The token itself and the end of text count as well.
                near, need, ends = machine.near(state, budget - 2)
                self._accepting[state] = ends
                self._near = self._needs[state] = need + 2
                if budget >= self._near:
                    # Near the end what is left of a terminal counts a token a byte, so fewer tokens would be allowed
                    # than where this was known before; but a mask does not depend on what was asked first.
                    return False
            if near is None:
                machine.completions.fill(state, row, budget)
            else:
                row[...] = near
        if self.is_accepting(state):
            row |= self._ending.row
        return True

    def _need(self, state: int, budget: int = 0) -> int:
        """A budget that forbids nothing in a state: no token leads to where the text takes more to its end.

        It is as little as is known where ``budget`` is less.
        """
        machine = self._machine
        far = None if self._far is None else self._far.alikes.get(state >> COUNT)
        alike = None if far is None or state & _COUNTS <= far[1] else far[0]
        if alike is not None and alike in self._needs:
            return self._needs[alike]
        with machine.lock:
            if len(self._needs) == _ENDED:
                machine.begin_prices()
            if state not in self._masks:
                self._mask(state)
            found = self._needs[state if alike is None else alike] = machine.need(state, budget - 2) + 2
            return found

    def explain(self, state: int, token: int) -> str:
        """Why a token is or is not allowed, in the grammar's own words."""
        return explain(self, self._machine, state, token)

    def _mask(self, state: int) -> KeptRow:
        if self._far_masks:
            known = self._far_masks.get(state >> COUNT)
            if known is not None and state & _COUNTS > known[0]:
                return known[1]
        held = hold()
        machine, masks = self._machine, self._masks
        try:
            with machine.lock:
                # States of a checked machine mostly share the mask of the automaton's own state, row and all.
                alike = machine.alike(state)
                kept = masks.get(alike)
                if kept is None:
                    row, ends, key = machine.visit(alike)
                    self._accepting[alike] = ends
                    if ends:
                        row |= self._ending.row
                        key = -1
                    kept = masks[alike] = self._shared.share(row, key)
                if alike != state:
                    self._accepting[state] = self._accepting[alike]
                self._keep_mask(state, kept)
                far = None if self._far is None else self._far.alikes.get(state >> COUNT)
                if far is not None and far[0] == alike:
                    self._far_masks[state >> COUNT] = (far[1], kept)
                return kept
        finally:
            if held:
                release()

    def _keep_mask(self, state: int, kept: KeptRow) -> None:
        masks = self._masks
        if len(masks) >= self._most_masks:
            for old in list(masks)[2 : len(masks) // 2 + 2]:
                del masks[old]
            self._far_masks.clear()
        masks[state] = kept

    def _advance(self, state: int, token: int) -> int:
        if self._far is not None:
            far = self._far.steps.get((state >> COUNT) * STRIDE + token)
            if far is not None and state & _COUNTS > far[1]:
                return state + far[0]
        held = hold()
        steps = self._steps
        try:
            if token in self._ending.ids:
                after = FINISHED if self.is_accepting(state) else DEAD
            elif state <= FINISHED or not 0 <= token < self._n_tokens:
                after = DEAD
            else:
                after = self._machine.advance_token(state, token)
            if len(steps) >= self._most_steps:
                with self._machine.lock:
                    for key in list(steps)[: len(steps) // 2]:
                        steps.pop(key, None)
            # One int as the key: a tuple would be one more object for the garbage collector to walk.
            steps[state * STRIDE + token] = after
            return after
        finally:
            if held:
                release()
