"""The object ``guided`` of an answer: tokens, weights, evidence."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from guided.server.api.shapes.base import Answered

__all__ = [
    "AlternativeReport", "ChoiceReport", "FieldReport", "SamplerReport", "SearchReport", "StepReport", "TextReport",
    "TokenReport", "ValueReport",
]  # fmt: skip


class AlternativeReport(Answered):
    """A token that might have come instead."""

    id: int
    text: str
    bytes: list[int]
    logprob: float | None
    """In the law drawn from, in nats; null for minus infinity."""
    model_logprob: float | None
    """The model's own, before the mask."""
    allowed: bool
    why: str | None = None
    """With ``explain``: why it was refused."""


class TokenReport(Answered):
    """A token of the text."""

    id: int
    text: str
    """The characters that it completed; special tokens by name."""
    bytes: list[int]
    logprob: float | None
    """In the law drawn from: mask, temperature and truncation applied.  In nats."""
    model_logprob: float | None
    """The model's own, before the mask.  Null where an algorithm that looks at whole texts does not say it."""
    removed: float | None
    """The probability of the model's own law that the mask took away here."""
    drafted: bool
    alternatives: list[AlternativeReport] = Field(default_factory=list)


class ValueReport(Answered):
    """One value that a field has in some of the texts."""

    value: Any
    probability: float
    standard_error: float
    count: int


class FieldReport(Answered):
    """What the texts together say of one field."""

    alternatives: list[ValueReport]
    absent: float
    """The weight of texts that do not have it."""


class TextReport(Answered):
    """One of the texts that a sampler drew or a search found."""

    text: str
    weight: float | None = None
    """Its share of all weight: a sampler's."""
    score: float | None = None
    """Its log-probability: a search's."""


class SamplerReport(Answered):
    """What a sampler found, with its evidence."""

    name: str
    particles: int
    texts: list[TextReport]
    """Each finished text with its weight, the likeliest first."""
    log_ml: float | None
    """The logarithm of the estimated probability that the model meets the grammar; null where it is not learned, or
    minus infinity."""
    log_ml_error: float | None
    """Its standard error; null where one run cannot tell."""
    ess: float | None
    """The effective sample size."""
    missing: int = 0
    """Samples asked for that were not found."""
    fields: dict[str, FieldReport] | None
    """For JSON: the probability of each field's values, by JSON pointer."""


class SearchReport(Answered):
    """What a search found."""

    name: str
    texts: list[TextReport]
    passes: int
    """Forward passes of the model."""
    rows: int
    """Positions over all passes."""


class StepReport(Answered):
    """One step of a sampler's particles; texts of tokens are in ``tokens``."""

    number: int
    tokens: list[str | None]
    logw: list[float | None]
    """Log weights before any resampling; null for minus infinity."""
    ess: float
    ancestors: list[int] | None
    """Where the population was resampled: particle i goes on from old particle ``ancestors[i]``."""
    parents: list[int] | None
    """Where the step began with copies: entry i goes on from old particle ``parents[i]``."""
    finished: int


class ChoiceReport(Answered):
    """What a choice, or a chunk of one, says beyond OpenAI's fields."""

    tokens: list[TokenReport] | None = None
    logprobs: Literal["after_mask", "before_mask"] | None = None
    """Which law OpenAI's ``logprobs`` are of, where they were asked for."""
    sampler: SamplerReport | None = None
    search: SearchReport | None = None
    step: StepReport | None = None
