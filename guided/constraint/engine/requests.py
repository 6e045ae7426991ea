"""Who answers what kernels ask: what each kind of request means, its fields, and the buffer that holds requests.

================== ====================== ==========================================================================
kind               fields                 answer
================== ====================== ==========================================================================
`EXPAND_STATE`     lexer state            its edges (`StateTable`)
`MEASURE_STATE`    lexer state            the fewest bytes from it to the end of a match (`automata.lexer.distances`)
`NEED_PARTIAL`     place in an escape     a lexer state of its own for it (`automata.lexer.spelling`)
`EXPAND_NODE`      node                   its edges (`RuleGraph`)
`COMPOSE`          continuation           the node that stands for its nodes (`automata.rules.composites`)
`OPEN_BOUNDARY`    continuation           the terminals that may come there
`JOIN_OBLIGATIONS` obligation, obligation the obligation that holds when both do
`COMPARE`          obligation, obligation whether the second forbids whatever the first does
`PRICE_NODES`      node, rule + 1 or 0    the tokens that lead from it to the end of its rule (`TokenCosts`)
`PRICE_TERMINAL`   lexer state            the tokens that are enough for the terminal that begins in it
`WANT_START`       LALR state             the lexer of all its candidates (`LalrStacks`)
`WANT_UNDER`       state, obligation      the lexer state that goes on under an obligation
`WANT_VERDICT`     lexer state            the terminals of which one must be accepted so that a token may end there
`WANT_REST`        lexer state            the bytes that are enough to end terminals from it
`WANT_WAYS`        below, above           how an LALR state above another is left; both plus one
`NEED_EFFECT`      low, high, lexer state what the tokens of a trie range do from the state (`TokenEffects`)
`NEED_NEAR`        low, high, lexer state how far those that stay inside are from the end of the terminal
`NEED_LEXED`       low, high, lexer state as `NEED_EFFECT`, apart by what an LALR parser is asked about them
`NEED_LEXED_NEAR`  low, high, lexer state the same, apart by their prices as well
`GROW_MACHINE`                            room for more continuations and states
`GROW_SCRATCH`                            room in the working memory
`GROW_SEGMENTS`                           room for more kept parts of masks
`GROW_LISTED`                             room for more tokens listed with prices
`GROW_EXITS`                              room for more ends of matches in a walk over tokens
`GROW_NODES`                              room for more nodes that are merged into a trie
`GROW_TRIES`                              room for more tries
`GROW_FANS`                               room for more tables of children
`OUT_OF_FUEL`                             none: `LimitError`, where the kernel had all the work that a step may take
================== ====================== ==========================================================================

A machine's are answered by `guided.constraint.engine.answers`; `EXPAND_STATE` and `GROW_EXITS` of walks over tokens by
`guided.constraint.effects.surveys`, `GROW_NODES`, `GROW_TRIES` and `GROW_FANS` by
`guided.constraint.effects.token_tries`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from guided.kernels.data.requests import Requests

__all__ = ["RequestBuffer"]

Owner = TypeVar("Owner")

MOST = 4096
"""Requests of one round, however many there are to make: comparing each with all takes 10 ms, answering a tenth of a
second."""


class RequestBuffer:
    """The requests of the kernels that share a table of addresses."""

    def __init__(self, room: int) -> None:
        """With ``room`` for so many requests of one round."""
        self.arrays = Requests(np.zeros((room, 4), np.int64), np.zeros(1, np.int64))

    @property
    def is_full(self) -> bool:
        """Has a kernel returned since there was no room for more?"""
        return bool(self.arrays.count[0] == len(self.arrays.entries))

    def grow(self) -> None:
        """Make room for twice as many requests, up to `MOST`; the arrays are replaced."""
        room = min(2 * len(self.arrays.entries), MOST)
        self.arrays = Requests(np.zeros((room, 4), np.int64), np.zeros(1, np.int64))

    def take(self) -> dict[int, list[list[int]]]:
        """The fields of the requests, three numbers each, by kind; the buffer is empty then."""
        n = int(self.arrays.count[0])
        self.arrays.count[0] = 0
        found: dict[int, list[list[int]]] = {}
        for kind, *fields in self.arrays.entries[:n].tolist():
            found.setdefault(kind, []).append(fields)
        return found

    def serve(
        self, owner: Owner, answers: Mapping[int, Callable[[Owner, list[list[int]]], None]], ignored: int = 0
    ) -> bool:
        """Answer all requests: those of a kind together, kinds in the order of ``answers``, less an ``ignored`` one.

        Were there any?
        """
        asked = self.take()
        asked.pop(ignored, None)
        for kind, answer in answers.items():
            if kind in asked:
                answer(owner, asked[kind])
        return bool(asked)
