"""Fast and slow decoding: a large model scores the tokens of which a small one is unsure.  Not lossless.

FS-GEN, Zhang et al. 2024, arXiv 2406.12295, with the routers of its authors' code: the small model reads every token,
the large one is asked only where the small one's own distribution of the next token says so, and then reads what it
missed in one pass.  Unlike entropy adaptive decoding this depends on the next token's distribution alone, so what is
returned is a function of the tokens, wherever the prompt ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import torch

from guided.errors import GuidedError, UnsupportedError
from guided.lm.model import NOTHING, Abilities, LanguageModel, Needs, Scores, Sequences, Tree, check_needs
from guided.steer.declaration import Tokens
from guided.steer.fields import Range
from guided.steer.layout import check_vocabulary
from guided.steer.pair import ModelPair, PairedModel

__all__ = ["FastAndSlow", "FastAndSlowModel", "FastAndSlowSequences", "Router"]


class Router(Enum):
    """What is compared with the threshold.

    >>> import torch
    >>> from guided.lm import TableModel
    >>> from guided.steer import FastAndSlow, Router
    >>> small = TableModel.of({}, otherwise=[0.5, 0.3, 0.2])
    >>> logits = torch.tensor([[0.5, 0.4, 0.1], [0.9, 0.1, 0.0]]).log()
    >>> {router.value: FastAndSlow(small, threshold=0.3, router=router).unsure(logits) for router in Router}
    {'top': [False, False], 'margin': [True, False]}
    """

    TOP = "top"
    """The probability of the likeliest token."""
    MARGIN = "margin"
    """Half of what the likeliest is more probable than the second."""


@dataclass(frozen=True, eq=False)
class FastAndSlow(ModelPair):
    """The large model where ``router`` says less than ``threshold`` of the small model's next token.

    A threshold of 0 is the small model alone, one above 1 the large one.  To contrast the models where the large one is
    asked, as the paper does, too, put the contrast over the large model: ``FastAndSlow(small, t).over(
    Stack([Contrastive(small)]).over(large))``.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import FastAndSlow
    >>> small = TableModel.of({(0,): [0.9, 0.1]}, otherwise=[0.5, 0.5])
    >>> large = TableModel.of({}, otherwise=[0.2, 0.8])
    >>> both = FastAndSlow(small, threshold=0.7).over(large)
    >>> next_logits(both, [[0], [1]]).softmax(-1).numpy().round(2).tolist()  # after 1 the small one is unsure
    [[0.9, 0.1], [0.2, 0.8]]
    """

    small: LanguageModel
    threshold: Annotated[float, Range(0)] = 0.5
    router: Router = Router.TOP

    def over(self, large: LanguageModel, *, same_tokenizer: bool = False) -> FastAndSlowModel:
        """The two models as one; raises `VocabularyError` where they do not score the same ids."""
        check_vocabulary(large, self.small, "FastAndSlow", same_tokenizer=same_tokenizer)
        return FastAndSlowModel(large, self)

    def unsure(self, logits: torch.Tensor) -> list[bool]:
        """For each of the small model's rows ``[n, V]``, whether the large model is asked."""
        best = torch.softmax(logits, -1).topk(min(2, logits.shape[-1]), dim=-1).values
        value = best[:, 0] if self.router is Router.TOP else (best[:, 0] - best[:, -1]) / 2
        return [bool(each) for each in (value < self.threshold).tolist()]


class FastAndSlowModel(PairedModel):
    """A small and a large model; made by `FastAndSlow.over`."""

    def __init__(self, large: LanguageModel, how: FastAndSlow) -> None:
        super().__init__(large, how.small)
        self.how = how
        encoder = large.can.encoder or how.small.can.encoder
        self.can = Abilities(crop=large.can.crop and how.small.can.crop, tree=False, encoder=encoder)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> FastAndSlowSequences:
        """Sequences that begin with these prompts, which both models read."""
        check_needs(needs, self.can, "a pair of models")
        return FastAndSlowSequences(self, prompts)


class FastAndSlowSequences:
    """The rows of a `FastAndSlowModel`; `guided.lm.model.Sequences`."""

    def __init__(self, model: FastAndSlowModel, prompts: Sequence[Sequence[int]]) -> None:
        self._how = model.how
        self._width = model.width
        given = [tuple(int(token) for token in prompt) for prompt in prompts]
        self._small: Sequences = model.how.small.start(given)
        self._large: Sequences = model.large.start(given)
        self._read = [len(prompt) for prompt in given]
        """How many tokens of each row the large model has read."""

    def __len__(self) -> int:
        return len(self._small)

    def tokens(self, row: int) -> Tokens:
        """The row's tokens, prompt included."""
        return tuple(self._small.tokens(row))

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        small = self._small.last.logits[:, : self._width]
        asked = [[0] if unsure else [] for unsure in self._how.unsure(small)] if len(self) else []
        return Scores(torch.cat([small[:0], *self._scored([row[None] for row in small], asked)]))

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        """Append tokens to each row; scores after each of them.  One pass of the small model, and one of the large one
        where it is asked.

        Raises `GuidedError` for another number of entries than rows, and for ids that the models do not both score.
        """
        if len(tokens) != len(self):
            raise GuidedError(f"{len(tokens)} entries for {len(self)} rows", remedy="Give one for each row.")
        outside = [token for row in tokens for token in row if not 0 <= token < self._width]
        if outside:
            raise GuidedError(f"the ids {outside[:5]} are not in range({self._width})")
        rows = [scores.logits[:, : self._width] for scores in self._small.extend(tokens)]
        asked = [
            [place for place, unsure in enumerate(self._how.unsure(logits)) if unsure] if len(logits) else []
            for logits in rows
        ]
        return [Scores(logits) for logits in self._scored(rows, asked)]

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        self._read = [self._read[range(len(self))[row]] for row in rows]
        self._small.select(rows)
        self._large.select(rows)

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens."""
        self._small.crop(lengths)
        self._read = [min(length, read) for length, read in zip(lengths, self._read, strict=True)]
        self._large.crop(self._read)

    def extend_tree(self, trees: Sequence[Tree]) -> list[Scores]:
        """Refused: the large model would be asked about every node."""
        raise UnsupportedError(
            "fast and slow decoding scores no draft trees", remedy="Use extend(), and crop() to roll back."
        )

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Refused, as there are no trees."""
        raise GuidedError("there is no tree to keep a path of", remedy="Use extend().")

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        given = [tuple(int(token) for token in prompt) for prompt in prompts]
        self._small.join(given)
        self._large.join(given)
        self._read += [len(prompt) for prompt in given]

    def _scored(self, rows: Sequence[torch.Tensor], asked: Sequence[Sequence[int]]) -> list[torch.Tensor]:
        """The small model's logits of each row's last positions, with the large one's at the positions asked about."""
        missed: list[Tokens] = []
        for row, (logits, places) in enumerate(zip(rows, asked, strict=True)):
            tokens = self.tokens(row)
            stop = len(tokens) - len(logits) + places[-1] + 1 if places else 0
            missed.append(tokens[self._read[row] : stop])
        ends = self._large.last.logits if any(asked) else None
        answers = self._large.extend(missed) if any(missed) else None
        found: list[torch.Tensor] = []
        for row, (logits, places) in enumerate(zip(rows, asked, strict=True)):
            for place in places:
                # The token before the scores; the large model had read it already, or reads it now.
                behind = len(self.tokens(row)) - len(logits) + place - self._read[row]
                if behind < 0:
                    assert ends is not None and behind == -1
                    logits[place] = ends[row, : self._width]
                else:
                    assert answers is not None
                    logits[place] = answers[row].logits[behind, : self._width]
            found.append(logits)
        self._read = [read + len(new) for read, new in zip(self._read, missed, strict=True)]
        return found
