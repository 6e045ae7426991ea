"""`joint`: several constraints over one text, all of which must hold: monitors, live languages, compiled grammars.

The parts of a joint constraint are followed side by side, each in its own state.  What one part leaves open another may
forbid, so that each of them can end and both together cannot; a byte is therefore allowed only if a text that all parts
accept still follows it, which a search along the parts' shortest ends proves.  So nothing here has dead ends either,
and a place at which two monitors demand what contradicts each other is never entered.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.constraint import Constraint
from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint, LiveLanguage, TokenTree, name_bytes
from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError, VocabularyError
from guided.kernels.data.layout import DEAD
from guided.special_bytes import SENTINEL

__all__ = ["GrammarLanguage", "Joint", "joint"]

_State: TypeAlias = "tuple[Hashable, ...]"

_SENTINEL = SENTINEL[0]

MAX_SEARCHED = 20_000
"""Texts that one proof looks at; the parts' own shortest ends lead it, so those that agree need some dozens."""


class GrammarLanguage:
    """A compiled grammar as a live language over bytes; special tokens are not text and cannot come."""

    def __init__(self, constraint: Constraint) -> None:
        """Raises `UnsupportedError` for a grammar that limits tokens: a live language goes by bytes."""
        if constraint.counts_tokens:
            raise UnsupportedError(
                "max_tokens in a part of a joint constraint, which goes by bytes", remedy="Leave max_tokens out."
            )
        self.constraint = constraint
        self._steps: dict[int, int] = {}
        self._rests: dict[int, bytes] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (GrammarLanguage, (self.constraint,))

    def __repr__(self) -> str:
        return repr(self.constraint.grammar)

    @property
    def start(self) -> int:
        """The constraint's."""
        return self.constraint.start

    def step(self, at: int, byte: int) -> int | None:
        """The state after one byte."""
        if byte == _SENTINEL:
            return None
        after = self._steps.get(at << 8 | byte)
        if after is None:
            after = self._steps[at << 8 | byte] = self.constraint.advance_bytes(at, bytes([byte]))
        return None if after == DEAD else after

    def following(self, at: int) -> Sequence[int]:
        """The bytes that may come."""
        possible: list[int] = np.flatnonzero(self.constraint.possible_bytes(at)).tolist()
        return [byte for byte in possible if self.step(at, byte) is not None]

    def may_end(self, at: int) -> bool:
        """Is the text in the language?"""
        return self.constraint.is_accepting(at)

    def rest(self, at: int) -> bytes:
        """The shortest text that completes it."""
        found = self._rests.get(at)
        if found is None:
            found = self._rests[at] = self.constraint.shortest_text(at)
        return found

    def row(self, at: int, tree: TokenTree) -> NDArray[np.uint32] | None:
        """The constraint's mask."""
        row = np.zeros(tree.vocabulary.n_words, np.uint32)
        self.constraint.fill_mask(at, row)
        return row

    def unfinished(self, at: int, tree: TokenTree, limit: int) -> Iterable[int] | None:
        """Any may be."""
        return None

    def expected(self, at: int) -> str:
        """Some of the bytes that may come."""
        return name_bytes(self.following(at))


class Joint:
    """The texts that are in all of some live languages; a state is the tuple of theirs, and from each a text ends.

    Raises `UnsatisfiableError` where no text is in all of them.
    """

    def __init__(self, parts: Sequence[LiveLanguage], max_searched: int = MAX_SEARCHED) -> None:
        self.parts = tuple(parts)
        self.max_searched = max_searched
        self._rests: dict[_State, bytes | None] = {}
        """The shortest ends that were found, None where there is none."""
        self.start: _State = tuple(part.start for part in self.parts)
        if self._end(self.start) is None:
            raise UnsatisfiableError(
                "no text satisfies all parts of a joint constraint",
                remedy="Leave out a part that excludes what another demands.",
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return (Joint, (self.parts, self.max_searched))

    def __repr__(self) -> str:
        return " and ".join(map(repr, self.parts))

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the parts."""
        return tuple(dict.fromkeys(note for part in self.parts for note in getattr(part, "notes", ())))

    def step(self, at: _State, byte: int) -> _State | None:
        """All parts after one byte, None where one forbids it or they could not end together."""
        after = self._stepped(at, byte)
        return None if after is None or self._end(after) is None else after

    def _stepped(self, at: _State, byte: int) -> _State | None:
        found = []
        for part, state in zip(self.parts, at, strict=True):
            after = part.step(state, byte)
            if after is None:
                return None
            found.append(after)
        return tuple(found)

    def _common(self, at: _State) -> list[int]:
        """The bytes that no part forbids by itself."""
        each = [part.following(state) for part, state in zip(self.parts, at, strict=True)]
        return sorted(set(each[0]).intersection(*each[1:]))

    def following(self, at: _State) -> Sequence[int]:
        """The bytes after which all parts still end together."""
        return [byte for byte in self._common(at) if self.step(at, byte) is not None]

    def may_end(self, at: _State) -> bool:
        """Do all parts accept?"""
        return all(part.may_end(state) for part, state in zip(self.parts, at, strict=True))

    def rest(self, at: _State) -> bytes:
        """The shortest text after which all parts accept."""
        found = self._end(at)
        assert found is not None, "a state from which no text ends was handed out"
        return found

    def _end(self, at: _State) -> bytes | None:
        """The shortest common end, None without one; raises `LimitError` where the search takes too long.

        A best-first search (A*) by the length so far and the longest of the parts' own shortest ends, which no common
        end is shorter than; among equals the text that comes first in byte order, so that prefixes come before what
        they begin.  Where that longest one suits all parts it is the answer, as it is in most cases at once: all other
        common ends of its length are ends for its part too, and come later in byte order.
        """
        if at in self._rests:
            return self._rests[at]
        queue: list[tuple[int, bytes, _State]] = []
        best: dict[_State, tuple[int, bytes]] = {}

        def reach(state: _State, text: bytes) -> None:
            known = self._rests.get(state, b"")
            if known is None:
                return
            entry = (len(text), text)
            if state not in best or entry < best[state]:
                best[state] = entry
                left = len(known) if state in self._rests else len(self._longest(state))
                heapq.heappush(queue, (len(text) + left, text, state))

        reach(at, b"")
        searched = 0
        while queue:
            _, text, state = heapq.heappop(queue)
            if best[state][1] != text:
                continue
            own = self._longest(state)
            if self._suits(state, own):
                self._remember(at, text + own)
                return text + own
            searched += 1
            if searched > self.max_searched:
                raise LimitError(
                    f"whether all parts of a joint constraint can end together is open after {searched} texts",
                    where=f"after which comes {' and '.join(self._wanted(at))}",
                    remedy="Constrain less at once, or raise max_searched.",
                )
            for byte in self._common(state):
                after = self._stepped(state, byte)
                if after is not None:
                    reach(after, text + bytes([byte]))
        # Everything that can be reached was looked at, and none of it ends.
        for state in best:
            self._rests[state] = None
        return None

    def _remember(self, at: _State, text: bytes) -> None:
        """The end of a state, and of all those on the way to it: what is left of a shortest end is one."""
        state: _State | None = at
        for place in range(len(text) + 1):
            assert state is not None
            self._rests[state] = text[place:]
            if place < len(text):
                state = self._stepped(state, text[place])

    def _longest(self, at: _State) -> bytes:
        """The longest of the parts' shortest ends."""
        return max((part.rest(state) for part, state in zip(self.parts, at, strict=True)), key=len)

    def _suits(self, at: _State, text: bytes) -> bool:
        """Do all parts accept after this text?"""
        state: _State | None = at
        for byte in text:
            state = self._stepped(state, byte) if state is not None else None
        return state is not None and self.may_end(state)

    def row(self, at: _State, tree: TokenTree) -> NDArray[np.uint32] | None:
        """The tokens that all parts allow, less those after which they cannot end together; None to walk the trie."""
        rows = []
        for part, state in zip(self.parts, at, strict=True):
            row = part.row(state, tree)
            if row is None:
                return None
            rows.append(row)
        found: NDArray[np.uint32] = np.bitwise_and.reduce(rows)
        offsets = tree.vocabulary.offsets
        doubtful = self.unfinished(at, tree, 0)
        for token in tokenset.ids(found).tolist() if doubtful is None else sorted(set(doubtful)):
            if tokenset.contains(found, token):
                after: _State | None = at
                for byte in tree.vocabulary.token_bytes(token) or b"":
                    after = None if after is None else self.step(after, byte)
                if after is None or offsets[token] == offsets[token + 1]:
                    tokenset.remove(found, token)
        return found

    def unfinished(self, at: _State, tree: TokenTree, limit: int) -> Iterable[int] | None:
        """Those after which one part is not at an end: a common end may be longer than any of theirs."""
        found: set[int] = set()
        for part, state in zip(self.parts, at, strict=True):
            some = part.unfinished(state, tree, 0)
            if some is None:
                return None
            found.update(some)
        return found

    def expected(self, at: _State) -> str:
        """The words of those parts that demand something, or of all."""
        return " and ".join(self._wanted(at))

    def _wanted(self, at: _State) -> list[str]:
        pairs = list(zip(self.parts, at, strict=True))
        demanding = [pair for pair in pairs if not pair[0].may_end(pair[1])] or pairs
        return list(dict.fromkeys(part.expected(state) for part, state in demanding))


def joint(
    constraints: Sequence[LiveConstraint | Constraint],
    *,
    limits: Limits | None = None,
    max_searched: int = MAX_SEARCHED,
) -> LiveConstraint:
    """The texts that are in the languages of all these constraints: monitors, live languages and compiled grammars.

    A monitor's demands hold wherever it makes them, so the regions in which monitors trigger are united, and where
    several demand something at once a text must satisfy all of it; `Agreeing` intersects the regions instead.
    The parts are copied as far as they change, and stay usable by themselves.  Ends are proved by search, of at most
    ``max_searched`` texts each (`LimitError`).  Masks look at every token after which some part is not at an end: with
    a grammar among the parts these are all that it allows.

    Raises `VocabularyError` for constraints over different vocabularies, `UnsatisfiableError` where no text is left,
    and `UnsupportedError` for other kinds of constraints.
    """
    if not constraints:
        raise GuidedError("a joint constraint of nothing", remedy="Give at least one constraint.")
    vocabulary = constraints[0].vocabulary
    parts: list[LiveLanguage] = []
    for constraint in constraints:
        if constraint.vocabulary != vocabulary:
            raise VocabularyError(
                f"one part is for {constraint.vocabulary}, another for {vocabulary}",
                remedy="Compile all parts for the vocabulary of the model's tokenizer.",
            )
        if isinstance(constraint, LiveConstraint):
            # A watched text grows as it is read: two constraints must not grow the same one.
            parts.append(copy.copy(constraint.language))
        elif isinstance(constraint, Constraint):
            parts.append(GrammarLanguage(constraint))
        else:
            raise UnsupportedError(
                f"{type(constraint).__name__} goes by tokens, and joint constraints go by bytes",
                remedy="Use substring instead of ngrams, and guided.canonical around the joint constraint.",
            )
    return LiveConstraint(Joint(parts, max_searched), vocabulary, limits)
