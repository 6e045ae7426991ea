"""What a steerer asks for and what it is handed: declarations are data, and the runner supplies what they name.

A steerer never runs a model.  It declares branches (a model, a prompt, what is wanted of each position), candidates
(with rewards, or hidden states one token ahead) and whether it reads the text so far; at each step it is handed those
and the logits that come in, and returns logits.  Nothing here computes a score.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Protocol, runtime_checkable

import torch

from guided.errors import GuidedError
from guided.lm.given import language_model
from guided.lm.model import NOTHING, LanguageModel, Needs, Scores
from guided.steer.fields import Checked, Range
from guided.steer.rewards.text_reward import TextReward

__all__ = [
    "AsGiven",
    "Branch",
    "Candidates",
    "Declaration",
    "LastToken",
    "Prefixed",
    "Prompt",
    "Replaced",
    "Seen",
    "Steerer",
    "Without",
]

Tokens = tuple[int, ...]

Prompt = Annotated[Callable[[Tokens], Sequence[int]], "a function of the prompt's ids, such as Replaced(ids)"]
"""What a branch reads in place of the prompt: a pure, hashable function from the prompt's ids to others."""


def _token_ids(tokens: Sequence[int], where: str) -> Tokens:
    if isinstance(tokens, (str, bytes)):
        raise GuidedError(
            "a text was given for token ids", where=where, remedy="Pass the ids that the model's tokenizer gives it."
        )
    try:
        return tuple(operator.index(token) for token in tokens)
    except TypeError:
        raise GuidedError(f"{tokens!r} are no token ids", where=where, remedy="Pass a sequence of integers.") from None


@dataclass(frozen=True)
class AsGiven:
    """The prompt as it is.

    >>> from guided.steer import AsGiven
    >>> AsGiven()((5, 6, 7))
    (5, 6, 7)
    """

    def __call__(self, prompt: Tokens) -> Tokens:
        """The prompt."""
        return prompt


@dataclass(frozen=True)
class Replaced:
    """Another prompt altogether, such as a negative one; at least one id, a beginning-of-text id included if needed.

    Raises `GuidedError` without ids.
    """

    tokens: Tokens

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", _token_ids(self.tokens, type(self).__name__))
        if not self.tokens:
            raise GuidedError("a prompt has no tokens", where="Replaced", remedy="Pass at least one id.")

    def __call__(self, prompt: Tokens) -> Tokens:
        """The other prompt."""
        return self.tokens


@dataclass(frozen=True)
class LastToken:
    """The prompt's last token alone: the unconditional context of classifier-free guidance.

    >>> from guided.steer import ClassifierFree, LastToken
    >>> LastToken()((5, 6, 7))  # ClassifierFree(scale=1.5) contrasts the prompt with this
    (7,)
    """

    def __call__(self, prompt: Tokens) -> Tokens:
        """Its last token."""
        return prompt[-1:]


@dataclass(frozen=True)
class Prefixed(Checked):
    """The prompt with tokens before it, after its first ``after`` ones (1 where it begins with a special token).

    >>> from guided.steer import Prefixed
    >>> Prefixed((8, 9))((1, 5, 6)), Prefixed((8, 9), after=1)((1, 5, 6))
    ((8, 9, 1, 5, 6), (1, 8, 9, 5, 6))
    """

    tokens: Tokens
    after: Annotated[int, Range(0)] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", _token_ids(self.tokens, type(self).__name__))
        super().__post_init__()

    def __call__(self, prompt: Tokens) -> Tokens:
        """The longer prompt."""
        return prompt[: self.after] + self.tokens + prompt[self.after :]


@dataclass(frozen=True)
class Without:
    """The prompt without the first occurrence of a run of tokens, such as a context; as it is if that is not in it.

    >>> from guided.steer import Without
    >>> Without((6, 7))((1, 6, 7, 2)), Without((6, 7))((1, 2))
    ((1, 2), (1, 2))
    """

    tokens: Tokens

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", _token_ids(self.tokens, type(self).__name__))

    def __call__(self, prompt: Tokens) -> Tokens:
        """The shorter prompt."""
        size = len(self.tokens)
        for start in range(len(prompt) - size + 1):
            if prompt[start : start + size] == self.tokens:
                return prompt[:start] + prompt[start + size :]
        return prompt


@dataclass(frozen=True, eq=False)
class Branch:
    """A model run on a prompt beside the one that is steered, fed the same tokens after it.

    Raises `GuidedError` where ``prompt`` is no function.

    >>> from guided.lm import Needs
    >>> from guided.steer import Branch, LastToken
    >>> unconditional = Branch(prompt=LastToken())  # the steered model itself, on another prompt
    >>> unconditional.model is None, unconditional.prompt((5, 6, 7)), Branch(needs=Needs(hidden=True)).needs.hidden
    (True, (7,), True)
    """

    model: LanguageModel | None = None
    """None: the steered model itself.  Any other must score the same ids; `language_model` reads what is given."""
    prompt: Prompt = field(default_factory=AsGiven)
    needs: Needs = NOTHING

    def __post_init__(self) -> None:
        if self.model is not None:
            object.__setattr__(self, "model", language_model(self.model))
        if not callable(self.prompt):
            raise GuidedError(
                f"{self.prompt!r} is no function from a prompt to another",
                where="the prompt of a branch",
                remedy="Pass Replaced(ids), Prefixed(ids), Without(ids), or a function of the prompt's ids.",
            )


@dataclass(frozen=True, eq=False)
class Candidates:
    """The likeliest ``k`` tokens of what comes in, and what is wanted of the text after each.

    >>> from guided.lm import TableModel
    >>> from guided.steer import ARGS, TextReward
    >>> reward = TextReward(lambda texts: [float(len(text)) for text in texts], str)
    >>> wanted = ARGS(reward, top_k=2).declare(TableModel.of({}, otherwise=[0.5, 0.3, 0.2])).candidates
    >>> wanted.k, wanted.reward is reward
    (2, True)
    """

    k: int
    reward: TextReward | None = None
    """Scores of the texts."""
    ahead: Branch | None = None
    """The hidden state of this branch after each candidate: one more pass over ``k`` tokens a row."""
    history: bool = False
    """With ``ahead``: its hidden states of all tokens so far, too."""
    behind: Branch | None = None
    """Without ``ahead``: the hidden states of this branch of all tokens so far, at no pass more."""

    @property
    def watched(self) -> Branch | None:
        """The branch whose hidden states are wanted."""
        return self.behind if self.ahead is None else self.ahead


@dataclass(frozen=True)
class Declaration:
    """All that one steerer needs.

    >>> from guided.lm import TableModel
    >>> from guided.steer import ClassifierFree, DExperts
    >>> model, expert = (TableModel.of({}, otherwise=[0.5, 0.3, 0.2]) for _ in range(2))
    >>> len(ClassifierFree(scale=1.5).declare(model).branches)  # the model on another prompt
    1
    >>> [branch.model is expert for branch in DExperts(expert, expert).declare(model).branches]
    [True, True]
    """

    branches: tuple[Branch, ...] = ()
    candidates: Candidates | None = None
    text: bool = False
    """The tokens so far, prompt included."""
    prompt_end: bool = False
    """That the scores depend on how much of the text is prompt; for branches with other prompts that is clear."""


@dataclass(frozen=True)
class Seen:
    """What a steerer is handed for ``n`` positions, in the dtype and on the device of the logits that come in.

    >>> import torch
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Declaration, Seen, Stack
    >>> class NoRepeat:
    ...     def declare(self, model):
    ...         return Declaration(text=True)
    ...     def steer(self, logits, seen):
    ...         lower = logits.clone()
    ...         for row, text in zip(lower, seen.texts):
    ...             row[list(text)] = -float("inf")
    ...         return lower
    >>> model = TableModel.of({}, otherwise=[0.5, 0.3, 0.2])
    >>> next_logits(Stack([NoRepeat()]).over(model), [[0], [1]]).softmax(-1).numpy().round(2).tolist()
    [[0.0, 0.6, 0.4], [0.71, 0.0, 0.29]]
    >>> NoRepeat().steer(torch.zeros(1, 3), Seen(texts=((2,),))).tolist()
    [[0.0, 0.0, -inf]]
    """

    branches: tuple[Scores, ...] = ()
    """One for each declared branch, in order, ``[n, ...]``."""
    candidates: torch.Tensor | None = None
    """``int64[n, k]``, likeliest first."""
    rewards: torch.Tensor | None = None
    """``[n, k]``; 0 for candidates that are excluded."""
    ahead: torch.Tensor | None = None
    """``[n, k, d]``."""
    history: tuple[torch.Tensor, ...] = ()
    """One ``[t, d]`` for each position."""
    texts: tuple[Tokens, ...] = ()
    """The tokens so far of each position."""
    prompt_lengths: tuple[int, ...] = ()
    """How many of each text are prompt; a steerer that reads them declares ``prompt_end``."""
    rows: tuple[int, ...] = ()
    """The row of each position, by its number when it was started or joined; a fork has its origin's.  There wherever
    texts are, in a `SteeredModel`."""

    @property
    def scored(self) -> torch.Tensor:
        """The candidates, which were declared."""
        assert self.candidates is not None
        return self.candidates


@runtime_checkable
class Steerer(Protocol):
    """One method of steering: frozen, shared by any number of runs and threads.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Declaration, Stack
    >>> class Hotter:  # two methods make a steerer
    ...     def declare(self, model):
    ...         return Declaration()
    ...     def steer(self, logits, seen):
    ...         return logits / 2.0
    >>> model = TableModel.of({}, otherwise=[0.8, 0.1, 0.1])
    >>> next_logits(Stack([Hotter()]).over(model), [[0]]).softmax(-1).numpy().round(3).tolist()
    [[0.586, 0.207, 0.207]]
    """

    def declare(self, model: LanguageModel) -> Declaration:
        """What it needs when it steers ``model``; raises a `GuidedError` for what that model cannot give."""

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """``[n, V]`` to ``[n, V]``, each row for itself, without writing to what comes in."""
