"""Steerers that read the text so far: momentum decoding, contrastive search, graph-retrieved adaptive decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import AsGiven, Branch, Candidates, Declaration, Seen
from guided.steer.fields import Checked, Count, Range
from guided.steer.formulas.history import RESISTANCE, contrastive_search, grad, momentum, repetitions
from guided.steer.transitions import TransitionGraph

__all__ = ["GRAD", "ContrastiveSearch", "Momentum"]


@dataclass(frozen=True)
class Momentum(Checked):
    """Momentum decoding: a candidate that repeats an n-gram of the text, prompt included, meets resistance.

    `momentum` is the formula.  Its scores are made for the argmax; as logits they are those of no published sampler.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Momentum, Stack
    >>> model = TableModel.of({}, otherwise=[0.5, 0.4, 0.1])
    >>> steered = Stack([Momentum(alpha=0.5)]).over(model)
    >>> [int(next_logits(steered, [text]).argmax()) for text in ([2], [0, 0, 0])]  # after 0 0 0 it is time for another
    [0, 1]
    """

    alpha: Annotated[float, Range(0)] = 0.2
    top_k: Count = 5

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, and the candidates."""
        return Declaration(candidates=Candidates(self.top_k), text=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Probabilities less resistance."""
        longest = len(RESISTANCE) - 1
        found = [
            repetitions(np.fromiter(text, np.int64, len(text)), ids, longest)
            for text, ids in zip(seen.texts, seen.scored.tolist(), strict=True)
        ]
        return momentum(logits, seen.scored, torch.tensor(found, device=logits.device), alpha=self.alpha)


@dataclass(frozen=True)
class ContrastiveSearch(Checked):
    """Contrastive search: a candidate whose hidden state resembles an earlier token's is penalised.

    `contrastive_search` is the formula; scores are made for the argmax.  A step costs one more pass, over the
    candidates, and the cosines with all tokens so far, prompt included.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import ContrastiveSearch, Stack
    >>> def state(tokens):
    ...     return [1.0, 0.0] if tokens[-1] == 0 else [0.0, 1.0]
    >>> model = TableModel(lambda tokens: [1.0, 0.8, 0.0], width=3, hidden=state)
    >>> steered = Stack([ContrastiveSearch(alpha=0.6)]).over(model)
    >>> int(next_logits(model, [[0, 0]]).argmax()), int(next_logits(steered, [[0, 0]]).argmax())  # not 0 again
    (0, 1)
    """

    alpha: Annotated[float, Range(0, 1)] = 0.6
    top_k: Count = 4

    def declare(self, model: LanguageModel) -> Declaration:
        """Hidden states of the model itself, so far and one token ahead."""
        own = Branch(None, AsGiven(), Needs(hidden=True))
        return Declaration(candidates=Candidates(self.top_k, ahead=own, history=True))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Probabilities less resemblance."""
        assert seen.ahead is not None
        normalise = torch.nn.functional.normalize
        similarity = torch.stack(
            [
                (normalise(ahead, dim=-1) @ normalise(before, dim=-1).T).amax(dim=-1)
                for ahead, before in zip(seen.ahead, seen.history, strict=True)
            ]
        )
        return contrastive_search(logits, seen.scored, similarity, alpha=self.alpha)


@dataclass(frozen=True, eq=False)
class GRAD(Checked):
    """Graph-retrieved adaptive decoding: transitions of a small corpus add to the logits, `grad`.

    ``graph`` comes from `TransitionGraph.of`.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import GRAD, Stack, TransitionGraph
    >>> model = TableModel.of({}, otherwise=[0.5, 0.3, 0.2])
    >>> graph = TransitionGraph({0: {2: 1.0}})  # in the corpus 2 follows 0
    >>> steered = Stack([GRAD(graph, weight=2.0)]).over(model)
    >>> next_logits(steered, [[0], [1]]).softmax(-1).numpy().round(2).tolist()
    [[0.24, 0.14, 0.62], [0.5, 0.3, 0.2]]
    """

    graph: TransitionGraph
    weight: float = 1.0

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, of which the last token counts; raises `VocabularyError` for a graph with ids it does not have."""
        self.graph.check_width(model.width)
        return Declaration(text=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Logits and evidence."""
        last = [text[-1] if text else -1 for text in seen.texts]
        return grad(logits, self.graph.rows(last, like=logits), weight=self.weight)
