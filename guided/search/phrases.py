"""`PhraseConstraint`: token phrases of which one must occur, and the automaton that follows them along a text.

Occurrence is exact: a phrase counts wherever it stands among the tokens, also where an attempt at it failed halfway
inside or where two phrases overlap (the automaton falls back to the longest suffix that begins a phrase, as Aho and
Corasick's does, and not to the start).  Nothing here searches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.vocab.vocabulary import Vocabulary

__all__ = ["MET", "PhraseAutomaton", "PhraseConstraint", "check_phrases"]

MET = -1
"""The automaton's state once a phrase has occurred; it stays."""


@dataclass(frozen=True)
class PhraseConstraint:
    """Met when any of ``options`` occurs among a text's tokens; each is a sequence of token ids, at least one.

    A phrase that has another option inside it is met when the other one is, so it never matters.

    Raises `GuidedError` without phrases, and for an empty one.

    >>> PhraseConstraint.of([5, 6], [7]).options
    ((5, 6), (7,))
    """

    options: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.options or not all(self.options):
            raise GuidedError(
                "a phrase constraint needs phrases, and each at least one token",
                remedy="Leave out empty phrases; tokenise with the space that precedes the word in a text.",
            )

    @classmethod
    def of(cls, *phrases: Iterable[int]) -> PhraseConstraint:
        """The constraint that one of these phrases occurs: several spellings of a word, say."""
        return cls(tuple(tuple(int(token) for token in phrase) for phrase in phrases))

    @cached_property
    def automaton(self) -> PhraseAutomaton:
        """The automaton, built once."""
        return PhraseAutomaton(self.options)

    def placed_together(self) -> PhraseConstraint:
        """The options that one search can place while it counts their tokens; raises `UnsupportedError`."""
        if len({len(option) for option in self.options}) > 1:
            raise UnsupportedError(
                "grid beam search counts phrase tokens, and these options have different lengths",
                remedy="Use dynamic_beam_search.",
            )
        return self


class PhraseAutomaton:
    """A trie of phrases with fall-backs: state 0 is the root, `MET` the end; immutable once built."""

    def __init__(self, phrases: Sequence[Sequence[int]]) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.depths = [0]
        self._fall = [0]
        self._ends = [False]
        for phrase in phrases:
            node = 0
            for token in phrase:
                node = self._grow(node, token)
            self._ends[node] = True
        order = self._set_falls()
        self._remaining = [0] * len(self.depths)
        for node in reversed(order):
            below = [1 + self._remaining[child] for child in self.children[node].values()]
            self._remaining[node] = 0 if self._ends[node] else min(below)
        for node in order:
            # A shorter suffix may be nearer to the end of another phrase.
            self._remaining[node] = min(self._remaining[node], self._remaining[self._fall[node]])
        self.length = self._remaining[0]
        """Tokens of the shortest phrase."""

    def _grow(self, node: int, token: int) -> int:
        found = self.children[node].get(token)
        if found is None:
            found = self.children[node][token] = len(self.children)
            self.children.append({})
            self.depths.append(self.depths[node] + 1)
            self._fall.append(0)
            self._ends.append(False)
        return found

    def _set_falls(self) -> list[int]:
        """Fall-backs and ends of every node, and the nodes by depth."""
        order, queue = [], deque([0])
        while queue:
            node = queue.popleft()
            order.append(node)
            for token, child in self.children[node].items():
                if node:
                    self._fall[child] = self._next(self._fall[node], token)
                self._ends[child] = self._ends[child] or self._ends[self._fall[child]]
                queue.append(child)
        return order

    def _next(self, node: int, token: int) -> int:
        while True:
            found = self.children[node].get(token)
            if found is not None:
                return found
            if not node:
                return 0
            node = self._fall[node]

    def advance(self, node: int, token: int) -> int:
        """The state after a token."""
        if node == MET:
            return MET
        found = self._next(node, token)
        return MET if self._ends[found] else found

    def remaining(self, node: int) -> int:
        """The fewest tokens after which a phrase has occurred."""
        return 0 if node == MET else self._remaining[node]

    def at_end(self, node: int) -> bool:
        """Has a phrase occurred if the text ends here?"""
        return node == MET

    def progress(self, node: int) -> float:
        """How much of the phrase that is nearest to its end has occurred, 0 to 1."""
        if node == MET:
            return 1.0
        return max(0.0, 1.0 - self._remaining[node] / (self.depths[node] + self._remaining[node]))

    def next_tokens(self, node: int) -> list[int]:
        """The tokens that go on with a phrase begun, or begin one where none is; ascending."""
        if node == MET:
            return []
        found = set(self.children[node])
        while self._fall[node]:
            node = self._fall[node]
            found |= set(self.children[node])
        return sorted(found)


def check_phrases(constraints: Sequence[PhraseConstraint], vocabulary: Vocabulary, max_tokens: int) -> None:
    """Raise `GuidedError` for ids that no text can have, `LimitError` where a phrase is longer than any text."""
    for place, constraint in enumerate(constraints):
        for phrase in constraint.options:
            for token in phrase:
                if not 0 <= token < vocabulary.size or token in vocabulary.eos_ids:
                    raise GuidedError(
                        f"token {token} cannot stand in a text",
                        where=f"phrase constraint {place}, {phrase}",
                        remedy="Give token ids of the constraint's vocabulary, without end-of-text ids.",
                    )
        if constraint.automaton.length + 1 > max_tokens:
            raise LimitError(
                f"the shortest phrase has {constraint.automaton.length} tokens, and a text with its end {max_tokens}",
                where=f"phrase constraint {place}",
                remedy="Raise max_tokens.",
            )
