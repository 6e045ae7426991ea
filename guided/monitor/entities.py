"""`entity_mentions`: a text copied word for word, with mentions marked and linked to entities (De Cao et al., 2021).

GENRE writes the source again and puts markup around what it links: ``the [cat](Felis catus) sat``.  A pointer into the
source says what may be copied; a mention's entity is one of a trie of names, of all or of the mention's candidates.
Where the source or the names hold the markup's own characters, a text can be read in two ways, so a state is a set of
*threads*, each one way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from numpy.typing import NDArray

from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint, TokenTree, name_bytes
from guided.errors import GrammarError, UnsatisfiableError
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Markup", "MentionText", "entity_mentions"]


@dataclass(frozen=True)
class Markup:
    """What stands before a mention, between it and its entity, and behind that."""

    before: str = "["
    between: str = "]("
    behind: str = ")"


class _Phase(IntEnum):
    COPY = 0
    OPENING = 1
    MENTION = 2
    BETWEEN = 3
    ENTITY = 4


_Thread = tuple[int, int, int, int, int, int]
"""Phase; position in the source; where the mention began; depth in markup or name; and a slice of the sorted names."""

_State = tuple[_Thread, ...]


class MentionText:
    """The live language of marked copies of one source; see `entity_mentions`."""

    def __init__(
        self,
        source: str,
        entities: tuple[str, ...],
        candidates: Callable[[str], Iterable[str]] | None,
        markup: Markup,
        max_mention: int,
    ) -> None:
        self._arguments = (source, entities, candidates, markup, max_mention)
        self.source = source.encode()
        self.max_mention = max_mention
        self._before, self._between, self._behind = (
            part.encode() for part in (markup.before, markup.between, markup.behind)
        )
        self._candidates = candidates
        self._all = self._spelled(entities)
        self._names: dict[tuple[int, int], tuple[bytes, ...]] = {}
        self._ends: dict[int, tuple[int, ...]] = {}
        self._best: dict[tuple[int, int, int, int, int], bytes] = {}
        self.start: _State = ((_Phase.COPY, 0, 0, 0, 0, 0),)

    def __reduce__(self) -> tuple[Any, ...]:
        return (MentionText, self._arguments)

    def __repr__(self) -> str:
        return f"mentions in {len(self.source)} bytes of text"

    def _spelled(self, names: Iterable[str]) -> tuple[bytes, ...]:
        """Names with what stands behind them, sorted."""
        return tuple(sorted({name.encode() + self._behind for name in names}))

    def _names_of(self, start: int, stop: int) -> tuple[bytes, ...]:
        """What a mention may be linked to."""
        if self._candidates is None:
            return self._all
        found = self._names.get((start, stop))
        if found is None:
            found = self._spelled(name for name in self._candidates(self.source[start:stop].decode()) if name)
            self._names[start, stop] = found
        return found

    def _is_boundary(self, position: int) -> bool:
        return position == len(self.source) or self.source[position] & 0xC0 != 0x80

    def _ends_of(self, start: int) -> tuple[int, ...]:
        """Where a mention from ``start`` may end, ascending."""
        found = self._ends.get(start)
        if found is None:
            found = ()
            if self._is_boundary(start):
                places = (at for at in range(start + 1, len(self.source) + 1) if self._is_boundary(at))
                short = [at for _, at in zip(range(self.max_mention), places, strict=False)]
                found = tuple(at for at in short if self._names_of(start, at))
            self._ends[start] = found
        return found

    # The live language ------------------------------------------------------------------------------------------

    def step(self, at: _State, byte: int) -> _State | None:
        """All threads that can read the byte."""
        after = {thread for before in at for thread in self._moved(before, byte)}
        return tuple(sorted(after)) if after else None

    def _moved(self, thread: _Thread, byte: int) -> Iterable[_Thread]:
        phase, place, start, depth, low, high = thread
        if phase == _Phase.COPY:
            if place < len(self.source) and self.source[place] == byte:
                yield (_Phase.COPY, place + 1, 0, 0, 0, 0)
            if self._before[0] == byte and self._ends_of(place):
                yield self._opened(place, 1)
        elif phase == _Phase.OPENING:
            if self._before[depth] == byte:
                yield self._opened(place, depth + 1)
        elif phase == _Phase.MENTION:
            ends = self._ends_of(start)
            if place < ends[-1] and self.source[place] == byte:
                yield (_Phase.MENTION, place + 1, start, 0, 0, 0)
            if self._between[0] == byte and place in ends:
                yield self._linking(place, start, 1)
        elif phase == _Phase.BETWEEN:
            if self._between[depth] == byte:
                yield self._linking(place, start, depth + 1)
        else:
            names = self._names_of(start, place)

            def letter(name: bytes) -> int:
                return name[depth] if depth < len(name) else -1

            low = bisect_left(names, byte, low, high, key=letter)
            high = bisect_left(names, byte + 1, low, high, key=letter)
            if low < high:
                if len(names[low]) == depth + 1:
                    yield (_Phase.COPY, place, 0, 0, 0, 0)
                    low += 1
                if low < high:
                    yield (_Phase.ENTITY, place, start, depth + 1, low, high)

    def _opened(self, place: int, depth: int) -> _Thread:
        if depth < len(self._before):
            return (_Phase.OPENING, place, place, depth, 0, 0)
        return (_Phase.MENTION, place, place, 0, 0, 0)

    def _linking(self, place: int, start: int, depth: int) -> _Thread:
        if depth < len(self._between):
            return (_Phase.BETWEEN, place, start, depth, 0, 0)
        return (_Phase.ENTITY, place, start, 0, 0, len(self._names_of(start, place)))

    def following(self, at: _State) -> Sequence[int]:
        """The next bytes of all threads."""
        found: set[int] = set()
        for phase, place, start, depth, low, high in at:
            if phase == _Phase.COPY:
                found.update(self.source[place : place + 1])
                if self._ends_of(place):
                    found.add(self._before[0])
            elif phase == _Phase.OPENING:
                found.add(self._before[depth])
            elif phase == _Phase.MENTION:
                ends = self._ends_of(start)
                if place < ends[-1]:
                    found.add(self.source[place])
                if place in ends:
                    found.add(self._between[0])
            elif phase == _Phase.BETWEEN:
                found.add(self._between[depth])
            else:
                names = self._names_of(start, place)
                while low < high:
                    found.add(names[low][depth])
                    low = bisect_left(names, names[low][depth] + 1, low, high, key=lambda name: name[depth])
        return bytes(sorted(found))

    def may_end(self, at: _State) -> bool:
        """The source is copied and no markup is open."""
        return any(phase == _Phase.COPY and place == len(self.source) for phase, place, *_ in at)

    def rest(self, at: _State) -> bytes:
        """The rest of the source, with the nearest end of what is open."""
        return min(map(self._rest_of, at), key=lambda text: (len(text), text))

    def _rest_of(self, thread: _Thread) -> bytes:
        phase, place, start, depth, low, high = thread
        if phase == _Phase.COPY:
            return self.source[place:]
        if phase == _Phase.ENTITY:
            return self._nearest(start, place, depth, low, high) + self.source[place:]
        if phase == _Phase.BETWEEN:
            ways = [(place, self._between[depth:])]
        else:
            opening = self._before[depth:] if phase == _Phase.OPENING else b""
            ends = [end for end in self._ends_of(start) if end >= place]
            ways = [(end, opening + self.source[place:end] + self._between) for end in ends]
        texts = (
            head + self._nearest(start, end, 0, 0, len(self._names_of(start, end))) + self.source[end:]
            for end, head in ways
        )
        return min(texts, key=lambda text: (len(text), text))

    def _nearest(self, start: int, stop: int, depth: int, low: int, high: int) -> bytes:
        """The shortest end of a name."""
        key = (-1, -1, depth, low, high) if self._candidates is None else (start, stop, depth, low, high)
        found = self._best.get(key)
        if found is None:
            ways = (name[depth:] for name in self._names_of(start, stop)[low:high])
            found = self._best[key] = min(ways, key=lambda way: (len(way), way))
        return found

    def row(self, at: _State, tree: TokenTree) -> NDArray[Any] | None:
        """By walking."""
        return None

    def unfinished(self, at: _State, tree: TokenTree, limit: int) -> Iterable[int] | None:
        """None of them while there is room for the rest of the source and one more mention."""
        if self._candidates is not None:
            return None
        left = len(self.source) - min(place for _, place, *_ in at)
        markup = len(self._before) + len(self._between)
        return () if limit >= left + markup + max(map(len, self._all)) else None

    def expected(self, at: _State) -> str:
        """The next bytes of the source, of markup or of names."""
        following = self.following(at)
        end = "the end of the text" if self.may_end(at) else ""
        return " or ".join(part for part in (name_bytes(following) if following else "", end) if part)


def entity_mentions(
    source: str,
    entities: Iterable[str],
    vocabulary: Vocabulary,
    *,
    candidates: Callable[[str], Iterable[str]] | None = None,
    markup: Markup | None = None,
    max_mention: int = 100,
    limits: Limits | None = None,
) -> LiveConstraint:
    """``source`` copied exactly, with any number of mentions ``[mention](entity)`` marked in it.

    ``entities`` are the names there are; ``candidates`` gives those of one mention instead (none: it is no mention),
    and must always give the same.  ``markup`` replaces the brackets; ``max_mention`` is the longest mention in
    characters.  Mentions do not nest.  Names alone, without a source, are ``guided.choice``.

    Raises `UnsatisfiableError` without names, `GrammarError` for empty names or markup, or for lone surrogates.
    """
    names = tuple(entities)
    markup = markup or Markup()
    for what, texts in (("the source", (source,)), ("a name", names), ("the markup", _parts(markup))):
        for text in texts:
            if any(0xD800 <= ord(character) < 0xE000 for character in text):
                raise GrammarError(f"{what} holds a lone surrogate, which no tokenizer can spell", remedy="Remove it.")
            if not text and what != "the source":
                raise GrammarError(f"{what} is empty", remedy="Give at least one character.")
    if max_mention < 1:
        raise GrammarError(f"max_mention is {max_mention}", remedy="Give 1 or more.")
    if not names and candidates is None:
        raise UnsatisfiableError("there are no names to link mentions to", remedy="Give at least one.")
    if not source:
        raise GrammarError("the source is empty, so there is nothing to generate", remedy="Give some text.")
    return LiveConstraint(MentionText(source, names, candidates, markup, max_mention), vocabulary, limits)


def _parts(markup: Markup) -> tuple[str, str, str]:
    return (markup.before, markup.between, markup.behind)
