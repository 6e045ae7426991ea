"""`Matcher`: where one request stands in its constraint, as engines ask for it; `fill_rows`, `step`: a batch of them.

States cost nothing to keep, so a matcher is the list of those that it went through: to take drafts back, to begin again
and to copy are operations on a list.  It holds no model, no text and no tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from guided.constraint.batch import fill_masks, kept_rows, mask_rows
from guided.constraint.constraint import Constraint
from guided.constraint.effects.shared_rows import KeptRow, with_address
from guided.constraint.engine.plans import Grow, SelfLoop
from guided.constraint.protocol import Constrains
from guided.constraint.stepping import step_rows
from guided.errors import GuidedError, LimitError, VocabularyError

__all__ = ["Matcher", "fill_rows", "kept_masks", "step"]


Unread: TypeAlias = tuple[Grow, int]
"""A state that nobody has asked for: what makes it of the last one that is known, and the token that leads to it."""


class Matcher:
    """One request under a constraint, which any number of requests share.  For one thread at a time.

    With ``most_tokens`` the text, its end-of-text token included, is whole within that many tokens: masks hold only
    tokens after which it still can be.  Raises `guided.LimitError` where none fits.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([b"yes", b"no", b"y", None], eos_ids=[3])
    >>> matcher = Matcher(guided.compile(guided.choice(["yes", "no"]), vocabulary))
    >>> matcher.validate([0, 3, 1]), matcher.accept(1), matcher.accept(1), matcher.n_tokens
    (2, True, False, 1)
    """

    __slots__ = ("_kept", "_loop", "_row", "_states", "constraint", "most_tokens")

    def __init__(self, constraint: Constrains, most_tokens: int | None = None) -> None:
        self.constraint = constraint
        self.most_tokens = most_tokens
        self._states: list[int | Unread] = [constraint.start]
        self._loop: SelfLoop | None = None
        self._kept: KeptRow | None = None
        """The mask of the last state that `step` came to."""
        self._row: KeptRow | None = None
        """Where `step` may write it."""
        if most_tokens is not None:
            row = np.empty(constraint.vocabulary.n_words, np.uint32)
            constraint.fill_budget_mask(constraint.start, row, most_tokens)

    @property
    def state(self) -> int:
        """The constraint's state after all accepted tokens; never 0."""
        states = self._states
        last = states[-1]
        if isinstance(last, int):
            return last
        first = len(states) - 2
        while not isinstance(known := states[first], int):
            first -= 1
        unread = [each for each in states[first + 1 :] if not isinstance(each, int)]
        known = states[-1] = last[0](known, [token for _, token in unread])
        return known

    @property
    def loops(self) -> bool:
        """Are there tokens known by which `stay` goes on?"""
        return self._loop is not None

    @property
    def n_tokens(self) -> int:
        """How many tokens were accepted and not taken back."""
        return len(self._states) - 1

    @property
    def is_over(self) -> bool:
        """Whether an end-of-text token was accepted: nothing but such tokens may follow."""
        return self._states[-1] == self.constraint.end

    @property
    def is_whole(self) -> bool:
        """Whether the text may end here, or has ended."""
        return self.constraint.is_accepting(self.state)

    @property
    def budget(self) -> int | None:
        """Tokens that are left, the end-of-text token among them; None without a limit."""
        return None if self.most_tokens is None else max(self.most_tokens - self.n_tokens, 0)

    def accept(self, token: int) -> bool:
        """Go on by a token; False, and nothing changes, where it is not allowed."""
        after = self.constraint.advance(self.state, token)
        if after:
            self._states.append(after)
            self._loop = None
        return after != 0

    def stay(self, token: int) -> KeptRow | None:
        """Go on by a token that leaves the mask as it is: that mask; None, and nothing changes, where it may not."""
        if self._loop is None:
            return None
        characters, grow = self._loop
        if not (0 <= token < len(characters) and characters[token]):
            return None
        states = self._states
        states.append(states[-1] if grow is None else (grow, token))
        return self._kept

    def note_all(self, tokens: Sequence[int]) -> None:
        """Go on by tokens of masks; where to, is found out when it is asked for."""
        again = partial(_advanced, self.constraint)
        self._states.extend((again, token) for token in tokens)
        self._loop = None

    def go_on(self, tokens: Sequence[int], state: int) -> None:
        """Go on by tokens that were taken elsewhere, with the state behind them all."""
        self.note_all(tokens[:-1])
        self._states.append(state)

    def accept_all(self, tokens: Iterable[int]) -> bool:
        """Go on by several tokens; False, and nothing changes, where one of them is not allowed."""
        states, advance = self._states, self.constraint.advance
        n, state = len(states), self.state
        self._loop = None
        for token in tokens:
            state = advance(state, token)
            if not state:
                del states[n:]
                return False
            states.append(state)
        return True

    def accept_bytes(self, data: bytes) -> bool:
        """Go on by some text, which is taken back as one token is; False, and nothing changes, if it is not allowed."""
        after = self.constraint.advance_bytes(self.state, data)
        if after:
            self._states.append(after)
            self._loop = None
        return after != 0

    def validate(self, tokens: Sequence[int]) -> int:
        """How many of these tokens are allowed, one after the other, up to the first that is not; nothing changes."""
        state = self.state
        for n, token in enumerate(tokens):
            state = self.constraint.advance(state, token)
            if not state:
                return n
        return len(tokens)

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` tokens; raises `ValueError` for more than were accepted."""
        if not 0 <= n <= self.n_tokens:
            raise ValueError(f"{n} tokens cannot be taken back: {self.n_tokens} were accepted")
        del self._states[len(self._states) - n :]
        self._loop = None

    def reset(self) -> None:
        """Take back all tokens."""
        del self._states[1:]
        self._loop = None

    def _own_row(self) -> KeptRow:
        if self._row is None:
            self._row = with_address(np.empty(self.constraint.vocabulary.n_words, np.uint32))
        return self._row

    def fork(self) -> Matcher:
        """A matcher of its own at the same place."""
        other = Matcher.__new__(Matcher)
        other.constraint, other.most_tokens, other._states = self.constraint, self.most_tokens, self._states[:]
        other._loop = other._kept = other._row = None
        return other

    def forced_text(self) -> str:
        """The text that must come next, up to its last whole character; empty where there is a choice.

        Empty also where a grammar limits tokens: engines spell it anew with the text before, perhaps in too many.
        Raises `GuidedError` where a special token is in it, which is no text.
        """
        if getattr(self.constraint, "counts_tokens", False):
            return ""
        forced = self.constraint.forced(self.state)
        try:
            return forced.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                return forced[: error.start].decode()
            raise GuidedError(
                "what must come next is not text", where=repr(forced), remedy="Do without jumping forward here."
            ) from None

    def remembered_row(self) -> KeptRow | None:
        """The mask of the next token where it is at hand, and must not be written to."""
        constraint = self.constraint
        return constraint.remembered_row(self.state, self.budget) if isinstance(constraint, Constraint) else None

    def kept_row(self) -> KeptRow:
        """The mask of the next token, which must not be written to."""
        return kept_masks([self])[0]

    def fill(self, row: Any) -> None:
        """Write the mask of the next token to ``row``, ``int32`` or ``uint32[words]``; see `fill_rows`.

        A mask that was made before takes less than half of the time that it takes by `fill_rows`.
        """
        whole = mask_rows(row[None])[0]
        n_words = self.constraint.vocabulary.n_words
        if n_words > whole.size:
            raise VocabularyError(
                f"a row of {whole.size} words is too narrow for a vocabulary of {n_words} words",
                remedy="Allocate masks for the vocabulary's size.",
            )
        whole[n_words:] = 0
        own, budget = whole[:n_words], self.budget
        if budget is None:
            self.constraint.fill_mask(self.state, own)
            return
        try:
            self.constraint.fill_budget_mask(self.state, own, budget)
        except LimitError:
            # A token was accepted that no mask within the budget had.
            self.constraint.fill_mask(self.constraint.end, own)


def _advanced(constraint: Constrains, state: int, tokens: Sequence[int]) -> int:
    for token in tokens:
        state = constraint.advance(state, token)
    return state


def step(matchers: Sequence[Matcher], tokens: Sequence[int]) -> list[KeptRow | None]:
    """Go on by ``tokens[i]`` in ``matchers[i]``, no two the same; the masks after them.

    A mask must not be written to, and holds until its matcher moves.  None is for a matcher that has not moved:
    `Matcher.accept` and `Matcher.fill` say what becomes of it.  That may take long, or its text ends; see
    `guided.constraint.stepping.step_rows`.
    """
    masks: list[KeptRow | None] = [None] * len(matchers)
    left: list[int] = []
    before: list[int] = []
    for i, matcher in enumerate(matchers):
        masks[i] = matcher.stay(tokens[i])
        if masks[i] is None:
            try:
                before.append(matcher.state)
            except GuidedError:
                continue  # `Matcher.accept` comes to the same limit, for this text alone.
            left.append(i)
    some = [matchers[i] for i in left]
    found = step_rows(
        [matcher.constraint for matcher in some],
        before,
        [tokens[i] for i in left],
        [None if matcher.most_tokens is None else matcher.most_tokens - len(matcher._states) for matcher in some],
        [matcher._own_row() for matcher in some],
    )
    for i, matcher, one in zip(left, some, found, strict=True):
        if one is None:
            continue
        after, masks[i], loop = one
        matcher._states.append(after)
        matcher._kept = masks[i]
        matcher._loop = loop if matcher.most_tokens is None else None
    return masks


def fill_rows(matchers: Sequence[Matcher], rows: Any, threads: int = 1) -> None:
    """Write the masks of the next tokens: that of ``matchers[i]`` to row ``i``.

    ``rows`` is an array or CPU tensor, ``int32`` or ``uint32[n, words]``, as wide as the model's logits, padding
    included: token ``t`` is bit ``t & 31`` of word ``t >> 5``, 1 where it is allowed; ids beyond the vocabulary are
    not.  A text that is over leaves only end-of-text ids, and so does one that had to be whole by now.  ``threads`` as
    for `guided.fill_masks`.

    >>> import numpy as np
    >>> import guided
    >>> from guided.serving import Matcher, fill_rows
    >>> vocabulary = guided.Vocabulary.from_tokens([b"yes", b"no", b"y", None], eos_ids=[3])
    >>> matchers = [Matcher(guided.compile(guided.choice(words), vocabulary)) for words in (["yes", "no"], ["no"])]
    >>> rows = np.zeros((2, 1), np.uint32)
    >>> fill_rows(matchers, rows)
    >>> [f"{row:04b}" for row in rows[:, 0]]  # the lowest bit is token 0
    ['0011', '0010']
    """
    late: list[int] = []
    bounded = any(matcher.most_tokens is not None for matcher in matchers)
    fill_masks(
        [matcher.constraint for matcher in matchers],
        [matcher.state for matcher in matchers],
        rows,
        threads=threads,
        budgets=[matcher.budget for matcher in matchers] if bounded else None,
        unfinishable=late,
    )
    for i in late:
        # A token was accepted that no mask within the budget had.
        constraint = matchers[i].constraint
        fill_masks(constraint, [constraint.end], rows[i : i + 1])


def kept_masks(matchers: Sequence[Matcher], threads: int = 1) -> list[KeptRow]:
    """As `fill_rows`, but where the masks are, which must not be written to."""
    late: list[int] = []
    owners = [matcher.constraint for matcher in matchers]
    found = kept_rows(
        owners,
        [matcher.state for matcher in matchers],
        [matcher.budget for matcher in matchers],
        threads=threads,
        unfinishable=late,
    )
    for i in late:
        (found[i],) = kept_rows([owners[i]], [owners[i].end], [None])
    return found
