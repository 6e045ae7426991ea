"""Units that particles grow by before they are compared: words, lines, members of JSON, or what a function says.

Particles that have drawn different amounts of text are compared unfairly: after "the" the next word is still to pay.
Those that have ended a unit wait for the others, and resampling compares units with units.  Where a unit ends depends
on a particle's own text alone, so weights stay proper whatever the function says.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from guided.infer.populations.prefixes import PrefixTree
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Unit", "Units", "json_members", "lines", "words"]

Unit = Callable[[bytes, bytes], bool]
"""``unit(before, added)``: does a unit end in the bytes of the last token, which came after those before?"""

_WORD_END = re.compile(rb"[\w\x80-\xff][^\w\x80-\xff]")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)


def words(before: bytes, added: bytes) -> bool:
    """Something that belongs to no word comes after something that does; bytes above ASCII belong to words.

    >>> words(b"the", b" quick"), words(b"the ", b"quick"), words(b"qui", b"ck.")
    (True, False, True)
    """
    return _WORD_END.search(before[-1:] + added) is not None


def lines(before: bytes, added: bytes) -> bool:
    r"""A line break came.

    >>> lines(b"a = 1", b"\n"), lines(b"a = ", b"1")
    (True, False)
    """
    return b"\n" in added


def json_members(before: bytes, added: bytes) -> bool:
    """A member of an object or array ended, by a comma or a closing bracket outside of strings.

    >>> json_members(b'{"a": "x, ', b'y"'), json_members(b'{"a": "x"', b', "b'), json_members(b'{"a": 1', b'}')
    (False, True, True)
    """
    return _members(before + added) > _members(before)


def _members(data: bytes) -> int:
    bare = _STRING.sub(b"", data)
    return bare.count(b",") + bare.count(b"]") + bare.count(b"}")


class Units:
    """A unit, asked about nodes of a tree of prefixes."""

    def __init__(self, unit: Unit, vocabulary: Vocabulary, tree: PrefixTree) -> None:
        self._unit = unit
        self._vocabulary = vocabulary
        self._tree = tree
        self._data: dict[int, bytes] = {0: b""}

    def ends(self, node: int) -> bool:
        """Does a unit end with the last token of a node?"""
        tree = self._tree
        before = self._bytes(tree.parents[node])
        added = self._vocabulary.token_bytes(tree.last[node]) or b""
        self._data[node] = before + added
        return self._unit(before, added)

    def _bytes(self, node: int) -> bytes:
        found = self._data.get(node)
        if found is None:
            found = b"".join(self._vocabulary.token_bytes(token) or b"" for token in self._tree.tokens(node))
        return found
