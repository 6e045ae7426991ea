"""The product with an automaton that reads strings of a format that no small regular language tells.

The grammar's automaton knows some of what the format asks for.  The side reads such a string and takes out of a mask
the tokens after which it could no longer become one.  What the side lets pass always has a way on, so nothing is looked
ahead.  Outside such strings a state is the inner machine's own.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import QUOTE
from guided.constraint.distinct.token_texts import TokenTexts
from guided.constraint.formats.completion import FormatCompletions
from guided.constraint.formats.refusals import FormatRefusals
from guided.constraint.product import ProductMachine, base_state, state_of, with_base
from guided.errors import VocabularyError
from guided.grammar.regular.expr import Expr, Kind
from guided.kernels.data.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

Machine: TypeAlias = "ConstraintMachine | ProductMachine[Any]"


class CheckedText(Protocol):
    """A place in a text; immutable, and equal places go on equally."""

    @property
    def pending(self) -> bytes:
        """An escape of JSON that is not complete yet."""

    @property
    def may_end(self) -> bool:
        """May the text end here, as far as the automaton does not know?"""


Text = TypeVar("Text", bound="SteppingText")


class SteppingText(CheckedText, Protocol):
    """The same, that goes on."""

    def step(self: Text, byte: int) -> Text | None:
        """The place after one more byte inside the string; None where it cannot become such a text."""


class FormatMachine(ProductMachine[Text]):
    """The append-only tables of a compiled constraint in which some strings are such texts.

    Raises `VocabularyError` for a vocabulary that lacks single bytes.
    """

    format: ClassVar[str]
    """The format's name."""
    beginning: Text
    """Behind the opening quotation mark."""
    refusals: FormatRefusals[Any]
    completions: FormatCompletions

    def __init__(self, inner: Machine, base: ConstraintMachine) -> None:
        if not inner.vocabulary.byte_complete:
            raise VocabularyError(
                "this vocabulary lacks single bytes, so it is not known which texts of format "
                f"{self.format!r} it can spell",
                remedy="Use a tokenizer that knows every byte, or formats='annotate'.",
            )
        super().__init__(inner)
        self.base = base
        self.start = inner.start
        self._texts = TokenTexts.of(inner.vocabulary)
        self._quoted = self._texts.events
        self._reads: dict[int, bool] = {}
        """By lexer state: is it inside such a text?"""
        self._inside: dict[int, bool] = {}
        """By state of the base machine: does some thread read such a text?"""
        self._others: dict[int, int] = {}

    @abstractmethod
    def is_such(self, language: Expr) -> bool:
        """Is what is left of a string's text the rest of what the side reads?"""

    @abstractmethod
    def why(self, text: Text, byte: int) -> str:
        """Why the side refuses a byte, after "it"."""

    def kept_side(self, state: int, side: Text | None) -> Text | None:
        """As `ProductMachine.kept_side`: none where no thread reads such a text."""
        return side if self.reads_text(state) else None

    def reads_text(self, state: int) -> bool:
        """Does some thread of the other machine's state read such a text?"""
        own = base_state(self.inner, state)
        found = self._inside.get(own)
        if found is None:
            found = self._inside[own] = any(self._is_inside(thread[0]) for thread in self.base.threads(own))
        return found

    def _is_inside(self, lexer_state: int) -> bool:
        found = self._reads.get(lexer_state)
        if found is None:
            states = self.base.states
            key = states.key(int(states.arrays.base[lexer_state]))
            inside = isinstance(key, Expr) and key.kind is Kind.JSON_STRING
            found = self._reads[lexer_state] = inside and self.is_such(cast(Expr, cast(Expr, key).parts[0]))
        return found

    def others(self, state: int) -> int:
        """The other machine's state of those threads that read none of them; `DEAD` when there are none."""
        found = self._others.get(state)
        if found is None:
            own = base_state(self.inner, state)
            threads = self.base.threads(own)
            kept = [thread for thread in threads if not self._is_inside(thread[0])]
            found = DEAD if not kept else state
            if kept and len(kept) < len(threads):
                found = with_base(self.inner, state, state_of(self.base, kept))
            self._others[state] = found
        return found

    # Steps.

    def advance_token(self, state: int, token: int) -> int:
        """The state after a token's bytes (not an end-of-text id)."""
        if state < self.first_pair and not self._quoted[token]:
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

    def read(self, state: int, side: Text | None, data: bytes) -> tuple[int, Text | None]:
        """The pair after some bytes.

        The other machine is asked at quotation marks and where the text fails, else once.
        """
        text = side
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
                text = self.beginning if self.reads_text(state) else None
            elif data[at] == QUOTE and not text.pending and text.may_end:
                text = None
                at += 1
                state, asked = self.inner.advance_text(state, data[asked:at]), at
                if state == DEAD:
                    return DEAD, None
            else:
                text = None if data[at] == QUOTE and not text.pending else text.step(data[at])
                if text is None:
                    # Threads that read none of them may go on.
                    state, asked = self.others(self.inner.advance_text(state, data[asked:at])), at
                    if state == DEAD:
                        return DEAD, None
                at += 1
        if asked < size:
            state = self.inner.advance_text(state, data[asked:])
        if state == DEAD:
            return DEAD, None
        return state, text if text is not None and self.reads_text(state) else None

    # What the rest of a constraint asks for.

    def mask(self, state: int, limit: int = -1) -> NDArray[np.uint32]:
        """The row of tokens that keep ``state`` alive; with ``limit`` only those after which so many tokens suffice."""
        with self.lock:
            row = self._row(state, limit)
            if limit >= 0:
                for token in self.refusals.undecided(state).tolist():
                    if tokenset.contains(row, token) and not self.completions.is_near(
                        self.advance_token(state, token), limit
                    ):
                        tokenset.remove(row, token)
            return row

    def _row(self, state: int, limit: int) -> NDArray[np.uint32]:
        own, text = self.split(state)
        refused = self.refusals.refused(state)
        row = tokenset.without(self.inner.mask(own, limit), refused)
        if text is not None and refused.size:
            rest = self.others(own)
            if rest != DEAD:
                row |= self.inner.mask(rest, limit)
        return row

    def alike(self, state: int) -> int:
        """A state that allows the same tokens and ends alike: the other machine's, where nothing is refused."""
        if state < self.first_pair:
            return self.inner.alike(state)
        with self.lock:
            own = self._pairs[state - self.first_pair][0]
            return state if self.refusals.refused(state).size else self.inner.alike(own)

    def visit(self, state: int) -> tuple[NDArray[np.uint32], bool, int]:
        """As `ConstraintMachine.visit`."""
        with self.lock:
            if state < self.first_pair:
                row, ends, key = self.inner.visit(state)
                refused = self.refusals.opening(state, row)
                return (tokenset.without(row, refused), ends, -1) if refused.size else (row, ends, key)
            return self.mask(state).copy(), self.is_accepting(state), -1

    def why_refused(self, state: int, byte: int) -> str | None:
        """Why a side alone refuses a byte, after "it"; None when the automaton refuses it too."""
        own, text = self.split(state)
        if text is None or self.inner.advance_text(own, bytes((byte,))) == DEAD:
            return self.inner.why_refused(own, byte) if isinstance(self.inner, ProductMachine) else None
        return self.why(text, byte)
