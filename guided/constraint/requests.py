"""Who answers what kernels ask: a table of one function for each kind of request.

=============== ===================== ================================================================================
kind            fields                what is done
=============== ===================== ================================================================================
`EXPAND_STATE`  lexer state           find its edges, and those of states around
`GROW_EXITS`                          room for more ends of matches in a walk over tokens
`GROW_NODES`                          room for more nodes that are merged into a trie
`GROW_TRIES`                          room for more tries
=============== ===================== ================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from guided.kernels.requests import Requests

__all__ = ["RequestBuffer"]

Owner = TypeVar("Owner")


class RequestBuffer:
    """The requests of the kernels that share a table of addresses."""

    def __init__(self, room: int) -> None:
        """With ``room`` for so many requests of one round."""
        self.arrays = Requests(np.zeros((room, 4), np.int64), np.zeros(1, np.int64))

    def take(self) -> dict[int, list[list[int]]]:
        """The fields of the requests, three numbers each, by kind; the buffer is empty then."""
        n = int(self.arrays.count[0])
        self.arrays.count[0] = 0
        found: dict[int, list[list[int]]] = {}
        for kind, *fields in self.arrays.entries[:n].tolist():
            found.setdefault(kind, []).append(fields)
        return found

    def serve(self, owner: Owner, answers: Mapping[int, Callable[[Owner, list[list[int]]], None]]) -> None:
        """Answer all requests: those of a kind together, kinds in the order of ``answers``."""
        asked = self.take()
        for kind, answer in answers.items():
            if kind in asked:
                answer(owner, asked[kind])
