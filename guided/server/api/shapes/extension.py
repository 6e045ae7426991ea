"""The object ``guided`` of a request: what OpenAI's fields cannot say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from guided.server.api.shapes.base import Asked
from guided.server.api.shapes.languages import Language

__all__ = ["MOST_ALTERNATIVES", "Guided", "SamplerField", "SearchField"]

MOST_ALTERNATIVES = 20
"""Tokens listed beside each: as many as OpenAI's ``top_logprobs``."""


class SamplerField(Asked):
    """A sampler of whole texts, which corrects what masking token by token does to the model's distribution."""

    name: Literal["local", "importance", "smc", "smc-steer", "asap", "cars", "mcmc", "rejection", "best-of-n"]
    particles: int = Field(default=16, ge=1, le=4096)
    """Particles, samples or chains."""
    pick: Literal["likeliest", "draw"] = "likeliest"
    """The text of the answer: the likeliest of all, or for each of ``n`` choices one drawn by weight."""
    steps: bool = False
    """Whether a stream tells each step of the particles, from which a replay can be drawn."""


class SearchField(Asked):
    """A search over whole texts, the best of which is the answer; ``n`` is how many are wanted."""

    name: Literal["beam", "best-first", "diverse", "grid", "dynamic", "neurologic"] | None = None
    """Null: the one that places phrases."""
    beams: int | None = Field(default=None, ge=1, le=256)
    length_penalty: float | None = None
    must_include: list[Annotated[list[str], Field(min_length=1)]] = Field(default_factory=list)
    """Phrases that must occur, each a list of texts of which one suffices."""
    must_exclude: list[Annotated[list[str], Field(min_length=1)]] = Field(default_factory=list)


class Guided(Asked):
    """What a request asks for beyond OpenAI's fields; all of it is optional."""

    grammar: Language | None = None
    """What the text must be; in place of ``response_format`` and ``tools``."""
    sampler: SamplerField | None = None
    search: SearchField | None = None
    steer: list[str] = Field(default_factory=list)
    """Names of steerers that the server was configured with, in the order in which they apply."""
    draft: str | None = None
    """The name of a draft that the server was configured with."""
    tokens: bool = False
    """Whether the answer lists its tokens: probabilities before and after the mask, and what the mask took away."""
    alternatives: int = Field(default=0, ge=0, le=MOST_ALTERNATIVES)
    """With ``tokens``: how many of the model's likeliest tokens stand beside each, refused ones among them."""
    explain: bool = False
    """With ``alternatives``: whether those that were refused say why."""
    logprobs: Literal["after_mask", "before_mask"] = "after_mask"
    """Which law OpenAI's ``logprobs`` are of: the one drawn from, or the model's own."""
    top_k: int = Field(default=0, ge=0)
    """Only the likeliest so many tokens are drawn from; 0: all."""
    whitespace: str | None = None
    """White space in JSON of ``response_format`` and of tools' arguments, as `guided.json_schema` takes it."""
    thinking_tokens: int | None = Field(default=None, ge=0)
    """Of reasoning before a grammar, as `guided.think` takes ``max_tokens``."""
