"""`LiveConstraint`: a constraint over the tokens of a vocabulary from a live language over bytes.

A live language is an automaton whose states are made while the text is written: by a pointer into a source, an index,
or an analysis.  This file knows how such an automaton becomes masks, steps and completions; what it accepts is the
business of the languages beside it.  Where the automaton leaves little choice, a mask is a walk over the vocabulary's
trie along the few bytes that may follow; languages with wide states bring their own masks (`LiveLanguage.row`).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.collection import hold, release
from guided.constraint.limits import Limits
from guided.constraint.states import States
from guided.errors import LimitError, VocabularyError
from guided.kernels.data.layout import DEAD, FINISHED
from guided.special_bytes import SENTINEL
from guided.vocab.vocabulary import Vocabulary

__all__ = ["LiveConstraint", "LiveLanguage", "TokenTree", "name_bytes"]

_ENDS = 1 << 17
"""Ends that are remembered; the older half is dropped, of states that no text is at any more."""
_SHOWN = 12
"""Possible next bytes that one explanation names."""


class TokenTree:
    """The vocabulary's trie with children by byte, made as far as walks go; shared by the languages of a constraint."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.trie = vocabulary.trie
        self._children: dict[int, dict[int, int]] = {}

    def children(self, node: int) -> dict[int, int]:
        """The children of a node by the byte on their edge."""
        found = self._children.get(node)
        if found is None:
            found = {}
            byte, end = self.trie.byte, self.trie.end
            child, stop = node + 1, int(end[node])
            while child < stop:
                found[int(byte[child])] = child
                child = int(end[child])
            self._children[node] = found
        return found

    def spelled_here(self, node: int) -> NDArray[np.int32]:
        """The ids that spell a node."""
        return self.trie.token_ids[self.trie.token_offset[node] : self.trie.token_offset[node + 1]]

    def row(self, ids: Iterable[int] | NDArray[Any]) -> NDArray[np.uint32]:
        """A mask row, ``uint32[n_words]``, of these ids."""
        return tokenset.of_ids(ids, self.vocabulary.n_words)


@runtime_checkable
class LiveLanguage(Protocol):
    """A language over bytes as an automaton whose states are values: hashable, and equal ones have equal futures.

    From every state some text of the language can be reached.
    """

    @property
    def start(self) -> Hashable:
        """The state of the empty text."""
        ...

    def step(self, at: Any, byte: int) -> Hashable | None:
        """The state after one byte, None when no text goes on so."""
        ...

    def following(self, at: Any) -> Sequence[int]:
        """Exactly the bytes for which `step` is not None, ascending."""
        ...

    def may_end(self, at: Any) -> bool:
        """Is the text so far in the language?"""
        ...

    def rest(self, at: Any) -> bytes:
        """The shortest text after which `may_end` holds, the first in byte order among equals."""
        ...

    def row(self, at: Any, tree: TokenTree) -> NDArray[np.uint32] | None:
        """The mask without end-of-text ids, or None to have the trie walked along `following`."""
        ...

    def unfinished(self, at: Any, tree: TokenTree, limit: int) -> Iterable[int] | None:
        """Ids that hold all allowed ones with an end more than ``limit`` bytes behind them; None: any may be."""
        ...

    def expected(self, at: Any) -> str:
        """What may come next, in words."""
        ...


class LiveConstraint:
    """A `Constrains` made of a live language; states are ints, never change meaning, and equal texts share one.

    Needs a vocabulary in which every byte is a token, so that whatever the language allows can be spelled; raises
    `VocabularyError` otherwise.  Safe to share between threads; picklable where the language is (states are not).
    """

    def __init__(self, language: LiveLanguage, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        if not vocabulary.byte_complete:
            raise VocabularyError(
                "a monitor needs a vocabulary with a token for every single byte, and this one lacks some",
                remedy="Use a byte-level or byte-fallback tokenizer.",
            )
        self.language = language
        self.vocabulary = vocabulary
        self.limits = limits or Limits()
        self.end = FINISHED
        """The state after an end-of-text id; only such ids are allowed in it."""
        self._lock = threading.RLock()
        self._tree = TokenTree(vocabulary)
        self._states = States(language.start, language.step, FINISHED + 1, self.limits.live_states)
        self._steps: dict[int, int] = {}
        self._ends: dict[int, tuple[int, ...]] = {}
        self._eos = frozenset(vocabulary.eos_ids)
        self._eos_row = self._tree.row(vocabulary.eos_ids)
        self._masks: dict[int, NDArray[np.uint32]] = {}
        self.start = FINISHED + 1
        """The state before any text."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.language, self.vocabulary, self.limits))

    def __repr__(self) -> str:
        return f"<LiveConstraint {self.language!r} over {self.vocabulary!r}>"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about how the language is enforced, as far as it has come."""
        return tuple(getattr(self.language, "notes", ()))

    def fill_mask(self, state: int, row: NDArray[np.uint32]) -> None:
        """Write the mask of ``state`` to ``row`` (``uint32[n_words]``)."""
        if state <= FINISHED:
            row[:] = self._eos_row if state == FINISHED else 0
            return
        held = hold()
        try:
            with self._lock:
                row[:] = self._mask(state)
        finally:
            if held:
                release()

    def _mask(self, state: int) -> NDArray[np.uint32]:
        found = self._masks.get(state)
        if found is None:
            at = self._states.value(state)
            found = self.language.row(at, self._tree)
            if found is None:
                found = self._walk(at)
            if self.language.may_end(at):
                found = found | self._eos_row
            if (len(self._masks) + 1) * found.nbytes > self.limits.mask_bytes:
                for key in list(self._masks)[: len(self._masks) // 2 + 1]:
                    del self._masks[key]
            self._masks[state] = found
        return found

    def _walk(self, at: Any) -> NDArray[np.uint32]:
        language, tree = self.language, self._tree
        found: list[int] = []
        stack = [(at, 0)]
        visited = 0
        while stack:
            value, node = stack.pop()
            children = tree.children(node)
            visited += 1
            if visited > self.limits.step_work:
                raise LimitError("the mask of a live language takes too many steps", remedy="Raise Limits.step_work.")
            if not children:
                continue
            for byte in language.following(value):
                child = children.get(byte)
                if child is not None:
                    after = language.step(value, byte)
                    if after is not None:
                        found.extend(tree.spelled_here(child).tolist())
                        stack.append((after, child))
        return tree.row(found)

    def advance(self, state: int, token: int) -> int:
        """The state after a token, 0 if it is not allowed; end-of-text ids lead from accepting states to `end`."""
        found = self._steps.get(state << 32 | token)
        if found is not None:
            return found
        held = hold()
        try:
            with self._lock:
                if token in self._eos:
                    after = FINISHED if self.is_accepting(state) else DEAD
                elif not 0 <= token < self.vocabulary.size:
                    return DEAD
                else:
                    data = self.vocabulary.token_bytes(token)
                    after = self.advance_bytes(state, data) if data else DEAD
                if len(self._steps) >= self.limits.steps:
                    for key in list(self._steps)[: len(self._steps) // 2]:
                        del self._steps[key]
                self._steps[state << 32 | token] = after
                return after
        finally:
            if held:
                release()

    def advance_bytes(self, state: int, data: bytes) -> int:
        """The state after some bytes of text, which need not end where a token or character does; 0 if not allowed."""
        if not data or state == DEAD:
            return state
        if state == FINISHED:
            return DEAD
        if self.vocabulary.has_special and SENTINEL in data:
            return DEAD
        with self._lock:
            found = self._states.after(state, data)
            return DEAD if found is None else found

    def is_accepting(self, state: int) -> bool:
        """True when the text may end here."""
        if state <= FINISHED:
            return state == FINISHED
        with self._lock:
            return self.language.may_end(self._states.value(state))

    def forced(self, state: int) -> bytes:
        """The bytes that must come next, empty where there is a choice or the text may end."""
        if state <= FINISHED:
            return b""
        out = bytearray()
        with self._lock:
            at = self._states.value(state)
            while len(out) < self.limits.forced_bytes and not self.language.may_end(at):
                following = self.language.following(at)
                if len(following) != 1:
                    break
                out.append(following[0])
                at = self.language.step(at, following[0])
        return bytes(out)

    def forced_tokens(self, state: int, tokenizer: Any, before: Sequence[int]) -> list[int]:
        """The tokens that must come next; see `guided.constraint.spelling.forcing.forced_tokens`."""
        from guided.constraint.spelling.forcing import forced_tokens

        return forced_tokens(self, state, tokenizer, before)

    def shortest_text(self, state: int) -> bytes:
        """The shortest text that completes a live state."""
        with self._lock:
            return b"" if state <= FINISHED else self.language.rest(self._states.value(state))

    def shortest_completion(self, state: int) -> int:
        """Tokens to the nearest end by the shortest text, the end-of-text token not counted; always achievable."""
        return len(self._end(state))

    def _end(self, state: int) -> tuple[int, ...]:
        """The tokens of the shortest text; those of the states on the way are what is left of it.

        A search may find a longer one where it is on the way of another's, and a language may forget what it has found:
        what was promised stays true.
        """
        found = self._ends.get(state)
        if found is None:
            from guided.vocab.spelled import spell

            with self._lock:
                found = tuple(spell(self.vocabulary, self.shortest_text(state)))
                self._remember(state, found)
        return found

    def _remember(self, state: int, tokens: tuple[int, ...]) -> None:
        """Keep the end of a state, and what is left of it for the states on the way."""
        if len(self._ends) > _ENDS:
            for key in list(self._ends)[: _ENDS // 2]:
                del self._ends[key]
        for place in range(len(tokens) + 1):
            if state not in self._ends or len(self._ends[state]) > len(tokens) - place:
                self._ends[state] = tokens[place:]
            if place < len(tokens):
                state = self.advance(state, tokens[place])

    def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """As `fill_mask`, but only tokens after which the text can still be completed within ``budget`` tokens.

        Raises `LimitError` when even the shortest completion does not fit.
        """
        if state <= FINISHED:
            self.fill_mask(state, row)
            return
        with self._lock:
            needed = self.shortest_completion(state) + 1
            if needed > budget:
                raise LimitError(
                    f"{budget} tokens are left, but the shortest completion takes {needed - 1} and the end-of-text"
                    " token",
                    remedy="Raise max_new_tokens.",
                )
            if budget < 2:
                row[:] = self._eos_row
                return
            row[:] = self._mask(state)
            undecided = self.language.unfinished(self._states.value(state), self._tree, budget - 2)
            if undecided is None:
                undecided = tokenset.ids(row).tolist()
            for token in undecided:
                if tokenset.contains(row, token) and token not in self._eos:
                    after = self.advance(state, token)
                    if self.shortest_completion(after) > budget - 2:
                        tokenset.remove(row, token)

    def explain(self, state: int, token: int) -> str:
        """Why a token is or is not allowed, in the language's own words."""
        if state == DEAD:
            return "the text before is not allowed, so nothing can follow it"
        if not 0 <= token < self.vocabulary.size:
            return f"token {token} is outside the vocabulary of {self.vocabulary.size} ids"
        if token in self._eos:
            if self.is_accepting(state):
                return "the text may end here"
            with self._lock:
                return f"the text may not end here: expected {self._expected(self._states.value(state))}"
        if state == FINISHED:
            return "the text has ended; only an end-of-text token may follow"
        data = self.vocabulary.token_bytes(token)
        if data is None:
            return f"token {token} is a special token or padding, which never matches text"
        with self._lock:
            at = self._states.value(state)
            for position, byte in enumerate(data):
                after = self.language.step(at, byte)
                if after is None:
                    where = f"after {_show(data[:position])}, " if position else ""
                    return (
                        f"{_show(data)} is not allowed: {where}{_show(bytes([byte]))} does not fit;"
                        f" expected {self._expected(at)}"
                    )
                at = after
            return f"{_show(data)} is allowed; after it {self._expected(at)}"

    def _expected(self, at: Any) -> str:
        return self.language.expected(at)


def _show(data: bytes) -> str:
    return repr(data.decode("utf-8", "backslashreplace"))


def name_bytes(following: Sequence[int]) -> str:
    """A few next bytes, for people."""
    shown = " ".join(_show(bytes([byte])) for byte in following[:_SHOWN])
    return f"one of {shown}{' ...' if len(following) > _SHOWN else ''}"
