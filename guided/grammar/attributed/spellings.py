"""Texts that literals are held to by a regular expression, read as `Words` are: a prefix at a time."""

from __future__ import annotations

from functools import cached_property, lru_cache

from guided.grammar.attributed.lexis import NUMBER
from guided.grammar.regex.lower import lower
from guided.grammar.regex.parse import parse
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.decide import shortest
from guided.grammar.regular.derivative import derivative, edges
from guided.grammar.regular.expr import Expr

__all__ = ["NUMBERS", "Spellings"]


_LONGER = 24
"""Bytes by which a short end may be longer than a shortest text: dates with times and zones are such."""
_MOST_STATES = 256
"""Those of dates with times are 100 or so, and those of JSON 764."""


class Spellings:
    """The texts that a regular expression matches from end to end; told apart by identity."""

    def __init__(self, pattern: str) -> None:
        self._all = lower(parse(pattern), Utf8())
        first = shortest(self._all)
        assert first is not None, pattern
        self.sorted: tuple[bytes, ...] = (first,)
        """An example, as the first that a search for a short text tries."""
        self.shortest_first: tuple[str, ...] = (first.decode(),)
        self.members: frozenset[str] = frozenset(self.shortest_first)
        """The same."""
        self.longest = len(first) + _LONGER
        """More bytes than the short end of any beginning has."""
        self.longest_quoted = self.longest * (2 if "'" in pattern else 1)
        """The same in quotes, where those within are doubled."""
        self.behind = lru_cache(maxsize=65536)(self._find)

    def _find(self, prefix: bytes) -> Expr | None:
        """What may follow a prefix."""
        if not prefix:
            return self._all
        before = self.behind(prefix[:-1])
        return None if before is None else derivative(before, prefix[-1])

    def __contains__(self, word: str) -> bool:
        behind = self.behind(word.encode("utf-8", "surrogatepass"))
        return behind is not None and behind.nullable

    def __len__(self) -> int:
        return 1

    def begins(self, prefix: bytes) -> bool:
        """Does any text begin so?

        >>> Spellings("[0-9]{4}-[0-9]{2}").begins(b"2020-")
        True
        """
        return self.behind(prefix) is not None

    @cached_property
    def endings(self) -> frozenset[bytes] | None:
        """What `ending` gives for all beginnings, None where these are too different to try."""
        states = {self._all: None}
        work = [self._all]
        while work:
            for _, _, state in edges(work.pop()):
                if state not in states:
                    states[state] = None
                    work.append(state)
            if len(states) > _MOST_STATES:
                return None
        return frozenset(end for end in map(shortest, states) if end is not None)

    def ending(self, prefix: bytes) -> bytes | None:
        """A short text that ends one that begins so."""
        behind = self.behind(prefix)
        return None if behind is None else shortest(behind)


NUMBERS = Spellings(NUMBER)
"""All that a number may begin with."""
