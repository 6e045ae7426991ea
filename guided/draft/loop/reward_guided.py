"""`reward_guided`: a small model writes steps, and a reward says which stay.  The output has *not* the target's law.

Reward-guided speculative decoding (Liao et al., 2025, arXiv 2501.19324): the draft model writes a step, for instance up
to an empty line; if its reward is at least ``least`` it stays, and otherwise the target writes that step instead.  What
comes out is a mixture of both models' laws, by design.  Both write under the constraint, so texts stay in its language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from guided.constraint.protocol import Constrains
from guided.draft.masks import RowMasks
from guided.draft.models.model import check_ids
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.distribution import distributions_of
from guided.lm.model import LanguageModel, Sequences

__all__ = ["RewardGuided", "Step", "reward_guided"]

Reward = Callable[[Sequence[int], Sequence[int]], float]
"""How good a step is: called with the prompt and text before it, and its tokens."""
EndsStep = Callable[[Sequence[int]], bool]
"""Whether a step of these tokens is whole."""


@dataclass(frozen=True)
class Step:
    """A step of a text."""

    tokens: tuple[int, ...]
    reward: float
    """Of the step that the draft model wrote, kept or not."""
    by_draft: bool


@dataclass(frozen=True)
class RewardGuided:
    """A text that two models wrote together.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> def reward(before, step):  # steps with a 2 are good enough
    ...     return float(2 in step)
    >>> small = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 2) % 3], width=4, eos_ids=[3])  # 0 2 1 0 2 1
    >>> def ends(step):
    ...     return len(step) == 2
    >>> found = draft.reward_guided(0, model, small, [0], None, reward, ends, max_tokens=8, greedy=True)
    >>> found.tokens, found.share_by_draft, [step.by_draft for step in found.steps]
    ((2, 1, 0, 2, 0, 1, 0, 2), 0.75, [True, True, False, True])
    """

    tokens: tuple[int, ...]
    finished: bool
    """True when an end-of-text id came, and not the limit of tokens."""
    steps: tuple[Step, ...]

    @property
    def share_by_draft(self) -> float:
        """The share of tokens that the draft model wrote."""
        own = sum(len(step.tokens) for step in self.steps if step.by_draft)
        return own / len(self.tokens) if self.tokens else 0.0


def reward_guided(
    rng: Random,
    model: LanguageModel,
    draft: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains | None,
    reward: Reward,
    ends_step: EndsStep,
    *,
    least: float = 0.7,
    max_tokens: int = 256,
    greedy: bool = False,
) -> RewardGuided:
    """Write one text by steps of ``draft`` whose reward is at least ``least``, and steps of ``model`` for the others.

    Lossy: the law is neither model's.  Texts end within ``max_tokens`` where the constraint knows how; raises
    `VocabularyError` for models of other ids.  Of two models of one tokenizer whose matrices are padded to different
    widths, ids that only one has are not written.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> small = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 2) % 3], width=4, eos_ids=[3])  # 0 2 1 0 2 1
    >>> def reward(before, step):
    ...     return 0.5
    >>> def ends(step):
    ...     return len(step) == 2
    >>> def share(least):
    ...     found = draft.reward_guided(0, model, small, [0], None, reward, ends, least=least, max_tokens=8)
    ...     return found.share_by_draft
    >>> share(0.4), share(0.7)
    (1.0, 0.0)
    """
    check_ids(model, draft)
    width = min(model.width, draft.width)
    writer = _Writer(chance_of(rng), prompt, constraint, width, model.eos_ids, ends_step, max_tokens, greedy)
    small, large = _Reader(draft, prompt), _Reader(model, prompt)
    steps: list[Step] = []
    while not writer.finished and len(writer.text) < max_tokens:
        step = writer.step(small)
        value = float(reward([*prompt, *writer.text], step))
        by_draft = value >= least
        if not by_draft:
            step = writer.step(large)
        steps.append(Step(tuple(step), value, by_draft))
        writer.take(step)
    return RewardGuided(tuple(writer.text), writer.finished, tuple(steps))


class _Reader:
    """One model with its cache on the text."""

    def __init__(self, model: LanguageModel, prompt: Sequence[int]) -> None:
        self.sequences: Sequences = model.start([list(prompt)])
        self.n_prompt = len(prompt)

    def go_to(self, text: Sequence[int]) -> None:
        """Read the text that was decided on, and forget what was not."""
        cached = self.sequences.tokens(0)[self.n_prompt :]
        same = next(
            (i for i, (a, b) in enumerate(zip(cached, text, strict=False)) if a != b), min(len(cached), len(text))
        )
        if same < len(cached):
            self.sequences.crop([self.n_prompt + same])
        if same < len(text):
            self.sequences.extend([list(text[same:])])


class _Writer:
    """The text so far, and the steps that may follow it."""

    def __init__(
        self,
        chance: Chance,
        prompt: Sequence[int],
        constraint: Constrains | None,
        width: int,
        eos_ids: frozenset[int],
        ends_step: EndsStep,
        max_tokens: int,
        greedy: bool,
    ) -> None:
        self.chance = chance
        self.eos_ids = eos_ids
        self.width = width
        self.ends_step = ends_step
        self.max_tokens = max_tokens
        self.greedy = greedy
        self.masks = RowMasks(constraint, end_in_time=True)
        self.text: list[int] = []
        self.masks.check_start(max_tokens)
        self.state = self.masks.start
        self.finished = False

    def step(self, reader: _Reader) -> list[int]:
        """One step of a model, up to its end, the text's, or the limit."""
        reader.go_to(self.text)
        found: list[int] = []
        state = self.state
        while len(self.text) + len(found) < self.max_tokens:
            distribution = distributions_of(reader.sequences.last.logits, self.width)[0]
            allowed = self.masks.allowed(state, self.max_tokens - len(self.text) - len(found), self.width)
            if allowed is not None:
                distribution = distribution.only(allowed)
            token = int(distribution.weights.argmax()) if self.greedy else self.chance.token(distribution)
            found.append(token)
            state = self.masks.advance(state, token)
            if token in self.eos_ids or self.ends_step(found):
                break
            reader.sequences.extend([[token]])
        return found

    def take(self, step: Sequence[int]) -> None:
        """The step stays."""
        self.masks.next_round()
        self.text += step
        for token in step:
            self.state = self.masks.advance(self.state, token)
        self.finished = self.text[-1] in self.eos_ids
