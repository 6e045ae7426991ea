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
    """The prompt as it is."""

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
    """The prompt's last token alone: the unconditional context of classifier-free guidance."""

    def __call__(self, prompt: Tokens) -> Tokens:
        """Its last token."""
        return prompt[-1:]


@dataclass(frozen=True)
class Prefixed(Checked):
    """The prompt with tokens before it, after its first ``after`` ones (1 where it begins with a special token)."""

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
    """The prompt without the first occurrence of a run of tokens, such as a context; as it is if that is not in it."""

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
    """The likeliest ``k`` tokens of what comes in, and what is wanted of the text after each."""

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
    """All that one steerer needs."""

    branches: tuple[Branch, ...] = ()
    candidates: Candidates | None = None
    text: bool = False
    """The tokens so far, prompt included."""
    prompt_end: bool = False
    """That the scores depend on how much of the text is prompt; for branches with other prompts that is clear."""


@dataclass(frozen=True)
class Seen:
    """What a steerer is handed for ``n`` positions, in the dtype and on the device of the logits that come in."""

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
    """One method of steering: frozen, shared by any number of runs and threads."""

    def declare(self, model: LanguageModel) -> Declaration:
        """What it needs when it steers ``model``; raises a `GuidedError` for what that model cannot give."""

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """``[n, V]`` to ``[n, V]``, each row for itself, without writing to what comes in."""
