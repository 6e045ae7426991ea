"""Mirostat: a language model cut so that the surprise of its texts stays near a target, whatever their length.

After each token the bound moves by how far that token's surprise was from the target (Basu et al. 2020, arXiv
2007.14966).  The bound is a function of the tokens since the prompt, so that the result is a `LanguageModel` again, and
forks, rollbacks and drafts of a text have their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import torch

from guided.errors import GuidedError
from guided.lm.model import NOTHING, Abilities, LanguageModel, Needs, Scores, Sequences, Tree
from guided.lm.wrapped import WrappedModel

__all__ = ["Mirostat", "MirostatCut", "MirostatModel"]


class MirostatCut(Enum):
    """How the bound becomes a set of ids.

    >>> import numpy as np
    >>> from guided.lm import Mirostat, MirostatCut, TableModel, next_logits
    >>> zipf = 1 / np.arange(1, 51)  # fifty tokens by Zipf's law
    >>> model = TableModel.of({}, otherwise=zipf / zipf.sum())
    >>> for cut in MirostatCut:
    ...     print(cut.value, int(next_logits(Mirostat(2.0, cut=cut).over(model), [[0]]).isfinite().sum()))
    zipf 5
    surprise 3
    """

    ZIPF = "zipf"
    """The paper's algorithm 1: the k that has this surprise under Zipf's law, whose exponent the likeliest ids tell.  A
    token's surprise is that before the cut."""
    SURPRISE = "surprise"
    """Mirostat 2.0, as in llama.cpp: the ids whose surprise is at most the bound.  A token's surprise is that after
    the cut."""


@dataclass(frozen=True)
class Mirostat:
    """Raises `GuidedError` for a value out of range.

    >>> import numpy as np
    >>> from guided.lm import Mirostat, TableModel, next_logits
    >>> zipf = 1 / np.arange(1, 51)  # fifty tokens by Zipf's law
    >>> model = TableModel.of({}, otherwise=zipf / zipf.sum())
    >>> def kept(target):  # bits of surprise a token
    ...     return int(next_logits(Mirostat(target).over(model), [[0]]).isfinite().sum())
    >>> kept(1.0), kept(2.0), kept(5.0)
    (2, 5, 50)
    """

    target: float = 3.0
    """The surprise aimed at, in bits a token; the bound begins at twice this."""
    rate: float = 1.0
    """How much of an error the bound takes up."""
    cut: MirostatCut = MirostatCut.ZIPF
    likeliest: int = 100
    """How many ids tell the exponent."""

    def __post_init__(self) -> None:
        for name, value, least in (
            ("target", self.target, 0.0),
            ("rate", self.rate, 0.0),
            ("likeliest", self.likeliest, 2),
        ):
            if not least <= value < math.inf:
                raise GuidedError(
                    f"{name} is {value}", where="Mirostat", remedy=f"It must be finite, {least:g} or more."
                )

    @property
    def first(self) -> float:
        """The bound of the first token."""
        return 2 * self.target

    def over(self, model: LanguageModel) -> MirostatModel:
        """The model, cut."""
        return MirostatModel(model, self)

    def kept(self, logits: torch.Tensor, bound: float) -> torch.Tensor:
        """The logits ``[V]`` with what the bound cuts off at -inf; at least the likeliest ids are left."""
        if self.cut is MirostatCut.SURPRISE:
            surprise = -torch.log_softmax(logits, -1) / math.log(2)
            gone = (surprise > bound) & (logits < logits.max())
            return logits.masked_fill(gone, -torch.inf)
        least = logits.topk(self._k(logits, bound)).values[-1]
        return logits.masked_fill(logits < least, -torch.inf)

    def after(self, logits: torch.Tensor, bound: float, token: int) -> float:
        """The bound after a token; one that the model excludes leaves it as it is."""
        scores = logits if self.cut is MirostatCut.ZIPF else self.kept(logits, bound)
        # A token outside of the cut, which a draft may have, is as surprising as if it had been spared.
        surprise = float(torch.logsumexp(scores, -1) - logits[token]) / math.log(2)
        return bound if surprise == math.inf else bound - self.rate * (surprise - self.target)

    def _k(self, logits: torch.Tensor, bound: float) -> int:
        """How many ids have the bound as surprise under Zipf's law; the authors' code takes one more, and so do we."""
        n = int((logits > -torch.inf).sum())
        best = logits.topk(min(self.likeliest, n)).values.tolist()
        if n < 3:
            return n
        steps = [math.log((place + 2) / (place + 1)) for place in range(len(best) - 1)]
        falls = [above - below for above, below in itertools.pairwise(best)]
        exponent = sum(fall * step for fall, step in zip(falls, steps, strict=True)) / sum(step**2 for step in steps)
        # A flat distribution has no exponent: the limit keeps all of it or one id.
        exponent = max(exponent, 1e-6)
        past = exponent - 1
        mass = -math.expm1(-past * math.log(n)) / past if abs(past) > 1e-9 else math.log(n)
        log_k = (bound * math.log(2) - math.log(mass)) / exponent
        return min(n, max(round(math.exp(min(log_k, math.log(n)))), 0) + 1)


class MirostatModel(WrappedModel):
    """A language model cut by `Mirostat`; everything but the logits is the inner model's.

    The bound begins where the prompt ends, so ``can.encoder`` is True: a longer prompt is not a longer text.
    """

    def __init__(self, model: LanguageModel, how: Mirostat) -> None:
        super().__init__(model)
        self.how = how

    @property
    def can(self) -> Abilities:
        """What the inner model can do, with a prompt that counts."""
        return replace(self.model.can, encoder=True)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> MirostatSequences:
        """Sequences of the inner model with cut logits; layers read early stay as they are."""
        return MirostatSequences(self.model.start(prompts, needs), self.how)


class MirostatSequences:
    """`guided.lm.model.Sequences` with the bounds of each row's tokens."""

    def __init__(self, inner: Sequences, how: Mirostat) -> None:
        self.inner = inner
        self.how = how
        self._bounds = [[how.first] for _ in range(len(inner))]
        """For each row: at the prompt's end, and after each token since."""
        self._prompts = [len(inner.tokens(row)) for row in range(len(inner))]
        self._drafted: list[list[float]] = []

    def __len__(self) -> int:
        return len(self.inner)

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens, prompt included."""
        return self.inner.tokens(row)

    def bounds(self, row: int) -> list[float]:
        """The bound at the prompt's end and after each token since, in bits."""
        return list(self._bounds[row])

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        return self._cut(self.inner.last, [bounds[-1] for bounds in self._bounds])

    def extend(self, tokens: Sequence[Sequence[int]]) -> Sequence[Scores]:
        """Append tokens to each row; scores after each of them."""
        before = self.inner.last.logits
        answers = self.inner.extend(tokens)
        found: list[Scores] = []
        for row, new in enumerate(tokens):
            logits, bounds = before[row], self._bounds[row]
            scores = answers[row]
            for place, token in enumerate(new):
                bounds.append(self.how.after(logits, bounds[-1], token))
                logits = scores.logits[place]
            found.append(self._cut(scores, bounds[len(bounds) - len(new) :]))
        self._drafted = []
        return found

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        chosen = [range(len(self))[row] for row in rows]
        self.inner.select(rows)
        self._bounds = [list(self._bounds[row]) for row in chosen]
        self._prompts = [self._prompts[row] for row in chosen]
        self._drafted = []

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens, of which its prompt is a part.

        Raises `GuidedError` for a length inside the prompt.
        """
        for length, prompt in zip(lengths, self._prompts, strict=False):
            if length < prompt:
                raise GuidedError(
                    f"a row cannot be cropped to {length} tokens, into its prompt of {prompt}",
                    where="Mirostat",
                    remedy="Start again from the shorter prompt.",
                )
        self.inner.crop(lengths)
        for bounds, length, prompt in zip(self._bounds, lengths, self._prompts, strict=True):
            del bounds[length - prompt + 1 :]
        self._drafted = []

    def extend_tree(self, trees: Sequence[Tree]) -> Sequence[Scores]:
        """Scores of every node of a tree for each row; appends nothing."""
        before = self.inner.last.logits
        answers = self.inner.extend_tree(trees)
        found: list[Scores] = []
        self._drafted = []
        for row, tree in enumerate(trees):
            nodes: list[float] = []
            for token, parent in zip(tree.tokens, tree.parents, strict=True):
                logits, bound = (
                    (before[row], self._bounds[row][-1]) if parent < 0 else (answers[row].logits[parent], nodes[parent])
                )
                nodes.append(self.how.after(logits, bound, token))
            found.append(self._cut(answers[row], nodes))
            self._drafted.append(nodes)
        return found

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree."""
        self.inner.keep(paths)
        for bounds, nodes, path in zip(self._bounds, self._drafted, paths, strict=False):
            bounds += [nodes[node] for node in path]
        self._drafted = []

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        self.inner.join(prompts)
        self._bounds += [[self.how.first] for _ in prompts]
        self._prompts += [len(prompt) for prompt in prompts]
        self._drafted = []

    def _cut(self, scores: Scores, bounds: Sequence[float]) -> Scores:
        if not len(scores):
            return scores
        rows = [self.how.kept(row, bound) for row, bound in zip(scores.logits, bounds, strict=True)]
        return replace(scores, logits=torch.stack(rows))
