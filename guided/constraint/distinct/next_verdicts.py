"""What is asked of kinds of tokens that go on to a next item or member, in containers that are open in some way.

Of all kinds most need not be looked at there.  Which must be is found once for a vocabulary and a way in
which containers are open, since it takes 50 us.
"""

from __future__ import annotations

import numpy as np

from guided.constraint.distinct.json_text import Level
from guided.constraint.distinct.token_kinds import KindsOfTokens, TokenKinds
from guided.constraint.distinct.token_shapes import Crossing, Place
from guided.constraint.distinct.token_texts import Reach
from guided.constraint.per_vocabulary import PerVocabulary
from guided.vocab.vocabulary import Vocabulary

__all__ = ["NAMED", "NEXT", "UNDECIDED", "KindChecks", "around"]

_FREE, UNDECIDED, NAMED, NEXT, _NEXT_AROUND = range(5)
"""What is asked of a kind: nothing; each token; of the names that may come; of the item behind, in the innermost
container or in one around it."""


class KindChecks(PerVocabulary):
    """The checks that one vocabulary's tokens need."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._kinds = TokenKinds.of(vocabulary)
        self._most = max((crossing.closed for crossing in self._kinds.first if crossing is not None), default=0)
        """Containers that a token closes."""
        self._asked: dict[object, tuple[KindsOfTokens, list[int]]] = {}

    def needed(
        self, level: Level | None, place: Place, reaches: frozenset[Reach], open_names: bool
    ) -> tuple[KindsOfTokens, list[int]]:
        """Of which tokens something is asked in a container, and by kind what."""
        containers: list[tuple[bool, bool]] = []
        at = level
        while at is not None and len(containers) <= self._most:
            containers.append((at.compares, at.is_array))
            at = at.parent
        key = (place, reaches, open_names, tuple(containers))
        found = self._asked.get(key)
        if found is None:
            kinds = self._kinds.of_tokens(reaches, place)
            checks = [_check(level, crossing, open_names) for crossing in self._kinds.first]
            found = self._asked[key] = kinds.of_kinds(np.array(checks) != _FREE), checks
        return found


def _check(level: Level | None, crossing: Crossing | None, open_names: bool) -> int:
    if crossing is None:
        return UNDECIDED
    outer = around(level, crossing.closed)
    if outer is None and (level is not None or crossing.closed):
        return _FREE
    if outer is not None and outer.compares:
        return NEXT if outer is level else _NEXT_AROUND
    # In an array the item in progress goes on, which is new already.
    return _FREE if open_names or (outer is not None and outer.is_array) else NAMED


def around(level: Level | None, closed: int) -> Level | None:
    """The container that is the innermost after some were closed."""
    for _ in range(closed):
        if level is None:
            break
        level = level.parent
    return level
