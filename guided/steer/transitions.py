"""The token transitions of a small corpus, as evidence for graph-retrieved adaptive decoding.

One pass of the model over the corpus: every observed transition adds its logit to its edge, counted from the mean of
its position's logits, which are known up to a constant only.  Where that is negative the edge gets nothing, since edges
are non-negative and rows are divided by their greatest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from guided.errors import VocabularyError
from guided.lm.model import LanguageModel
from guided.steer.fields import Range, checked_count, checked_number

__all__ = ["TransitionGraph"]


class TransitionGraph:
    """Edges ``(u, v)`` with the summed evidence of ``v`` wherever the corpus has ``v`` after ``u``.

    ``edges[u][v]`` must be 0 or more.  Immutable; memory is one number for each distinct transition.

    >>> import torch
    >>> from guided.lm import TableModel
    >>> from guided.steer import TransitionGraph
    >>> model = TableModel(lambda tokens: [1.0, 0.5, 2.0], width=3)
    >>> graph = TransitionGraph.of(model, [[0, 2, 0, 2, 1], [0, 1]])
    >>> graph.rows([0, 1], like=torch.zeros(2, 3)).numpy().round(2).tolist()  # after 0; nothing follows 1
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, edges: Mapping[int, Mapping[int, float]]) -> None:
        self._rows: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._width = 0
        for token, successors in edges.items():
            for other, value in successors.items():
                for id_ in (token, other):
                    checked_count("token", id_, least=0, of="TransitionGraph")
                checked_number(f"the edge from {token} to {other}", value, Range(0), of="TransitionGraph")
            greatest = max(successors.values(), default=0.0)
            if greatest > 0:
                values = torch.tensor(list(successors.values()), dtype=torch.float64)
                self._rows[token] = (torch.tensor(list(successors)), values / greatest)
                self._width = max(self._width, token + 1, max(successors) + 1)

    @classmethod
    def of(cls, model: LanguageModel, corpus: Sequence[Sequence[int]]) -> TransitionGraph:
        """The graph of a corpus of token sequences, which the model reads one after the other."""
        edges: dict[int, dict[int, float]] = {}
        for tokens in corpus:
            if len(tokens) < 2:
                continue
            sequences = model.start([tokens[:1]])
            logits = sequences.last.logits
            if len(tokens) > 2:
                logits = torch.cat([logits, sequences.extend([tokens[1:-1]])[0].logits])
            after = torch.as_tensor(list(tokens[1:]), device=logits.device)
            own = logits.gather(-1, after[:, None])[:, 0]
            possible = torch.isfinite(logits)
            mean = torch.where(possible, logits, 0.0).sum(dim=-1) / possible.sum(dim=-1)
            observed = (own - mean).clamp(min=0.0).tolist()
            for before, token, value in zip(tokens, tokens[1:], observed):
                row = edges.setdefault(int(before), {})
                row[int(token)] = row.get(int(token), 0.0) + value
        return cls(edges)

    def __len__(self) -> int:
        """Number of tokens with a row."""
        return len(self._rows)

    def check_width(self, width: int) -> None:
        """Raise `VocabularyError` where a transition is between ids that are not among ``width``."""
        if self._width > width:
            raise VocabularyError(
                f"the graph has the token {self._width - 1}, and the model scores {width} ids",
                where="TransitionGraph",
                remedy="Make it with the model's own tokenizer: TransitionGraph.of(model, corpus).",
            )

    def rows(self, tokens: Sequence[int], *, like: torch.Tensor) -> torch.Tensor:
        """For each token its row divided by its greatest edge, else zeros; a tensor like ``like`` (``[n, V]``)."""
        evidence = torch.zeros_like(like)
        for row, token in zip(evidence, tokens, strict=True):
            found = self._rows.get(token)
            if found is not None:
                row[found[0].to(like.device)] = found[1].to(row)
        return evidence
