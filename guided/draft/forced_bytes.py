"""`ForcedBytes`: the bytes that the constraint leaves no choice about, in the likeliest tokens.

Where only one *token* may come, decoding takes it without asking the model.  Forced *bytes* can be split into tokens in
several ways, and the model has a say in which: committing to one would change the law, so it is a draft.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from guided.constraint.protocol import Constrains
from guided.draft.drafter import Observed
from guided.draft.guess import Guess, Path
from guided.vocab import Vocabulary

__all__ = ["ForcedBytes", "longest_first"]

Encode = Callable[[bytes], Sequence[int]]

GRAMMARS = 64
"""Constraints that are kept alive: a batch has few, and where every text has its own an old one does not come back."""
STATES = 1 << 14
"""States of one constraint whose forced bytes are remembered."""
VOCABULARIES = 4


class ForcedBytes:
    """Guesses the first token of what must come; ``encode`` splits bytes into tokens, by default the longest first."""

    def __init__(self, encode: Encode | None = None) -> None:
        self._encode = encode
        self._known: OrderedDict[int, tuple[Constrains, dict[int, Guess | None]]] = OrderedDict()
        """By constraint, those used last, and state; the constraint is kept, so that its identity is not given away."""
        self._encoders: dict[int, tuple[Vocabulary, Encode]] = {}

    def guess(self, path: Path) -> Sequence[Guess]:
        """One token, where any byte is forced."""
        constraint = path.context.constraint
        if constraint is None:
            return ()
        states = self._states(constraint)
        if path.state not in states:
            if len(states) >= STATES:
                states.clear()
            states[path.state] = self._first(constraint, path.state)
        guess = states[path.state]
        return () if guess is None else (guess,)

    def _states(self, constraint: Constrains) -> dict[int, Guess | None]:
        """What is known of a constraint; the one that was used longest ago is let go."""
        found = self._known.get(id(constraint))
        if found is None:
            found = self._known[id(constraint)] = (constraint, {})
            if len(self._known) > GRAMMARS:
                self._known.popitem(last=False)
        self._known.move_to_end(id(constraint))
        return found[1]

    def _first(self, constraint: Constrains, state: int) -> Guess | None:
        forced = constraint.forced(state)
        if not forced:
            return None
        tokens = (self._encode or self._longest_first(constraint.vocabulary))(forced)
        # The last token may well be a longer one that begins in the forced bytes and goes on after them.
        return Guess(tokens[0], 0.9 if len(tokens) > 1 else 0.5, min(len(tokens), 2)) if tokens else None

    def _longest_first(self, vocabulary: Vocabulary) -> Encode:
        found = self._encoders.get(id(vocabulary))
        if found is None:
            if len(self._encoders) >= VOCABULARIES:
                self._encoders.clear()
            found = self._encoders[id(vocabulary)] = (vocabulary, longest_first(vocabulary))
        return found[1]

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing: the grammar does not change."""

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""


def longest_first(vocabulary: Vocabulary) -> Encode:
    """Split bytes into tokens, each as long as possible; stops where no token goes on.

    >>> longest_first(Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3]))(b"aab")
    [0, 2]
    """
    ids: dict[bytes, int] = {}
    for token, data in enumerate(vocabulary.tokens):
        if data and token not in vocabulary.eos_ids:
            ids.setdefault(data, token)
    longest = max(map(len, ids), default=0)

    def encode(data: bytes) -> list[int]:
        tokens: list[int] = []
        at = 0
        while at < len(data):
            n = next((n for n in range(min(longest, len(data) - at), 0, -1) if data[at : at + n] in ids), 0)
            if not n:
                break
            tokens.append(ids[data[at : at + n]])
            at += n
        return tokens

    return encode
