"""What a notebook shows of a grammar: the function and the text that it was made of, and what the user should know."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sized
from typing import Any, Protocol

from guided.html import card, facts, preformatted

__all__ = ["grammar_facts", "grammar_html"]


class _Made(Protocol):
    """What is read of a `Grammar`."""

    @property
    def rules(self) -> Sized: ...
    @property
    def language(self) -> Callable[..., object] | None: ...
    @property
    def rebuild(self) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]] | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def special_tokens(self) -> tuple[str, ...]: ...


def grammar_html(grammar: _Made) -> str:
    """Cheap: rules that were not made yet are not made."""
    return card("Grammar", facts(grammar_facts(grammar)), preformatted(_source(grammar)))


def grammar_facts(grammar: _Made) -> list[tuple[str, object]]:
    """What was asked for, in a line each."""
    known: list[tuple[str, object]] = []
    if grammar.rebuild is not None:
        function, _, options = grammar.rebuild
        given = ", ".join(f"{name}={value!r}" for name, value in options.items() if value)
        known.append(("made by", f"{function.__name__}, {given}" if given else function.__name__))
    known.append(("rules", "none: L-attributed" if grammar.language is not None else f"{len(grammar.rules):,}"))
    if grammar.special_tokens:
        known.append(("special tokens", ", ".join(grammar.special_tokens)))
    return [*known, *(("note", note) for note in grammar.notes)]


def _source(grammar: _Made) -> str:
    """The text that the grammar was made of; several parts a line each."""
    if grammar.rebuild is None:
        return ""
    parts = []
    for part in grammar.rebuild[1]:
        text = part if isinstance(part, str) else repr(part)
        if text[:1] in ("{", "["):
            with contextlib.suppress(ValueError):
                # A schema is kept as one line.
                text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        parts.append(text)
    return "\n".join(parts)
