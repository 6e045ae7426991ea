"""`Prefixes`: token sequences as ints, interned by content, so that equal prefixes are the same number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Prefixes"]


class Prefixes:
    """A trie of token sequences: a prefix is the number of its node, and equal ones are equal numbers.

    There may be several roots, for sequences that are never the same whatever their tokens are.  Memory: one entry a
    distinct prefix met since `forget`, until which numbers stay what they are.

    >>> from guided.lm import Prefixes
    >>> prefixes = Prefixes()
    >>> root = prefixes.root()
    >>> one, other = prefixes.after(root, [5, 6])[-1], prefixes.after(root, [5, 7])[-1]
    >>> prefixes.tokens(prefixes.common(one, other)), prefixes.child(prefixes.parent(one), 6) == one
    ((5,), True)
    """

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._token: list[int] = []
        self._depth: list[int] = []
        self._children: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._parent)

    def root(self) -> int:
        """A new empty sequence, unlike all others."""
        self._parent.append(-1)
        self._token.append(-1)
        self._depth.append(0)
        return len(self._parent) - 1

    def child(self, prefix: int, token: int) -> int:
        """The prefix one token longer."""
        key = (prefix, token)
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = len(self._parent)
            self._parent.append(prefix)
            self._token.append(token)
            self._depth.append(self._depth[prefix] + 1)
        return found

    def after(self, prefix: int, tokens: Sequence[int]) -> list[int]:
        """The prefixes after each of the tokens."""
        found: list[int] = []
        for token in tokens:
            prefix = self.child(prefix, token)
            found.append(prefix)
        return found

    def parent(self, prefix: int) -> int:
        """The prefix one token shorter; -1 for a root."""
        return self._parent[prefix]

    def token(self, prefix: int) -> int:
        """The last token; -1 for a root."""
        return self._token[prefix]

    def depth(self, prefix: int) -> int:
        """Number of tokens."""
        return self._depth[prefix]

    def cut(self, prefix: int, depth: int) -> int:
        """The first ``depth`` tokens of a prefix."""
        while self._depth[prefix] > depth:
            prefix = self._parent[prefix]
        return prefix

    def common(self, one: int, other: int) -> int:
        """The longest common prefix; -1 where the roots differ."""
        while one != other:
            if self._depth[one] >= self._depth[other]:
                one = self._parent[one]
            else:
                other = self._parent[other]
            if one < 0 or other < 0:
                return -1
        return one

    def forget(self, kept: Iterable[int]) -> dict[int, int]:
        """Forget all prefixes but these and their beginnings, and number those anew: the new numbers by the old."""
        needed: set[int] = set()
        for prefix in kept:
            while prefix >= 0 and prefix not in needed:
                needed.add(prefix)
                prefix = self._parent[prefix]
        old = sorted(needed)  # parents before their children, as they were made
        numbers = {prefix: number for number, prefix in enumerate(old)}
        self._parent = [numbers.get(self._parent[prefix], -1) for prefix in old]
        self._token = [self._token[prefix] for prefix in old]
        self._depth = [self._depth[prefix] for prefix in old]
        self._children = {
            (parent, token): number
            for number, (parent, token) in enumerate(zip(self._parent, self._token, strict=True))
            if parent >= 0
        }
        return numbers

    def tokens(self, prefix: int) -> tuple[int, ...]:
        """All tokens of a prefix, first one first."""
        found: list[int] = []
        while self._depth[prefix]:
            found.append(self._token[prefix])
            prefix = self._parent[prefix]
        return tuple(reversed(found))
