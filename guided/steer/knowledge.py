"""Knowledge infused decoding: what retrieved facts say of the phrases that the text has just named.

`KnowledgeTrie` holds facts as paths of phrases, such as subject, relation, object; `KnowledgeInfused` (KID) gives the
next phrases of the paths that begin at lately named ones a reward.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch

from guided.errors import GuidedError, VocabularyError
from guided.lm.model import LanguageModel
from guided.steer.declaration import Declaration, Seen, Tokens
from guided.steer.fields import Checked, Count, Range
from guided.steer.formulas.grounding import knowledge_infused

__all__ = ["KnowledgeInfused", "KnowledgeTrie"]


class KnowledgeTrie:
    """Facts as paths of phrases, each phrase a sequence of ids, as the tokenizer spells it inside a text.

    Paths with the same beginning share it; a phrase may stand in several paths and places.  Immutable.  Raises
    `GuidedError` for a path of fewer than two phrases, and for a phrase without tokens.

    >>> from guided.steer import KnowledgeTrie
    >>> facts = KnowledgeTrie([[(5, 6), (7,), (8, 9)]])  # Marie Curie, born in, Warsaw
    >>> facts.named([1, 5, 6, 2], 4), facts.demanded([(5, 6)], hops=1), facts.demanded([(5, 6)], hops=2)
    ([(5, 6)], [(7,)], [(7,), (8, 9)])
    """

    def __init__(self, facts: Iterable[Sequence[Sequence[int]]]) -> None:
        self._next: dict[Tokens, dict[Tokens, None]] = {}
        for fact in facts:
            path = [tuple(int(token) for token in phrase) for phrase in fact]
            if len(path) < 2 or not all(path):
                raise GuidedError(
                    f"{path} is no path of phrases", where="KnowledgeTrie", remedy="Pass two phrases at least, of ids."
                )
            for phrase, after in itertools.pairwise(path):
                self._next.setdefault(phrase, {})[after] = None
                self._next.setdefault(after, {})
        self._by_last: dict[int, list[Tokens]] = {}
        for phrase in self._next:
            self._by_last.setdefault(phrase[-1], []).append(phrase)
        self.greatest = max((token for phrase in self._next for token in phrase), default=-1)
        """The greatest id of any phrase."""

    def __len__(self) -> int:
        """Number of distinct phrases."""
        return len(self._next)

    def named(self, text: Sequence[int], size: int) -> list[Tokens]:
        """The last ``size`` distinct phrases that a text names, the latest first; of phrases that end at one place the
        longest."""
        text = tuple(text)
        found: list[Tokens] = []
        end = len(text)
        while end and len(found) < size:
            here = [each for each in self._by_last.get(text[end - 1], ()) if text[:end][-len(each) :] == each]
            if here:
                longest = max(here, key=len)
                if longest not in found:
                    found.append(longest)
                end -= len(longest)
            else:
                end -= 1
        return found

    def demanded(self, named: Sequence[Tokens], hops: int) -> list[Tokens]:
        """The phrases within so many steps of named ones, without these, in order of their distance."""
        found: dict[Tokens, None] = {}
        level = list(named)
        for _ in range(hops):
            level = [after for phrase in level for after in self._next.get(phrase, ()) if after not in found]
            found.update(dict.fromkeys(level))
        return [phrase for phrase in found if phrase not in named]


@dataclass(frozen=True, eq=False)
class KnowledgeInfused(Checked):
    """Knowledge infused decoding (KID): a reward for tokens that begin or go on with a demanded phrase.

    `knowledge_infused` is the formula.  Demanded are phrases within ``hops`` steps of the last ``memory`` phrases that
    the text names, prompt included, and that are none of these.  Reconstructed from the paper (Liu et al. 2022, arXiv
    2204.03084), which makes its trie of retrieved passages and moves the model's states by policy gradients that stay
    near the model; here the distribution is the optimum of that objective.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import KnowledgeInfused, KnowledgeTrie, Stack
    >>> model = TableModel.of({}, otherwise=[0.4, 0.3, 0.2, 0.1])
    >>> facts = KnowledgeTrie([[(1,), (3,)]])
    >>> steered = Stack([KnowledgeInfused(facts)]).over(model)
    >>> next_logits(steered, [[0], [1]]).softmax(-1).numpy().round(2).tolist()  # once 1 is named, 3 is wanted
    [[0.4, 0.3, 0.2, 0.1], [0.24, 0.18, 0.12, 0.45]]
    """

    trie: KnowledgeTrie
    strength: float = 2.0
    memory: Count = 4
    hops: Annotated[int, Range(1)] = 1

    def declare(self, model: LanguageModel) -> Declaration:
        """The text.  Raises `VocabularyError` for a trie with ids that the model does not score."""
        if self.trie.greatest >= model.width:
            raise VocabularyError(
                f"the trie has the token {self.trie.greatest}, and the model scores {model.width} ids",
                where="KnowledgeInfused",
                remedy="Spell its phrases with the model's own tokenizer.",
            )
        return Declaration(text=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The logits, raised at what is demanded."""
        rewards = torch.zeros_like(logits)
        for row, text in zip(rewards, seen.texts, strict=True):
            row[sorted(self.wanted(text))] = 1.0
        return knowledge_infused(logits, rewards, strength=self.strength)

    def wanted(self, text: Tokens) -> set[int]:
        """The tokens that are rewarded after a text."""
        found: set[int] = set()
        for phrase in self.trie.demanded(self.trie.named(text, self.memory), self.hops):
            found.add(phrase[0])
            found |= {phrase[size] for size in range(1, len(phrase)) if text[-size:] == phrase[:size]}
        return found
