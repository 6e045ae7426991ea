"""Special tokens in Lark text, ``<think>``, in llguidance's notation: a dialect that is asked for, since Lark has none.

Lark itself loads the grammar, so a reference is replaced by the name of a terminal that nothing else has, of the same
length where that can be, so that the columns of errors stay right.  What Lark is told of that terminal is a text that
stands in no grammar; `guided.grammar.lark.terminals` puts the special token in its place.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.lark.load import Loaded, place_of
from guided.grammar.lexing import LexerTerminal
from guided.grammar.regex.plain import contains_assertions
from guided.grammar.regex.syntax import (
    Alternatives,
    Anchor,
    At,
    Concatenation,
    Look,
    Node,
    Quantified,
    WordBoundary,
)
from guided.grammar.special import names_of_reference, special_terminal

_TOKENS = re.compile(
    r"""(?P<other>//[^\n]* | \#[^\n]* | "(?:\\.|[^"\\\n])*" | /(?!/)(?:\\.|\\/|[^/\\\n])+/[imslux]*)
    | (?P<special><(?:\[[^\]\n]*\]|[^<>\s\[][^<>\n]*)>)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Replaced:
    """A grammar's text that Lark can load, and the special token behind each terminal that was put in."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)

    def check(self, loaded: Loaded) -> None:
        """Raise `GrammarError` where a special token stands inside a terminal, which is text."""
        for terminal in loaded.terminals:
            for placeholder, name in self.names.items():
                if str(terminal.name) != placeholder and _text_of(placeholder) in terminal.pattern.value:
                    raise GrammarError(
                        f"the special token {name} stands inside a terminal, which is text",
                        where=f"terminal {terminal.name}",
                        remedy="Use it in a rule (lower-case name).",
                    )

    def used(self, loaded: Loaded) -> dict[str, str]:
        """The special tokens that the loaded grammar has, by terminal."""
        terminals = {str(terminal.name) for terminal in loaded.terminals}
        return {placeholder: name for placeholder, name in self.names.items() if placeholder in terminals}

    def in_words(self, message: str) -> str:
        """A message with the names as they were written."""
        for placeholder, name in self.names.items():
            message = message.replace(placeholder, name)
        return message

    def translated(self, error: GuidedError) -> GuidedError:
        """The error with the names as they were written."""
        where = None if error.where is None else self.in_words(error.where)
        return type(error)(self.in_words(error.what), where=where, remedy=error.remedy)


def check_assertions(terminals: Iterable[LexerTerminal]) -> None:
    """Raise `UnsupportedError` for a terminal that asks what follows its match, other than by a negative look-ahead.

    What follows may be a special token.  No look-ahead matches one, so a negative one holds before it; all others would
    have to tell it from the end of the text, and lexers know only text.
    """
    for terminal in terminals:
        if _asks_what_follows(terminal.pattern):
            raise UnsupportedError(
                f"terminal {terminal.name} asks for what follows its match, which may be a special token",
                remedy="Write that as a negative look-ahead, (?!...), without anchors and word boundaries inside.",
            )


def _asks_what_follows(node: Node) -> bool:
    match node:
        case Look(body, ahead, negative):
            return contains_assertions(body) or (ahead and not negative)
        case Concatenation(parts) | Alternatives(parts):
            return any(map(_asks_what_follows, parts))
        case Quantified(body):
            return _asks_what_follows(body)
        case At(anchor):
            return anchor not in (Anchor.TEXT_START, Anchor.LINE_START)
        case WordBoundary():
            return True
        case _:
            return False


def references(text: str) -> Iterator[re.Match[str]]:
    """What looks like a special token, outside strings, patterns and comments."""
    return (match for match in _TOKENS.finditer(text) if match["special"])


def replace_references(text: str, known: Mapping[str, int] | None) -> Replaced:
    """Put a terminal in the place of each special token; ``known`` are a tokenizer's, for references by id."""
    placeholders: dict[str, str] = {}
    parts: list[str] = []
    at = 0
    for match in references(text):
        where = place_of(text, match.start())
        found: list[str] = []
        for name in names_of_reference(match[0], known, where):
            special_terminal(name, where=where)
            if name not in placeholders:
                placeholders[name] = _placeholder(text, len(match[0]), placeholders)
            found.append(placeholders[name])
        parts += [text[at : match.start()], found[0] if len(found) == 1 else f"({'|'.join(found)})"]
        at = match.end()
    definitions = "".join(f'\n{name}: "{_text_of(name)}"' for name in placeholders.values())
    return Replaced("".join([*parts, text[at:], definitions]), {new: name for name, new in placeholders.items()})


def _placeholder(text: str, width: int, taken: Mapping[str, str]) -> str:
    """A terminal's name of this many characters that is not in the text; longer when there is none."""
    for number in itertools.count():
        name = f"T{number:0{width - 1}d}"
        if name not in text and name not in taken.values():
            return name
    raise AssertionError("numbers do not end")


def _text_of(placeholder: str) -> str:
    return f"\ue000{placeholder}\ue000"
