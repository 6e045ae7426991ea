"""The names or items that an open container already holds: ordered sets of byte strings that grow by sharing.

A set is a treap whose nodes never change: adding a key copies the path to it, some fourteen nodes among ten thousand,
and leaves the old set as it was.  Priorities are hashes of the keys, so no order of adding makes it deep.  The order of
the keys makes every question about a common beginning one descent.

Source: Aragon and Seidel, "Randomized search trees", 1989.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from guided.collection import untrack

Link: TypeAlias = "tuple[bytes, Link | None]"
"""The key that was added last, and those before it."""


class _Node(NamedTuple):
    key: bytes
    priority: int
    left: _Node | None
    right: _Node | None


class UsedKeys:
    """A set of byte strings; a set and a key give the same larger set each time."""

    __slots__ = ("_after", "_root", "link", "size", "tokens")

    def __init__(
        self, root: _Node | None = None, size: int = 0, tokens: tuple[int, ...] = (), link: Link | None = None
    ) -> None:
        self._root = root
        self.link = link
        """The keys in the order in which they were added; the same object for what was added before."""
        self.size = size
        self.tokens = tokens
        """What was said of the keys when they were added: the tokens that hold one of them."""
        self._after: dict[bytes, UsedKeys] = {}

    def __contains__(self, key: bytes) -> bool:
        node = self._root
        while node is not None:
            if key == node.key:
                return True
            node = node.left if key < node.key else node.right
        return False

    def with_key(self, key: bytes, tokens: tuple[int, ...] = ()) -> UsedKeys:
        """The set with one key more, which must be new, and with the tokens that hold it."""
        found = self._after.get(key)
        if found is None:
            tokens = tuple(sorted({*self.tokens, *tokens})) if tokens else self.tokens
            link = (key, self.link)
            untrack(link)
            found = self._after[key] = UsedKeys(_with(self._root, key), self.size + 1, tokens, link)
            untrack(found)
        return found

    def first_from(self, key: bytes) -> bytes | None:
        """The least key that is not less than this one."""
        found: bytes | None = None
        node = self._root
        while node is not None:
            if node.key < key:
                node = node.right
            else:
                found = node.key
                node = node.left
        return found

    def begins(self, prefix: bytes) -> bool:
        """Does some key begin so?"""
        found = self.first_from(prefix)
        return found is not None and found.startswith(prefix)

    def next_bytes(self, prefix: bytes) -> set[int]:
        """The bytes that may follow a beginning."""
        found: set[int] = set()
        size = len(prefix)
        at = prefix + b"\0"
        while (key := self.first_from(at)) is not None and key.startswith(prefix):
            found.add(key[size])
            if key[size] == 0xFF:
                break
            at = prefix + bytes((key[size] + 1,))
        return found

    def beginning(self, prefix: bytes) -> Iterator[bytes]:
        """All keys that begin so, in order."""
        stack: list[_Node] = []
        node = self._root
        while node is not None or stack:
            while node is not None:
                if node.key < prefix:
                    node = node.right
                else:
                    stack.append(node)
                    node = node.left
            if not stack:
                return
            node = stack.pop()
            if not node.key.startswith(prefix):
                return
            yield node.key
            node = node.right


def _with(root: _Node | None, key: bytes) -> _Node:
    """The tree with the key: the path down to where its priority puts it, what is below split around it."""
    priority = hash(key)
    path: list[tuple[_Node, bool]] = []
    node = root
    while node is not None and (node.priority, node.key) > (priority, key):
        goes_left = key < node.key
        path.append((node, goes_left))
        node = node.left if goes_left else node.right
    made = _node(key, priority, *_split(node, key))
    for parent, goes_left in reversed(path):
        made = _with_left(parent, made) if goes_left else _with_right(parent, made)
    return made


def _split(node: _Node | None, key: bytes) -> tuple[_Node | None, _Node | None]:
    """The trees of the smaller and of the larger keys."""
    path: list[tuple[_Node, bool]] = []
    while node is not None:
        goes_left = key < node.key
        path.append((node, goes_left))
        node = node.left if goes_left else node.right
    smaller: _Node | None = None
    larger: _Node | None = None
    for parent, goes_left in reversed(path):
        if goes_left:
            larger = _with_left(parent, larger)
        else:
            smaller = _with_right(parent, smaller)
    return smaller, larger


def _node(key: bytes, priority: int, left: _Node | None, right: _Node | None) -> _Node:
    made = _Node(key, priority, left, right)
    # Trees have no cycles.
    untrack(made)
    return made


def _with_left(node: _Node, left: _Node | None) -> _Node:
    return _node(node.key, node.priority, left, node.right)


def _with_right(node: _Node, right: _Node | None) -> _Node:
    return _node(node.key, node.priority, node.left, right)
