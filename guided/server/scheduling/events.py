"""What comes back of a `Job`: a `Token` for each token, then one `Finished` or `Failed`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from guided.errors import GuidedError

__all__ = ["Alternative", "Event", "Failed", "Finished", "Reason", "Token"]


class Reason(Enum):
    """Why a text ended."""

    STOP = "an end-of-text token or a stop string"
    LENGTH = "max_new_tokens"
    CANCELLED = "nobody wants it any more"
    TIME = "the time that a job may take"


@dataclass(frozen=True)
class Alternative:
    """A token that might have come."""

    id: int
    data: bytes
    logprob: float
    """As `Token.logprob`; ``-inf`` where the token could not be drawn."""
    model_logprob: float
    allowed: bool
    """Whether the mask has it."""


@dataclass(frozen=True)
class Token:
    """One token of the text.

    Two laws are told apart.  The model's own is the softmax of its logits, steered where the job says so.  The law
    drawn from is that under the mask, the temperature and the truncation; of greedy jobs it is the masked law at
    temperature 1, of which they take the likeliest token.
    """

    id: int
    data: bytes
    """The token's bytes; empty for an end-of-text token."""
    text: str
    """What this token adds to the text: empty while a character, or what may be a stop string, is not complete."""
    logprob: float
    """Nats, in the law drawn from."""
    model_logprob: float
    """Nats, in the model's own law."""
    removed: float
    """The probability, in the model's own law, of all tokens that the mask forbids here."""
    drafted: bool = False
    """Whether a draft had it."""
    alternatives: tuple[Alternative, ...] = ()
    """The likeliest by each of both laws, in the order of `model_logprob`; so up to twice as many as were asked for."""


@dataclass(frozen=True)
class Finished:
    """The end of a text.

    ``text`` is that of all tokens and then ``tail``, which is empty unless the job was cut (`Reason.CANCELLED`,
    `Reason.TIME`) while something was held back.
    """

    reason: Reason
    text: str
    prompt_tokens: int
    completion_tokens: int
    """The end-of-text token included."""
    cached_tokens: int
    """Tokens of the prompt that were computed before, for this job or another."""
    whole: bool
    """Whether the text is a whole one of its constraint; without a constraint, whether an end-of-text token came."""
    stop: str | None = None
    """The stop string at which the text ended."""
    tail: str = ""


@dataclass(frozen=True)
class Failed:
    """A job that cannot go on."""

    error: GuidedError


Event: TypeAlias = "Token | Finished | Failed"
