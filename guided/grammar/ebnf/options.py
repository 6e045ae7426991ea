"""The options of an EBNF rule, ``name[lazy, max_chars=10] ::= ...``: what they do to its language, and what they say.

``lazy`` and ``max_chars`` change a language, and ``max_tokens`` limits its tokens, of rules that are regular.
``capture`` and ``temperature`` and what XGrammar prints for its own use change none: they become notes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.regular.commitment import ended_after, shortest_matches
from guided.grammar.regular.expr import Expr

__all__ = ["RuleOptions", "read_options"]

_OPTION = re.compile(r"\s*([a-z_]+)\s*(?:=\s*(\"[^\"]*\"|[0-9.eE+-]+))?\s*")
_INTEGERS = frozenset(
    (
        *("max_tokens", "max_chars", "capture_hidden_suffix_bytes", "capture_hidden_stop_bytes"),
        *("capture_hidden_body_rule_id", "capture_hidden_marker_rule_id"),
    )
)


@dataclass(frozen=True, slots=True)
class RuleEnding:
    """What XGrammar prints of a rule with a marker: its bytes, or the numbers of the rules for body and marker."""

    n_bytes: int
    is_hidden: bool
    body_rule: int | None
    marker_rule: int | None


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """What changes the language, and what is only said."""

    lazy: bool = False
    max_chars: int | None = None
    notes: tuple[str, ...] = ()
    capture: str | None = None
    marker_capture: str | None = None
    ending: RuleEnding | None = None
    max_tokens: int | None = None

    @property
    def change_language(self) -> bool:
        """Do they, or limit its tokens?"""
        return self.lazy or self.max_chars is not None or self.max_tokens is not None

    @property
    def shown(self) -> str:
        """The first of those that do, as it is written."""
        if self.lazy:
            return "lazy"
        return f"max_chars={self.max_chars}" if self.max_chars is not None else f"max_tokens={self.max_tokens}"

    @property
    def name_parts(self) -> bool:
        """Do they say something about reading texts?"""
        return self.capture is not None or self.marker_capture is not None or self.ending is not None

    def applied(self, language: Expr) -> Expr:
        """The language under these options."""
        if self.lazy:
            language = shortest_matches(language)
        return language if self.max_chars is None else ended_after(language, self.max_chars)


def read_options(written: str, rule: str, where: str) -> RuleOptions:
    """The options between brackets; raises `GrammarError`, and `UnsupportedError` for ``max_tokens=0``.

    >>> read_options("[lazy, temperature=0.7]", "name", "line 1, column 1").notes
    ('rule name: temperature=0.7 is for the sampler and changes no text',)
    """
    found: dict[str, str | None] = {}
    for option in _parts(written[1:-1]):
        match = _OPTION.fullmatch(option)
        name = match[1] if match else option.strip()
        if match is None or not _fits(name, match[2]):
            raise GrammarError(
                f"rule {rule!r} has the option {option.strip()!r}, which XGrammar does not know",
                where=where,
                remedy='Options are lazy, max_chars=N, capture, capture="name", temperature=X and max_tokens=N.',
            )
        if name in found:
            raise GrammarError(f"rule {rule!r} has the option {name} twice", where=where, remedy="Keep one.")
        found[name] = match[2]
    max_tokens = found.get("max_tokens")
    if max_tokens is not None and int(max_tokens) == 0:
        raise UnsupportedError(
            f"max_tokens=0 of rule {rule!r}, of which XGrammar reads the end of a token that begins before it",
            where=where,
            remedy="Leave the rule out, or let it be 1 or more.",
        )
    said = {"temperature": "for the sampler", "capture": "for guided.captures", "stop_capture": "for guided.captures"}
    notes = []
    for name, value in found.items():
        if name in said:
            shown = name if value is None else f"{name}={value}"
            notes.append(f"rule {rule}: {shown} is {said[name]} and changes no text")
    return RuleOptions(
        lazy="lazy" in found,
        max_chars=_number(found, "max_chars"),
        notes=tuple(notes),
        capture=_unquoted(found["capture"] or f'"{rule}"') if "capture" in found else None,
        marker_capture=_unquoted(found.get("stop_capture")),
        ending=_ending(found),
        max_tokens=_number(found, "max_tokens"),
    )


def _ending(found: Mapping[str, str | None]) -> RuleEnding | None:
    for key in ("capture_hidden_suffix_bytes", "capture_hidden_stop_bytes"):
        n_bytes = _number(found, key)
        if n_bytes is not None:
            rules = (_number(found, f"capture_hidden_{part}_rule_id") for part in ("body", "marker"))
            return RuleEnding(n_bytes, "stop" in key, *rules)
    return None


def _number(found: Mapping[str, str | None], name: str) -> int | None:
    value = found.get(name)
    return None if value is None else int(value)


def _unquoted(value: str | None) -> str | None:
    return None if value is None else value[1:-1]


def _parts(inside: str) -> list[str]:
    return re.findall(r"(?:\"[^\"]*\"|[^,\"])+", inside) or [""]


def _fits(name: str, value: str | None) -> bool:
    if name == "lazy":
        return value is None
    if name == "capture":
        return value is None or (value.startswith('"') and len(value) > 2)
    if name == "stop_capture":
        return value is not None and value.startswith('"') and len(value) > 2
    if name == "temperature":
        return value is not None and re.fullmatch(r"[0-9.]+(?:[eE][+-]?[0-9]+)?", value) is not None
    return name in _INTEGERS and value is not None and value.isdigit() and len(value) <= 10
