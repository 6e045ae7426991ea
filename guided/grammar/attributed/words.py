"""Sets of words that texts are held to: sorted, so that what may follow a prefix is found by bisection."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["Words", "numbers_between", "union", "words_of"]


class Words:
    """Words, each once, in the order of their bytes; equal sets are one object (`words_of`)."""

    __slots__ = ("_shortest_first", "longest", "longest_quoted", "members", "sorted")

    def __init__(self, members: frozenset[str]) -> None:
        self.members = members
        self.sorted: tuple[bytes, ...] = tuple(sorted(word.encode("utf-8", "surrogatepass") for word in members))
        self.longest = max(map(len, self.sorted), default=0)
        """The bytes of the longest word."""
        self.longest_quoted = max((len(word) + word.count(b"'") for word in self.sorted), default=0)
        """The same in quotes, where those within are doubled."""
        self._shortest_first: tuple[str, ...] | None = None

    def __contains__(self, word: str) -> bool:
        return word in self.members

    def __len__(self) -> int:
        return len(self.sorted)

    @property
    def shortest_first(self) -> tuple[str, ...]:
        """The words by their length; those of one length in order.

        >>> words_of(["11", "2", "1"]).shortest_first
        ('1', '2', '11')
        """
        if self._shortest_first is None:
            self._shortest_first = tuple(sorted(self.members, key=lambda word: (len(word), word)))
        return self._shortest_first

    def begins(self, prefix: bytes) -> bool:
        """Does any word begin so?

        >>> words_of(["age", "name"]).begins(b"na")
        True
        """
        at = bisect_left(self.sorted, prefix)
        return at < len(self.sorted) and self.sorted[at].startswith(prefix)

    def rests(self, prefix: bytes) -> list[str]:
        """What words that begin so have behind it."""
        low, high = self.range_of(prefix)
        size = len(prefix)
        return [word[size:].decode("utf-8", "replace") for word in self.sorted[low:high]]

    def ending(self, prefix: bytes) -> bytes | None:
        """What the shortest word that begins so has behind it.

        >>> words_of(["age", "ago", "name"]).ending(b"n")
        b'ame'
        """
        found = self.starting(prefix, 1)
        return found[0][len(prefix) :] if found else None

    def range_of(self, prefix: bytes) -> tuple[int, int]:
        """Where in ``sorted`` those are that begin so: from the first number up to, not with, the second."""
        # No byte of UTF-8 is 0xFF, so this is behind all words that begin so.
        return bisect_left(self.sorted, prefix), bisect_left(self.sorted, prefix + b"\xff")

    def starting(self, prefix: bytes, most: int) -> tuple[bytes, ...]:
        """The shortest ``most`` of the first few words that begin so."""
        at = bisect_left(self.sorted, prefix)
        found: list[bytes] = []
        while at < len(self.sorted) and self.sorted[at].startswith(prefix) and len(found) < 64 * most:
            found.append(self.sorted[at])
            at += 1
        return tuple(sorted(found, key=len)[:most])


@lru_cache(maxsize=65536)
def _of(members: frozenset[str]) -> Words:
    return Words(members)


def words_of(members: Iterable[str]) -> Words:
    """The set of these words."""
    return _of(members if isinstance(members, frozenset) else frozenset(members))


@lru_cache(maxsize=1024)
def numbers_between(low: int, high: int) -> Words:
    """The whole numbers from one to another.

    >>> numbers_between(9, 11).shortest_first
    ('9', '10', '11')
    """
    return words_of(map(str, range(low, high + 1)))


@lru_cache(maxsize=65536)
def union(sets: frozenset[Words]) -> Words:
    """The words of several sets."""
    return words_of(frozenset().union(*(words.members for words in sets)))
