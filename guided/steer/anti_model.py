"""Steerers that contrast a model with one of the text so far: frustratingly simple decoding, by n-grams or vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import AsGiven, Branch, Candidates, Declaration, Seen
from guided.steer.fields import Checked, Count, Range
from guided.steer.formulas.anti_model import anti_ngrams, anti_vectors
from guided.steer.formulas.history import contrastive_search

__all__ = ["FSD", "FSDVectors"]


@dataclass(frozen=True)
class FSD(Checked):
    """Frustratingly simple decoding: a candidate that n-grams of the text, prompt included, expect is penalised.

    `anti_ngrams` is what they expect, arXiv 2305.12675; the study of decoding methods, arXiv 2402.06925, calls this
    FSD-d, from which the defaults are.  Scores are made for the argmax; ``alpha=0`` is greedy search.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import FSD, Stack
    >>> model = TableModel.of({}, otherwise=[0.5, 0.3, 0.2])
    >>> steered = Stack([FSD(alpha=0.6, top_k=3)]).over(model)
    >>> [int(next_logits(steered, [text]).argmax()) for text in ([2], [1, 0, 1, 0, 1])]  # no third "1 0"
    [0, 2]
    """

    alpha: Annotated[float, Range(0, 1)] = 0.6
    top_k: Count = 5
    n: Count = 3
    smoothing: Annotated[float, Range(0, 1)] = 0.9

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, and the candidates."""
        return Declaration(candidates=Candidates(self.top_k), text=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Probabilities less what the text would say itself."""
        found = [
            anti_ngrams(np.fromiter(text, np.int64, len(text)), ids, self.n, self.smoothing)
            for text, ids in zip(seen.texts, seen.scored.tolist(), strict=True)
        ]
        penalty = torch.tensor(found, dtype=logits.dtype, device=logits.device)
        return contrastive_search(logits, seen.scored, penalty, alpha=self.alpha)


@dataclass(frozen=True)
class FSDVectors(Checked):
    """Frustratingly simple decoding by vectors: hidden states of the text's places stand for its n-grams.

    `anti_vectors` is the penalty, FSD-vec of arXiv 2305.12675; arXiv 2402.06925 calls it FSD, from which the defaults
    are.  Unlike contrastive search it looks at no candidate's own state, and so costs no pass.  Scores are made for the
    argmax; ``alpha=0`` is greedy search.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import FSDVectors, Stack
    >>> def state(tokens):
    ...     return [1.0, 0.0] if tokens[-1] == 0 else [0.0, 1.0]
    >>> model = TableModel(lambda tokens: [1.0, 0.8, 0.0], width=3, hidden=state)
    >>> steered = Stack([FSDVectors(alpha=0.6)]).over(model)
    >>> int(next_logits(model, [[0, 0, 0]]).argmax()), int(next_logits(steered, [[0, 0, 0]]).argmax())
    (0, 1)
    """

    alpha: Annotated[float, Range(0, 1)] = 0.4
    top_k: Count = 5
    n: Annotated[int, Range(2)] = 2

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, and hidden states of the model itself so far."""
        own = Branch(None, AsGiven(), Needs(hidden=True))
        return Declaration(candidates=Candidates(self.top_k, behind=own), text=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Probabilities less resemblance of places."""
        penalty = torch.stack(
            [
                anti_vectors(states, text, ids, self.n, width=logits.shape[-1])
                for states, text, ids in zip(seen.history, seen.texts, seen.scored, strict=True)
            ]
        )
        return contrastive_search(logits, seen.scored, penalty.to(logits), alpha=self.alpha)
