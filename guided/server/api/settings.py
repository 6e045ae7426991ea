"""`Settings`: what a server is started with, besides its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from guided.grammar.tags import ToolStyle

if TYPE_CHECKING:
    from guided.draft.auto import Drafting
    from guided.grammar.sql import DatabaseSchema
    from guided.steer import Stack

__all__ = ["Settings", "Thinking"]


@dataclass(frozen=True)
class Thinking:
    """How the model writes its reasoning."""

    begin: str | None = "<think>"
    """None: prompts of its chat template end with it."""
    end: str = "</think>"


@dataclass(frozen=True)
class Settings:
    """What is allowed, and what requests may name."""

    aliases: tuple[str, ...] = ()
    """Names of the model besides its own, for clients that know only some names."""
    keys: tuple[str, ...] = field(default=(), repr=False)
    """Bearer keys, any of which will do; none: everybody who can reach the server may use it."""
    local: bool = True
    """Whether the server is asked for by a name of this machine alone."""
    origins: tuple[str, ...] = ()
    """Sites whose pages may ask, by CORS."""
    most_bytes: int = 2 << 20
    """Of a body: some 2,000 times the packaged model's context; schemas of JSONSchemaBench have up to 0.5 MB."""
    most_texts: int = 256
    """Texts of one request: prompts times ``n``."""
    default_tokens: int = 512
    """Tokens of a text where a request does not say: about 2,000 characters of JSON."""
    compile_seconds: float = 20.0
    """How long a request waits for its grammar."""
    grace_seconds: float = 30.0
    """How long running requests may go on once the server is told to stop."""
    tool_style: ToolStyle = ToolStyle.HERMES
    thinking: Thinking | None = None
    log_contents: bool = False
    databases: Mapping[str, DatabaseSchema] = field(default_factory=dict)
    steerers: Mapping[str, Stack] = field(default_factory=dict)
    drafts: Mapping[str, Drafting] = field(default_factory=dict)
