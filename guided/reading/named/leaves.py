"""What the slots of a rule read at once: a text of a regular language, or of a grammar inside."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from guided.constraint.compile import compile as compile_constraint
from guided.constraint.protocol import Constrains
from guided.grammar.ir import Grammar
from guided.grammar.limited.unlimited import unlimited
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr
from guided.vocab.vocabulary import Vocabulary

__all__ = ["GrammarLeaf", "RegularLeaf"]

_ALL_BYTES = (1 << 256) - 1


class RegularLeaf:
    """A regular language; ``is_ignored``: it is text that stands between lexemes."""

    def __init__(self, language: Expr, is_ignored: bool = False) -> None:
        self.language = language
        self.is_ignored = is_ignored
        self._targets: dict[Expr, list[Expr | None]] = {}

    @property
    def first(self) -> int:
        """The bytes with which its texts may begin, as a bit set."""
        return sum(1 << byte for byte, target in enumerate(self._row(self.language)) if target is not None)

    @property
    def may_be_empty(self) -> bool:
        """Is the empty text one of its texts?"""
        return self.language.nullable

    def ends(self, data: bytes, at: int) -> tuple[list[int], int]:
        """Where texts that begin ``at`` may end, and the first place at which no text of it goes on."""
        found = [at] if self.language.nullable else []
        state = self.language
        for place in range(at, len(data)):
            row = self._targets.get(state)
            if row is None:
                row = self._row(state)
            target = row[data[place]]
            if target is None:
                return found, place
            state = target
            if state.nullable:
                found.append(place + 1)
        return found, len(data)

    def matches(self, data: bytes) -> bool:
        """Is it one of its texts?"""
        return self.ends(data, 0)[0][-1:] == [len(data)]

    def _row(self, state: Expr) -> list[Expr | None]:
        row: list[Expr | None] = [None] * 256
        for low, high, target in edges(state):
            row[low : high + 1] = [target] * (high + 1 - low)
        self._targets[state] = row
        return row


class GrammarLeaf:
    """A grammar that names no parts, such as a JSON Schema: one text of it."""

    is_ignored = False

    def __init__(self, grammar: Grammar) -> None:
        # A value without the space around it has the key of the grammar with it.
        self._constraint: Constrains = compile_constraint(unlimited(replace(grammar, key=None)), _bytes())
        row = np.zeros(self._constraint.vocabulary.n_words, np.uint32)
        self._constraint.fill_mask(self._constraint.start, row)
        self.first = int.from_bytes(row.tobytes(), "little") & _ALL_BYTES
        self.may_be_empty = self._constraint.is_accepting(self._constraint.start)

    def ends(self, data: bytes, at: int) -> tuple[list[int], int]:
        """As `RegularLeaf.ends`."""
        constraint = self._constraint
        state = constraint.start
        found = [at] if self.may_be_empty else []
        for place in range(at, len(data)):
            state = constraint.advance(state, data[place])
            if not state:
                return found, place
            if constraint.is_accepting(state):
                found.append(place + 1)
        return found, len(data)


@lru_cache(maxsize=1)
def _bytes() -> Vocabulary:
    """A token for every byte."""
    return Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
