"""The rules of a grammar in a dialect of Lark's notation as pieces: what both dialects read alike.

How terminals are cut from the text is each dialect's own: `guided.grammar.lark_dialects.xgrammar` and ``llguidance``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.folding import place_of
from guided.grammar.ir import Grammar, Sequence, Terminal
from guided.grammar.lark_dialects.lexing import UNKNOWN, Ends
from guided.grammar.lark_dialects.terminals import Terminals
from guided.grammar.lark_dialects.tree import (
    Json,
    Literal,
    Nested,
    OtherGrammar,
    RuleDefinition,
    SpecialToken,
)
from guided.grammar.named import Ending, NamedRule, NamedRules
from guided.grammar.pieces import Definition, Piece, Special, Whole
from guided.grammar.rules import every_rule
from guided.grammar.special import names_of_reference

__all__ = [
    "Inputs",
    "Lowered",
    "check_options",
    "embedded",
    "most_tokens",
    "named_rule",
    "note_attributes",
    "special_piece",
    "stands_for_text",
]

_LEXEME = frozenset(("lazy", "max_tokens", "stop", "suffix", "temperature"))
"""Attributes that make a rule one lexeme."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """The rules as pieces, and what is to be said about them."""

    definitions: Mapping[str, Definition]
    notes: tuple[str, ...]
    named: NamedRules
    ends: Ends = UNKNOWN
    """With what its texts begin and might go on."""


@dataclass(slots=True)
class Inputs:
    """What a grammar is read with: its text, a tokenizer's special tokens, grammars by name."""

    text: str
    special_tokens: Mapping[str, int] | None
    grammars: Mapping[str, Grammar]
    nested: Callable[[Nested], tuple[Grammar, Ends]]
    """Makes the grammar of ``%lark {...}``."""
    schema: Callable[[object], Grammar]
    """Makes the grammar of a JSON Schema."""
    notes: list[str] = field(default_factory=list)

    def place(self, offset: int) -> str:
        """Line and column."""
        return place_of(self.text, offset)


def embedded(node: Json | Nested | OtherGrammar, inputs: Inputs) -> tuple[Piece, Ends]:
    """A grammar inside this one, and with what its texts begin and might go on, where that is known."""
    where = inputs.place(node.offset)
    match node:
        case Json(schema):
            try:
                return Whole(_without_space_around(inputs.schema(schema)), where), UNKNOWN
            except GuidedError as error:
                inside = f" (at {error.where})" if error.where else ""
                raise type(error)(f"%json: {error.what}{inside}", where=where, remedy=error.remedy) from error
        case Nested():
            grammar, ends = inputs.nested(node)
            return Whole(grammar, where), ends
        case OtherGrammar(name):
            if name not in inputs.grammars:
                known = ", ".join(inputs.grammars) or "none"
                raise GrammarError(
                    f"there is no grammar @{name}", where=where, remedy=f"Pass it: grammars={{...}} (now: {known})."
                )
            return Whole(inputs.grammars[name], where), UNKNOWN


def _without_space_around(grammar: Grammar) -> Grammar:
    """The grammar of the value alone: what may stand around it, the text around it says."""
    rules = every_rule(grammar.rules)
    start = rules[grammar.start]
    match start.body:
        case Sequence((Terminal() as before, value, Terminal() as after)) if before.expr is after.expr:
            bare = replace(start, body=value)
            kept = (*rules[: grammar.start], bare, *rules[grammar.start + 1 :])
            return replace(grammar, rules=kept, prepared=None)
        case _:
            return grammar


def special_piece(node: SpecialToken, inputs: Inputs) -> Piece:
    """Any one of the special tokens that are meant."""
    return Special(names_of_reference(node.reference, inputs.special_tokens, inputs.place(node.offset)))


def stands_for_text(node: object) -> bool:
    """Is it ``<[*]>`` or ``<[^...]>``, any token but some, which any number of times is text?"""
    return isinstance(node, SpecialToken) and node.reference[:3] in ("<[*", "<[^")


def note_attributes(definition: RuleDefinition, inputs: Inputs) -> None:
    """Say what changes no text."""
    attributes = definition.attributes
    said = {"temperature": "for the sampler", "capture": "for guided.captures", "stop_capture": "for guided.captures"}
    for name, purpose in said.items():
        if name in attributes:
            inputs.notes.append(f"rule {definition.name}: {name}={attributes[name]} is {purpose} and changes no text")


def most_tokens(definition: RuleDefinition) -> int | None:
    """The tokens that a text of the rule may take."""
    written = definition.attributes.get("max_tokens")
    return None if written is None else int(str(written))


def named_rule(rule: RuleDefinition, terminals: Terminals, hides_stop: bool) -> NamedRule | None:
    """What a rule's attributes say about reading its texts; ``hides_stop``: also to the rules around it."""
    attributes = rule.attributes
    name, marker_name = (str(attributes[key]) if key in attributes else None for key in ("capture", "stop_capture"))
    ending = None
    marker = rule.marker
    if marker is not None and not (isinstance(marker, Literal) and not marker.text):
        hidden = hides_stop and "stop" in attributes
        ending = Ending(terminals.language(rule.body)[0], terminals.language(marker)[0], is_hidden=hidden)
    if name is None and marker_name is None and not (ending is not None and ending.is_hidden):
        return None
    return NamedRule(name, ending, marker_name, bool(attributes.keys() & _LEXEME))


def check_options(options: Mapping[str, object], known: Mapping[str, bool], where: str) -> None:
    """Raise for an option that is not known, or is set and cannot be had: ``known`` says which can."""
    for name, value in options.items():
        if name not in known or not isinstance(value, bool):
            raise GrammarError(
                f"the option {name}={value!r} is not known", where=where, remedy=f"Known are {', '.join(known)}."
            )
        if value and not known[name]:
            raise UnsupportedError(f"the option {name}", where=where, remedy="Leave it out: texts are UTF-8.")
