"""`Likelihoods`: a model whose hidden state is one number, the log-probability of the text so far.

What weighs models by how well they foretold a text asks for it, as it asks for hidden states.  The first token of a
text has no probability, as models are given it; an encoder's prompt has none at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from guided.lm.model import NOTHING, Abilities, LanguageModel, Needs, Scores, Sequences, Tree, check_needs
from guided.lm.wrapped import WrappedModel

__all__ = ["Likelihoods"]


class Likelihoods(WrappedModel):
    """``model`` with ``Scores.hidden`` ``[k, 1]``: the sum of the natural logarithms of its tokens' probabilities.

    Prompts are read in two passes, their first token and the rest.  Layers, blocks and heads are the model's own.

    >>> from guided.lm import Likelihoods, Needs, TableModel
    >>> model = Likelihoods(TableModel.of({}, otherwise=[0.25, 0.75]))
    >>> rows = model.start([[0, 1, 1]], Needs(hidden=True))
    >>> rows.last.hidden.exp().round(decimals=4).tolist()  # 0.75 * 0.75, the first token left out
    [[0.5625]]
    """

    @property
    def can(self) -> Abilities:
        """What the model can do; a sum takes the place of its hidden states and blocks."""
        return replace(self.model.can, hidden=True, blocks=0)

    @property
    def tokenizer(self) -> object | None:
        """The model's, where it has one."""
        return getattr(self.model, "tokenizer", None)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> Sequences:
        """Sequences that begin with these prompts."""
        check_needs(needs, self.can, "a model with the likelihood of its text")
        return _Summed(self.model, prompts, needs)


class _Summed:
    """The rows of another model, and for each the sums after its first 0, 1, 2... tokens."""

    def __init__(self, model: LanguageModel, prompts: Sequence[Sequence[int]], needs: Needs) -> None:
        self._encodes = model.can.encoder
        self._asked = needs.hidden
        self._sums: list[list[float]] = []
        self._trees: list[tuple[Tree, list[float]]] = []
        first, rest = self._begun(prompts)
        self._inner = model.start(first, replace(needs, hidden=False))
        self._read(rest)

    def __len__(self) -> int:
        return len(self._inner)

    def tokens(self, row: int) -> tuple[int, ...]:
        return self._inner.tokens(row)

    @property
    def last(self) -> Scores:
        return self._with(self._inner.last, [sums[-1] for sums in self._sums])

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        before = self._inner.last.logits
        answers = list(self._inner.extend(tokens))
        found: list[Scores] = []
        for row, (new, scores) in enumerate(zip(tokens, answers, strict=True)):
            sums = self._sums[row]
            start = len(sums)
            for gain in _gains(torch.cat([before[row : row + 1], scores.logits])[: len(new)], new):
                sums.append(sums[-1] + (0.0 if self._first(sums) else gain))
            found.append(self._with(scores, sums[start:]))
        return found

    def select(self, rows: Sequence[int]) -> None:
        chosen = [range(len(self))[row] for row in rows]
        self._inner.select(chosen)
        self._sums = [list(self._sums[row]) for row in chosen]

    def crop(self, lengths: Sequence[int]) -> None:
        before = [len(self._inner.tokens(row)) for row in range(len(self))]
        self._inner.crop(lengths)
        for sums, length, full in zip(self._sums, lengths, before, strict=True):
            del sums[len(sums) - (full - int(length)) :]

    def extend_tree(self, trees: Sequence[Tree]) -> list[Scores]:
        before = self._inner.last.logits
        answers = list(self._inner.extend_tree(trees))
        self._trees = []
        found: list[Scores] = []
        for row, (tree, scores) in enumerate(zip(trees, answers, strict=True)):
            parents = torch.cat([before[row : row + 1], scores.logits])[[parent + 1 for parent in tree.parents]]
            nodes: list[float] = []
            for gain, parent in zip(_gains(parents, tree.tokens), tree.parents, strict=True):
                first = parent < 0 and self._first(self._sums[row])
                nodes.append((self._sums[row][-1] if parent < 0 else nodes[parent]) + (0.0 if first else gain))
            self._trees.append((tree, nodes))
            found.append(self._with(scores, nodes))
        return found

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        self._inner.keep(paths)
        for sums, path, (_, nodes) in zip(self._sums, paths, self._trees, strict=True):
            sums += [nodes[node] for node in path]

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        before = len(self)
        first, rest = self._begun(prompts)
        self._inner.join(first)
        self._read([()] * before + rest)

    def _begun(self, prompts: Sequence[Sequence[int]]) -> tuple[list[Sequence[int]], list[Sequence[int]]]:
        """What the inner model is started with, and what is then appended so that its probability is known."""
        cuts = [len(prompt) if self._encodes else 1 for prompt in prompts]
        self._sums += [[0.0] * (1 if self._encodes else 1 + min(1, len(prompt))) for prompt in prompts]
        return (
            [prompt[:cut] for prompt, cut in zip(prompts, cuts, strict=True)],
            [prompt[cut:] for prompt, cut in zip(prompts, cuts, strict=True)],
        )

    def _read(self, rest: list[Sequence[int]]) -> None:
        if any(len(part) for part in rest):
            self.extend(rest)

    def _first(self, sums: Sequence[float]) -> bool:
        """Whether the next token would be the first of its text."""
        return not self._encodes and len(sums) == 1

    def _with(self, scores: Scores, sums: Sequence[float]) -> Scores:
        if not self._asked:
            return scores
        column = torch.tensor(sums, dtype=scores.logits.dtype, device=scores.logits.device).reshape(-1, 1)
        return Scores(scores.logits, scores.layers, column)


def _gains(logits: torch.Tensor, tokens: Sequence[int]) -> list[float]:
    """The log-probability of each token under the row before it."""
    if not len(tokens):
        return []
    ids = torch.tensor([int(token) for token in tokens], device=logits.device)[:, None]
    found: list[float] = torch.log_softmax(logits.double(), dim=-1).gather(-1, ids)[:, 0].tolist()
    return found
