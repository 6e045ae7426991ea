"""The token transitions of a small corpus, as evidence for graph-retrieved adaptive decoding.

One pass of the model over the corpus: every observed transition adds its logit to its edge, counted from where the
uniform distribution's would be, ``log p(v) + log V``: logits are known up to a constant only.  Where that is negative
the edge gets nothing, since edges are non-negative and rows are divided by their greatest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.steer.formulas.combining import log_probabilities

__all__ = ["TransitionGraph"]


class TransitionGraph:
    """Edges ``(u, v)`` with the summed evidence of ``v`` wherever the corpus has ``v`` after ``u``.

    ``edges[u][v]`` must be 0 or more.  Immutable; memory is one number for each distinct transition.
    """

    def __init__(self, edges: Mapping[int, Mapping[int, float]]) -> None:
        self._rows: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        for token, successors in edges.items():
            values = torch.tensor(list(successors.values()), dtype=torch.float64)
            if bool((values < 0).any()) or not bool(torch.isfinite(values).all()):
                raise GuidedError(
                    f"the edges from token {token} are not finite numbers of 0 or more", where="TransitionGraph"
                )
            if len(values) and float(values.max()) > 0:
                self._rows[token] = (torch.tensor(list(successors)), values / values.max())

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
            above_uniform = log_probabilities(logits) + math.log(logits.shape[-1])
            observed = above_uniform.gather(-1, after[:, None])[:, 0].clamp(min=0.0).tolist()
            for before, token, value in zip(tokens, tokens[1:], observed):
                row = edges.setdefault(int(before), {})
                row[int(token)] = row.get(int(token), 0.0) + value
        return cls(edges)

    def __len__(self) -> int:
        """Number of tokens with a row."""
        return len(self._rows)

    def rows(self, tokens: Sequence[int], *, like: torch.Tensor) -> torch.Tensor:
        """For each token its row divided by its greatest edge, else zeros; a tensor like ``like`` (``[n, V]``)."""
        evidence = torch.zeros_like(like)
        for row, token in zip(evidence, tokens, strict=True):
            found = self._rows.get(token)
            if found is not None:
                row[found[0].to(like.device)] = found[1].to(row)
        return evidence
