"""Entropy adaptive decoding: a small model while it is sure, the large one while it is not.  Not lossless.

Not a steerer, since the point is not to run the large model: `EntropyAdaptive` makes a `LanguageModel` of two, each of
which reads the tokens that the other wrote only when it is asked again.  What it returns is a function of the tokens
since the prompt, so samplers and beams may use it; its distribution is neither model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch

from guided.errors import GuidedError, UnsupportedError
from guided.lm.model import NOTHING, Abilities, LanguageModel, Needs, Scores, Sequences, Tree, check_needs
from guided.steer.declaration import Tokens
from guided.steer.fields import Count, Range
from guided.steer.formulas.history import entropy_bits, wants_large
from guided.steer.layout import check_vocabulary
from guided.steer.pair import ModelPair, PairedModel
from guided.steer.rows import joined, taken

__all__ = ["AdaptiveModel", "AdaptiveSequences", "EntropyAdaptive"]


@dataclass(frozen=True, eq=False)
class EntropyAdaptive(ModelPair):
    """When to use the large model: while the mean entropy of the last ``window`` steps is above ``threshold`` bits.

    A switch waits until ``least`` tokens were written since the last one; the small model begins.  ``threshold=inf`` is
    the small model alone, a negative one the large model after the first ``least`` tokens.  The three values depend on
    the models; there are no published defaults to repeat.  Raises `GuidedError` with ``lossless=True``, which this is
    not.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import EntropyAdaptive
    >>> small = TableModel.of({}, otherwise=[0.5, 0.5])  # never sure
    >>> large = TableModel.of({}, otherwise=[0.1, 0.9])
    >>> both = EntropyAdaptive(small, threshold=0.8, window=2, least=2).over(large)
    >>> rows = both.start([[0]])
    >>> [rows.extend([[0]])[0].logits.softmax(-1)[0].numpy().round(1).tolist() for _ in range(3)]
    [[0.5, 0.5], [0.1, 0.9], [0.1, 0.9]]
    """

    small: LanguageModel
    threshold: Annotated[float, Range(infinite=True)]
    window: Count = 8
    least: Annotated[int, Range(0)] = 4
    lossless: bool = False
    """Always False: where the small model is sure, its tokens are taken."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lossless:
            raise GuidedError(
                "entropy adaptive decoding is not lossless",
                where="EntropyAdaptive",
                remedy="Use speculative decoding for the large model's distribution, or leave lossless=False.",
            )

    def over(self, large: LanguageModel, *, same_tokenizer: bool = False) -> AdaptiveModel:
        """The two models as one; raises `VocabularyError` where they do not score the same ids."""
        check_vocabulary(large, self.small, "EntropyAdaptive", same_tokenizer=same_tokenizer)
        return AdaptiveModel(large, self)


class AdaptiveModel(PairedModel):
    """A large and a small model used in turn; made by `EntropyAdaptive.over`."""

    def __init__(self, large: LanguageModel, how: EntropyAdaptive) -> None:
        super().__init__(large, how.small)
        self.how = how
        # What was written since the prompt decides which model is asked, so the prompt's end matters.
        self.can = Abilities(crop=large.can.crop and how.small.can.crop, tree=False, encoder=True)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> AdaptiveSequences:
        """Sequences that begin with these prompts, which both models read."""
        check_needs(needs, self.can, "a pair of models")
        return AdaptiveSequences(self, prompts)


@dataclass(frozen=True)
class _Step:
    """How the scores after one token came about."""

    large: bool
    since_switch: int
    entropies: tuple[float, ...]


class _Row:
    """One sequence: its tokens, and a `_Step` for the prompt's end and for each token after it."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = list(tokens)
        self.prompt = len(tokens)
        self.steps: list[_Step] = []
        self.read = [len(tokens), len(tokens)]  # how many tokens the small and the large model have read

    def copy(self) -> _Row:
        other = _Row(tuple(self.tokens))
        other.prompt, other.steps, other.read = self.prompt, list(self.steps), list(self.read)
        return other


class AdaptiveSequences:
    """The rows of an `AdaptiveModel`; `guided.lm.model.Sequences`."""

    def __init__(self, model: AdaptiveModel, prompts: Sequence[Sequence[int]]) -> None:
        self._how = model.how
        self._width = model.width
        given = [tuple(int(token) for token in prompt) for prompt in prompts]
        self._models: tuple[Sequences, Sequences] = (model.how.small.start(given), model.large.start(given))
        self._rows = [_Row(prompt) for prompt in given]
        self._begin(range(len(given)))

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self, row: int) -> Tokens:
        """The row's tokens, prompt included."""
        return tuple(self._rows[row].tokens)

    def used_large(self, row: int) -> list[bool]:
        """For the prompt's end and each token after it, whether the large model gave the scores."""
        return [step.large for step in self._rows[row].steps]

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        if not self._rows:
            return self._cut(self._models[0].last)
        return joined(self._scored([row.steps[-1].large for row in self._rows]))

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        """Append tokens to each row; scores after each of them.  One pass or two for each token of the longest.

        Raises `GuidedError` for another number of entries than rows, and for ids that the model does not score.
        """
        if len(tokens) != len(self):
            raise GuidedError(f"{len(tokens)} entries for {len(self)} rows", remedy="Give one for each row.")
        outside = [token for row in tokens for token in row if not 0 <= token < self._width]
        if outside:
            raise GuidedError(f"the ids {outside[:5]} are not in range({self._width})")
        found: list[list[Scores]] = [[] for _ in tokens]
        for number in range(max(map(len, tokens), default=0)):
            wanted: list[bool | None] = []
            for row, new in zip(self._rows, tokens, strict=True):
                if number >= len(new):
                    wanted.append(None)
                    continue
                row.tokens.append(int(new[number]))
                wanted.append(self._choice(row))
            for row, parts, scores, large in zip(self._rows, found, self._scored(wanted), wanted, strict=True):
                if large is not None:
                    parts.append(scores)
                    self._note(row, large, scores)
        nothing = self._cut(taken(self._models[0].last, [])) if not all(found) else None
        return [joined(parts) if parts or nothing is None else nothing for parts in found]

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        chosen = [range(len(self))[row] for row in rows]
        for sequences in self._models:
            sequences.select(chosen)
        self._rows = [self._rows[row].copy() for row in chosen]

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens; inside its prompt, what is left of it is the prompt.

        Raises `GuidedError` for another number of entries than rows, and for a length that the row does not have.
        """
        if len(lengths) != len(self):
            raise GuidedError(f"{len(lengths)} entries for {len(self)} rows", remedy="Give one for each row.")
        for row, length in zip(self._rows, lengths, strict=True):
            if not 0 <= length <= len(row.tokens):
                raise GuidedError(f"a row of {len(row.tokens)} tokens cannot be cropped to {length}")
        for number, sequences in enumerate(self._models):
            sequences.crop([min(length, row.read[number]) for length, row in zip(lengths, self._rows, strict=True)])
        shortened: list[int] = []
        for number, (row, length) in enumerate(zip(self._rows, lengths, strict=True)):
            del row.tokens[length:]
            row.read = [min(length, read) for read in row.read]
            if length < row.prompt:
                row.prompt, row.steps = length, []
                shortened.append(number)
            del row.steps[length - row.prompt + 1 :]
        self._begin(shortened)

    def extend_tree(self, trees: Sequence[Tree]) -> list[Scores]:
        """Refused: which model scores a token depends on the ones before it."""
        raise UnsupportedError(
            "entropy adaptive decoding scores no draft trees", remedy="Use extend(), and crop() to roll back."
        )

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Refused, as there are no trees."""
        raise GuidedError("there is no tree to keep a path of", remedy="Use extend().")

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        given = [tuple(int(token) for token in prompt) for prompt in prompts]
        for sequences in self._models:
            sequences.join(given)
        before = len(self._rows)
        self._rows += [_Row(prompt) for prompt in given]
        self._begin(range(before, len(self._rows)))

    def _begin(self, rows: Sequence[int]) -> None:
        """Score the ends of some rows' prompts, with the small model."""
        if not len(rows):
            return
        every = self._models[0].last
        for number in rows:
            self._note(self._rows[number], False, self._cut(taken(every, [number])))

    def _choice(self, row: _Row) -> bool:
        """Whether the large model scores the token after the one just appended."""
        step = row.steps[-1]
        return wants_large(
            step.entropies,
            step.since_switch + 1,
            step.large,
            threshold=self._how.threshold,
            least=self._how.least,
        )

    def _note(self, row: _Row, large: bool, scores: Scores) -> None:
        before = row.steps[-1] if row.steps else None
        since = before.since_switch + 1 if before is not None and before.large == large else 0
        entropies = (*(before.entropies if before is not None else ()), float(entropy_bits(scores.logits)[0]))
        row.steps.append(_Step(large, since, entropies[-self._how.window :]))

    def _scored(self, wanted: Sequence[bool | None]) -> list[Scores]:
        """For each row the scores after its last token, by the model that is wanted; each reads what it missed."""
        found: list[Scores | None] = [None] * len(wanted)
        for number, sequences in enumerate(self._models):
            asked = [large is not None and large == bool(number) for large in wanted]
            missed = [
                row.tokens[row.read[number] :] if mine else [] for row, mine in zip(self._rows, asked, strict=True)
            ]
            answers = sequences.extend(missed) if any(missed) else ()
            every = sequences.last if any(mine and not new for mine, new in zip(asked, missed)) else None
            for place, (row, mine, new) in enumerate(zip(self._rows, asked, missed, strict=True)):
                if not mine:
                    continue
                row.read[number] = len(row.tokens)
                if new:
                    found[place] = self._cut(taken(answers[place], slice(len(new) - 1, None)))
                elif every is not None:
                    found[place] = self._cut(taken(every, [place]))
        empty = Scores(torch.zeros((0, self._width)))
        return [empty if scores is None else scores for scores in found]

    def _cut(self, scores: Scores) -> Scores:
        """Only the ids that both models score."""
        return Scores(scores.logits[:, : self._width])
