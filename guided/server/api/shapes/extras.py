"""``/v1/models``, ``/v1/tokenize``, ``/health`` and the endpoints under ``/v1/guided``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from guided.server.api.shapes.base import Answered, Asked
from guided.server.api.shapes.languages import Language

__all__ = [
    "CheckAnswer", "CheckRequest", "CompleteAnswer", "CompleteRequest", "ExplainAnswer", "ExplainRequest", "Fault",
    "Health", "KeywordReport", "ModelAbilities", "ModelCard", "ModelList", "Suggestion", "TokenizeAnswer",
    "TokenizeRequest",
]  # fmt: skip


class ModelAbilities(Answered):
    """What requests for the model may name."""

    steerers: list[str]
    drafts: list[str]
    databases: list[str]
    samplers: list[str]
    searches: list[str]
    tool_style: str
    reasoning: bool
    context: int | None
    """Tokens of prompt and text together."""
    toy: bool
    """Whether it is a packaged model, whose answers have the right form and often a wrong content."""


class ModelCard(Answered):
    """A model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["guided"] = "guided"
    guided: ModelAbilities


class ModelList(Answered):
    """The model by each of its names."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class TokenizeRequest(Asked):
    """A text."""

    model: str
    text: str
    add_special_tokens: bool = False


class TokenizeAnswer(Answered):
    """Its tokens, and the bytes of each; null for special tokens."""

    ids: list[int]
    bytes: list[list[int] | None]
    count: int


class Health(Answered):
    """Whether the server takes requests."""

    status: Literal["ok", "closing"]
    model: str
    version: str


class ExplainRequest(Asked):
    """A token or text that is asked about: may it come behind ``prefix``?"""

    model: str
    grammar: Language
    prefix: str = ""
    """What the text says so far."""
    prefix_ids: list[int] | None = None
    """The same as token ids, in place of ``prefix``."""
    token: int | None = None
    text: str | None = Field(default=None, min_length=1)
    """In place of ``token``."""


class ExplainAnswer(Answered):
    """Whether it may come, and why."""

    allowed: bool
    why: str
    may_end: bool
    """Whether the text may end behind the prefix."""
    forced: str
    """What must come next, whatever the model says."""
    pointer: str | None
    """In JSON: the value that is being written behind the prefix, as a JSON pointer."""


class CheckRequest(Asked):
    """A schema or grammar as it is being written."""

    model: str
    grammar: Language


class Fault(Answered):
    """Why it cannot be enforced."""

    kind: str
    message: str
    where: str | None
    """A JSON pointer, a line and column, or an offset."""
    remedy: str | None


class KeywordReport(Answered):
    """What becomes of one keyword of a schema."""

    pointer: str
    enforcement: str
    reason: str


class CheckAnswer(Answered):
    """Whether it can be enforced."""

    ok: bool
    fault: Fault | None
    notes: list[str]
    """How parts of it are read."""
    keywords: list[KeywordReport]
    """Of a JSON Schema."""
    shortest: int | None
    """Tokens of the shortest text."""


class CompleteRequest(Asked):
    """The text of a JSON Schema up to where it is being written."""

    model: str
    text: str


class Suggestion(Answered):
    """What may come next."""

    insert: str
    """To be put behind the text."""
    label: str
    kind: Literal["keyword", "value", "punctuation"]


class CompleteAnswer(Answered):
    """What the meta-schema allows next; ``valid`` is false where the text so far is no beginning of a schema."""

    valid: bool
    suggestions: list[Suggestion]
    pointer: str | None
