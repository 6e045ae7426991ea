"""The names or items that an open container already holds: sets that grow by one and keep what they were.

All sets that grew out of each other share one log; a set is how much of the log it sees.  So adding costs what the new
entry costs, whatever the size, and going back is keeping the old set.  Only a set that grows in a second direction
copies its part of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from guided.constraint.json_values import Number, NumberPrefix, NumberValue, Values

_NEVER = 1 << 60


class Node:
    """A place in a trie of byte strings, with when something first came through and when something first ended here."""

    __slots__ = ("children", "end", "first", "powers")

    def __init__(self, first: int) -> None:
        self.children: dict[int, Node] = {}
        self.first = first
        self.end = _NEVER
        self.powers: list[tuple[int, int]] = []
        """For numbers with these digits: (power of ten, when)."""


class _Log:
    """Entries in the order in which they came, and what is needed to find them by their beginning."""

    def __init__(self) -> None:
        self.index: dict[object, int] = {}
        self.strings = Node(_NEVER)
        self.numbers = Node(_NEVER)
        self.zero = _NEVER
        self.composite: list[tuple[int, int]] = []
        """(when, id) of arrays and objects."""
        self.built = 0

    def build(self, values: Values | None) -> None:
        """Bring the tries up to date; with ``values`` entries are ids, else byte strings."""
        if self.built == len(self.index):
            return
        entries = list(self.index)
        for at in range(self.built, len(entries)):
            entry = entries[at]
            content = entry if values is None else values.content[cast(int, entry)]
            if isinstance(content, bytes):
                node = _insert(self.strings, content, at)
                node.end = min(node.end, at)
            elif isinstance(content, NumberValue):
                negative, digits, power = content.value
                if not digits:
                    self.zero = min(self.zero, at)
                else:
                    node = _insert(self.numbers, (("-" if negative else "+") + digits).encode(), at)
                    node.end = min(node.end, at)
                    node.powers.append((power, at))
            elif isinstance(content, list | dict):
                self.composite.append((at, cast(int, entry)))
        self.built = len(entries)


def _insert(node: Node, text: bytes, at: int) -> Node:
    node.first = min(node.first, at)
    for byte in text:
        after = node.children.get(byte)
        if after is None:
            after = node.children[byte] = Node(at)
        node = after
    return node


class Seen:
    """A set of names (`bytes`) or of values (ids); equal ways of making one give the same object."""

    __slots__ = ("_after", "_log", "size")

    def __init__(self, log: _Log | None = None, size: int = 0) -> None:
        self._log = log or _Log()
        self.size = size
        self._after: dict[object, Seen] = {}

    def __contains__(self, entry: object) -> bool:
        return self._log.index.get(entry, _NEVER) < self.size

    def with_entry(self, entry: object) -> Seen:
        """The set with one entry more, which must be new."""
        found = self._after.get(entry)
        if found is None:
            log = self._log
            if len(log.index) != self.size:
                log = _Log()
                for old in list(self._log.index)[: self.size]:
                    log.index[old] = len(log.index)
            log.index[entry] = self.size
            found = self._after[entry] = Seen(log, self.size + 1)
        return found

    def string_node(self, prefix: bytes, values: Values | None) -> Node | None:
        """Where the strings that begin so go on; None when there are none.  Nodes below may not be in this set."""
        self._log.build(values)
        node: Node | None = self._log.strings
        for byte in prefix:
            node = node.children.get(byte) if node is not None else None
            if node is None or node.first >= self.size:
                return None
        return node if node is not None and node.first < self.size else None

    def has_number(self, prefix: NumberPrefix, values: Values) -> bool:
        """May a number that begins so become one of the set?"""
        self._log.build(values)
        size, numbers = self.size, self._log.numbers
        if not prefix.digits:
            if self._log.zero < size:
                return True
            node = numbers.children.get(0x2D if prefix.negative else 0x2B)
            return prefix.exponent is None and node is not None and node.first < size
        path = (("-" if prefix.negative else "+") + prefix.digits).encode()
        stripped = path.rstrip(b"0")
        node = numbers
        for at, byte in enumerate(path):
            after = node.children.get(byte)
            if after is None or after.first >= size:
                return at >= len(stripped) and self._same_digits(numbers, stripped, prefix)
            node = after
        return prefix.exponent is None or self._same_digits(numbers, stripped, prefix)

    def _same_digits(self, node: Node, path: bytes, prefix: NumberPrefix) -> bool:
        for byte in path:
            after = node.children.get(byte)
            if after is None:
                return False
            node = after
        sign, digits = prefix.negative, path[1:].decode()
        return any(when < self.size and prefix.may_become((sign, digits, power)) for power, when in node.powers)

    def composites(self, values: Values) -> Iterator[int]:
        """The arrays and objects of the set."""
        self._log.build(values)
        for when, entry in self._log.composite:
            if when < self.size:
                yield entry


__all__ = ["Node", "Number", "Seen"]
