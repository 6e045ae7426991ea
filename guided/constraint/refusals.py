"""Masks of a checked machine: the automaton's, less the tokens that would repeat something or could only come to it.

A token is refused somewhere along its bytes.  As long as what is being read is consistent with something seen
(`guided.constraint.likeness`) the vocabulary's trie is walked with the checker, which meets few tokens; where the text
has gone its own way only a token that goes on to the next name or item can still be refused, and there are so few that
each is tried.
"""

from __future__ import annotations

import re
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from guided.constraint.json_text import Mode, Text
from guided.constraint.machine import tokens_of
from guided.kernels.layout import DEAD
from guided.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from guided.constraint.checked import CheckedMachine

_ROWS = 256
"""Masks of the automaton alone that are kept, since states that differ in what they hold share them."""

_NAME = rb",\s*(?:\"|$)"
_PATTERNS = {
    # (are items compared, where the token begins): tokens that go on to a next name (or item), or end before one.
    (False, "idle"): re.compile(rb'"[^,]*"[\s\S]*' + _NAME),
    (False, "between"): re.compile(_NAME),
    (False, "string"): re.compile(rb'"[\s\S]*' + _NAME),
    (True, "idle"): re.compile(rb'\[[\s\S]*,|"[^,]*"[\s\S]*' + _NAME),
    (True, "between"): re.compile(rb","),
    (True, "string"): re.compile(rb'"[\s\S]*,'),
}


@dataclass(frozen=True)
class _Refused:
    """Of one state: tokens that the automaton allows and the checker does not, and tokens that end in doubt."""

    refused: NDArray[np.int64]
    doubtful: NDArray[np.int64]


class Refusals:
    """Masks of one machine's states."""

    def __init__(self, machine: CheckedMachine) -> None:
        self._machine = machine
        self._going_on = _GoingOn.of(machine.vocabulary)
        self._rows: OrderedDict[int, NDArray[np.uint32]] = OrderedDict()
        self._found: dict[int, _Refused] = {}

    def mask(self, state: int, limit: int) -> NDArray[np.uint32]:
        """See `CheckedMachine.mask`."""
        own, _ = self._machine.split(state)
        found = self.of(state)
        row = self._row(own).copy() if limit < 0 else self._machine.inner.mask(own, limit).copy()
        _clear(row, found.refused)
        if limit >= 0:
            self._machine.completions.drop_far(state, row, found.doubtful, limit)
        return row

    def _row(self, own: int) -> NDArray[np.uint32]:
        row = self._rows.get(own)
        if row is None:
            row = self._rows[own] = self._machine.inner.mask(own).copy()
            if len(self._rows) > _ROWS:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(own)
        return row

    def of(self, state: int) -> _Refused:
        """What is refused in a state, remembered."""
        found = self._found.get(state)
        if found is None:
            found = self._found[state] = self._find(state)
        return found

    def _find(self, state: int) -> _Refused:
        machine = self._machine
        own, text = machine.split(state)
        row = self._row(own)
        refused: list[int] = []
        doubtful: list[int] = []
        if not machine.vocabulary.byte_complete and text is not None:
            tried = np.asarray(tokens_of(row), np.int64)
        else:
            if text is not None and machine.likeness.consistent(text):
                self._walk(own, text, row, refused, doubtful)
            mode = "idle" if text is None else "string" if _in_string(text) else "between"
            tried = self._going_on.tokens(machine.compares, mode)
            tried = tried[_bits(row, tried)]
        for token in tried.tolist():
            (refused if machine.advance_token(state, token) == DEAD else doubtful).append(token)
        if not refused and not doubtful:
            return _NOTHING
        return _Refused(np.unique(np.asarray(refused, np.int64)), np.unique(np.asarray(doubtful, np.int64)))

    def _walk(self, state: int, text: Text, row: NDArray[np.uint32], refused: list[int], doubtful: list[int]) -> None:
        """Follow the trie as long as the text stays consistent with something seen."""
        machine = self._machine
        trie = machine.vocabulary.trie
        byte, end, offset, ids = trie.byte, trie.end, trie.token_offset, trie.token_ids
        stack: list[tuple[int, int, int, Text]] = [(1, trie.n_nodes, state, text)]
        while stack:
            node, stop, at, now = stack.pop()
            possible = set(machine.look.next_bytes(at))
            while node < stop:
                last = int(end[node])
                value = int(byte[node])
                if value in possible:
                    after, then = machine.step(at, now, value)
                    if after == DEAD:
                        if machine.byte_step(at, value) != DEAD:
                            refused.extend(ids[offset[node] : offset[last]].tolist())
                    elif then is not None and machine.likeness.consistent(then):
                        if offset[node] < offset[node + 1]:
                            if not machine.look.alive(after, then):
                                refused.extend(ids[offset[node] : offset[last]].tolist())
                                node = last
                                continue
                            doubtful.extend(ids[offset[node] : offset[node + 1]].tolist())
                        if last > node + 1:
                            stack.append((node + 1, last, after, then))
                node = last


class _GoingOn:
    """The tokens of a vocabulary that may reach from one name or item into the next."""

    _all: ClassVar[weakref.WeakKeyDictionary[Vocabulary, _GoingOn]] = weakref.WeakKeyDictionary()

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> _GoingOn:
        found = cls._all.get(vocabulary)
        if found is None:
            found = cls._all[vocabulary] = cls(vocabulary)
        return found

    def __init__(self, vocabulary: Vocabulary) -> None:
        offsets = vocabulary.offsets
        commas = np.concatenate([np.zeros(1, np.int64), np.cumsum(vocabulary.data == 0x2C)])
        self._with_comma = [
            (token, vocabulary.token_bytes(token) or b"")
            for token in np.flatnonzero(commas[offsets[1:]] > commas[offsets[:-1]]).tolist()
        ]
        self._lists: dict[tuple[bool, str], NDArray[np.int64]] = {}

    def tokens(self, compares: bool, mode: str) -> NDArray[np.int64]:
        key = (compares, mode)
        found = self._lists.get(key)
        if found is None:
            pattern = _PATTERNS[key]
            chosen = [token for token, data in self._with_comma if pattern.search(data)]
            found = self._lists[key] = np.asarray(chosen, np.int64)
        return found


def _in_string(text: Text) -> bool:
    return text.mode not in (Mode.BETWEEN, Mode.SCALAR)


def _bits(row: NDArray[np.uint32], tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
    held: NDArray[np.bool_] = (row[tokens >> 5] >> (tokens & 31).astype(np.uint32) & 1).astype(np.bool_)
    return held


def _clear(row: NDArray[np.uint32], tokens: NDArray[np.int64]) -> None:
    if tokens.size:
        np.bitwise_and.at(row, tokens >> 5, ~(np.uint32(1) << (tokens & 31).astype(np.uint32)))


_NOTHING = _Refused(np.zeros(0, np.int64), np.zeros(0, np.int64))
