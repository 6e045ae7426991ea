"""`monitored`: a free text in which an analysis decides what may come at the places where it triggers.

Until the text has left the language that the analysis gave, only its texts may come; everywhere else the text is free.
States stand for whole texts, since an analysis may look at all of them, and equal texts are one state however they were
cut into tokens.

A token may run over a place where the monitor triggers (``self.name``).  Such tokens, and only they, are looked at one
by one in a mask; where an analysis cannot know anything (`Monitor.screen`), not even they.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint, TokenTree
from guided.monitor.eventful import Eventful
from guided.monitor.interface import Monitor
from guided.monitor.names import FREE, Verdict
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Monitor", "WatchedText", "monitored"]

_ANY = bytes(range(255))
"""What free text holds: any byte but 0xFF, which is in no UTF-8."""

_UNASKED: Any = object()


class WatchedText:
    """The live language of free text under a monitor; a state is a node of the tree of all texts that were visited.

    ``before`` is the text in front of the cursor: analyses see it, the language does not hold it.
    """

    def __init__(self, monitor: Monitor, before: bytes = b"") -> None:
        self.monitor = monitor
        self.before = before
        lexical, context = monitor.lexical_start, monitor.context_start
        for position, byte in enumerate(before):
            context = monitor.follow(context, lexical, byte, position)
            lexical = monitor.read(lexical, byte)
        self.start = 0
        self._parent, self._byte, self._depth = [0], [0], [0]
        self._lexical: list[Any] = [lexical]
        self._context: list[Any] = [context]
        self._verdict: list[Any] = [_UNASKED]
        self._children: dict[int, int] = {}
        self._surveyed: tuple[int, list[int]] = (-1, [])

    def __reduce__(self) -> tuple[Any, ...]:
        return (WatchedText, (self.monitor, self.before))

    def __repr__(self) -> str:
        return f"text watched by {self.monitor!r}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The monitor's."""
        return self.monitor.notes

    def text(self, at: int) -> bytes:
        """The text of a state, what stands before the cursor included."""
        out = bytearray()
        while at:
            out.append(self._byte[at])
            at = self._parent[at]
        return self.before + bytes(out[::-1])

    def verdict(self, at: int) -> Verdict | None:
        """What is demanded in a state, None where the text is free; asks the analysis the first time."""
        found = self._verdict[at]
        if found is _UNASKED:
            found = None
            if self.monitor.triggers(self._lexical[at]):
                found = self.monitor.analyse(self.text(at), self._context[at])
            self._verdict[at] = found
        return found  # type: ignore[no-any-return]

    def step(self, at: int, byte: int) -> int | None:
        """The node below."""
        key = at << 8 | byte
        found = self._children.get(key)
        if found is not None:
            return found
        if byte == 0xFF:
            return None
        verdict = self.verdict(at)
        after: Any = _UNASKED
        if verdict is not None:
            after = verdict.step(byte)
            if after is None:
                return None
            if after is FREE:
                after = _UNASKED
        lexical, context = self._lexical[at], self._context[at]
        depth = self._depth[at]
        found = len(self._parent)
        self._parent.append(at)
        self._byte.append(byte)
        self._depth.append(depth + 1)
        self._context.append(self.monitor.follow(context, lexical, byte, len(self.before) + depth))
        self._lexical.append(self.monitor.read(lexical, byte))
        self._verdict.append(after)
        self._children[key] = found
        return found

    def _steps(self, at: int, data: bytes) -> int | None:
        node: int | None = at
        for byte in data:
            if node is None:
                return None
            node = self.step(node, byte)
        return node

    def following(self, at: int) -> Sequence[int]:
        """All bytes, or the verdict's."""
        verdict = self.verdict(at)
        return _ANY if verdict is None else sorted(verdict.continuing() + verdict.releasing())

    def may_end(self, at: int) -> bool:
        """Anywhere but in the middle of what is demanded."""
        verdict = self.verdict(at)
        return verdict is None or verdict.may_end

    def rest(self, at: int) -> bytes:
        """To the end of what is demanded."""
        verdict = self.verdict(at)
        return b"" if verdict is None or verdict.may_end else verdict.rest

    def expected(self, at: int) -> str:
        """The verdict's words."""
        verdict = self.verdict(at)
        return "anything" if verdict is None else verdict.expected

    def row(self, at: int, tree: TokenTree) -> NDArray[np.uint32]:
        """All tokens but those that run into something forbidden; under a verdict, those that keep to it."""
        row, doubtful = self._survey(at, tree)
        # A budgeted mask asks for both, one after the other; those of free text do not depend on the limit.
        self._surveyed = (at, doubtful) if self.verdict(at) is None else (-1, [])
        return row

    def unfinished(self, at: int, tree: TokenTree, limit: int) -> Iterable[int]:
        """Those that end at or behind a trigger, and those within a verdict that may be longer."""
        last, doubtful = self._surveyed
        return doubtful if last == at else self._survey(at, tree, limit)[1]

    def _survey(self, at: int, tree: TokenTree, limit: int = 0) -> tuple[NDArray[np.uint32], list[int]]:
        verdict = self.verdict(at)
        if verdict is None:
            return self._free(at, tree)
        eventful = self.monitor.kept(tree.vocabulary, Eventful)
        row = np.zeros_like(eventful.free_row)
        doubtful: list[int] = []
        for part in verdict.parts:
            if part.pattern is not None:
                matching, watched = eventful.matching(part.pattern)
                matching = matching.copy()
                self._strike(at, matching, watched, doubtful, eventful)
                if part.most is None or part.most > limit:
                    doubtful += tokenset.ids(matching).tolist()
                row |= matching
                continue
            within, released = eventful.walked(part)
            doubtful += within.tolist()
            row |= tree.row(within)
            trie = tree.trie
            for place in released:
                begin, stop = int(trie.token_offset[place]), int(trie.token_offset[trie.end[place]])
                ahead = tree.row(trie.token_ids[begin:stop]) & eventful.free_row
                first, last = np.searchsorted(eventful.places, (begin, stop))
                self._strike(at, ahead, eventful.sorted_ids[first:last].tolist(), doubtful, eventful)
                row |= ahead
            releasing = part.releasing()
            if releasing:
                free, more = self._free(at, tree, releasing)
                row |= free
                doubtful += more
        return row, doubtful

    def _strike(
        self, at: int, row: NDArray[np.uint32], tokens: Iterable[int], doubtful: list[int], eventful: Eventful
    ) -> None:
        """Take tokens out of a row that run into something forbidden."""
        for token in tokens:
            doubtful.append(token)
            if self._steps(at, eventful.tokens[token]) is None:
                tokenset.remove(row, token)

    def _free(self, at: int, tree: TokenTree, first: bytes | None = None) -> tuple[NDArray[np.uint32], list[int]]:
        """The tokens of free text, those with the given first bytes only; and which of them may not be an end."""
        eventful = self.monitor.kept(tree.vocabulary, Eventful)
        row = eventful.free_row.copy()
        if first is not None:
            row &= eventful.first_row(first)
        crossings, several = eventful.crossings(self._lexical[at])
        doubtful: list[int] = []
        may_know = self.monitor.screen(self.text(at), self._context[at])
        for crossing in crossings:
            prefix = crossing.prefix
            if (first is not None and prefix[0] not in first) or not may_know(prefix):
                continue
            doubtful.extend(crossing.ending)
            if not crossing.going_on:
                continue
            place = self._steps(at, prefix)
            assert place is not None
            if self.verdict(place) is None:
                continue
            for token, rest in crossing.going_on:
                doubtful.append(token)
                if self._steps(place, rest) is None:
                    tokenset.remove(row, token)
        some = (token for token in several if first is None or eventful.tokens[token][0] in first)
        self._strike(at, row, some, doubtful, eventful)
        return row, doubtful


def monitored(
    monitor: Monitor, vocabulary: Vocabulary, *, before: str | bytes = b"", limits: Limits | None = None
) -> LiveConstraint:
    """Free text under a monitor, as a constraint; ``before`` is the text in front of the cursor (the prompt's code).

    Free text is any bytes but 0xFF; special tokens other than end of text are not allowed.  A text may end anywhere but
    inside what an analysis demands.
    """
    data = before.encode("utf-8", "surrogatepass") if isinstance(before, str) else before
    return LiveConstraint(WatchedText(monitor, data), vocabulary, limits)
