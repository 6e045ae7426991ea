"""The terminals of a grammar in a dialect of Lark's notation as regular languages."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from guided.errors import GrammarError, GuidedError, LimitError, UnsupportedError
from guided.grammar.folding import place_of
from guided.grammar.lark_dialects.tree import (
    Alternatives,
    Both,
    CharacterRange,
    Counted,
    Dialect,
    Document,
    Literal,
    Node,
    NotIn,
    Pattern,
    Row,
    RuleDefinition,
    Structured,
    Symbol,
)
from guided.grammar.pieces import Regular
from guided.grammar.regex.lower import lower
from guided.grammar.regex.notations import rust_pattern, xgrammar_pattern
from guided.grammar.regular.characters import Utf8, utf8
from guided.grammar.regular.expr import Expr, alternation, complement, concat, intersection, literal, repeat
from guided.grammar.regular.substrings import neighbouring_chunks

__all__ = ["COMMON", "Terminals"]

_EXPONENT = r"[eE](\+|-)?[0-9]+"
_DECIMAL = r"([0-9]+\.[0-9]*|\.[0-9]+)"
_FLOAT = rf"({_DECIMAL}({_EXPONENT})?|[0-9]+{_EXPONENT})"
COMMON: Mapping[str, str] = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[a-fA-F0-9]",
    "INT": "[0-9]+",
    "SIGNED_INT": r"(\+|-)?[0-9]+",
    "DECIMAL": _DECIMAL,
    "_EXP": _EXPONENT,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": rf"(\+|-)?{_FLOAT}",
    "NUMBER": rf"([0-9]+|{_FLOAT})",
    "SIGNED_NUMBER": rf"(\+|-)?([0-9]+|{_FLOAT})",
    "ESCAPED_STRING": r"\"([^\"\\]|\\.)*\"",
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[A-Za-z]",
    "WORD": "[A-Za-z]+",
    "CNAME": "[_A-Za-z][_A-Za-z0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"\/\*[^*]*\*+([^\/*][^*]*\*+)*\/",
    "SQL_COMMENT": r"--[^\n]*",
}
"""What ``%import common.NAME`` brings in both dialects."""
_STRUCTURED = ("substring_chunks", "substring_chars", "substring_words")

MOST_CHARACTERS = 50_000
"""Of one terminal with those that it names written out: 1.5 s to compile.  Each of n terminals may name the next one
twice, which is 2^n."""


class Terminals:
    """The languages of a document's terminals; ``text`` is for places."""

    def __init__(self, document: Document, dialect: Dialect, text: str) -> None:
        self.dialect = dialect
        self.text = text
        self.definitions: dict[str, RuleDefinition] = {}
        for definition in document.definitions:
            self._add(definition)
        for found in document.imports:
            folder, _, name = found.path.rpartition(".")
            if folder != "common" or name not in COMMON:
                raise UnsupportedError(
                    f"there is no {found.path!r} to import",
                    where=place_of(text, found.offset),
                    remedy=f"Write the terminal out; common has {', '.join(COMMON)}.",
                )
            self._add(RuleDefinition(found.name, Pattern(COMMON[name], "", found.offset), found.offset))
        self._found: dict[str, Regular | None] = {}
        self._sizes: dict[str, int] = {}

    def _add(self, definition: RuleDefinition) -> None:
        if definition.name in self.definitions:
            raise GrammarError(
                f"{definition.name!r} is defined twice",
                where=place_of(self.text, definition.offset),
                remedy="Join the definitions with '|'.",
            )
        self.definitions[definition.name] = definition

    def named(self, name: str, offset: int) -> Regular:
        """The language of a terminal; raises `GrammarError` for a rule, a cycle and a name that nothing has."""
        definition = self.definitions.get(name)
        where = place_of(self.text, offset)
        if definition is None:
            raise GrammarError(f"{name!r} is not defined", where=where, remedy="Define it, import it, or quote it.")
        if not definition.is_terminal:
            raise GrammarError(
                f"the rule {name!r} stands in a terminal", where=where, remedy="Write its name in capital letters."
            )
        if name not in self._found:
            self._found[name] = None
            language, is_text = self.language(definition.body)
            self._found[name] = Regular(language, name, is_text)
            self._sizes[name] = self._size(definition.body)
            if self._sizes[name] > MOST_CHARACTERS:
                raise LimitError(
                    f"the terminal {name!r} is more than {MOST_CHARACTERS} characters when it is written out",
                    where=place_of(self.text, definition.offset),
                    remedy="Put the parts together in a rule, in small letters.",
                )
        found = self._found[name]
        if found is None:
            raise GrammarError(
                f"the terminal {name!r} refers to itself", where=where, remedy="Use a rule, in small letters."
            )
        return found

    def regular(self, node: Node, label: str) -> Regular:
        """The piece of a node that is a lexeme."""
        if isinstance(node, Symbol):
            return self.named(node.name, node.offset)
        language, is_text = self.language(node)
        return Regular(language, label, is_text)

    def language(self, node: Node) -> tuple[Expr, bool]:
        """The language, and whether it is known to be UTF-8; raises errors with places for what is no terminal."""
        match node:
            case Literal(text, ignore_case, offset):
                return self._literal(text, ignore_case, offset), True
            case CharacterRange(low, high):
                return utf8(((low, high),)), True
            case Pattern(pattern, flags, offset):
                return self._pattern(pattern, flags, offset), True
            case Structured(value, offset):
                return neighbouring_chunks(self._chunks(value, offset)), True
            case Symbol(name, offset):
                found = self.named(name, offset)
                return found.language, found.is_text
            case Counted(body, low, high):
                language, is_text = self.language(body)
                return repeat(language, low, high), is_text
            case NotIn(body):
                return complement(self.language(body)[0]), False
            case Row(parts):
                found_parts = [self.language(part) for part in parts]
                return concat(*(part for part, _ in found_parts)), all(is_text for _, is_text in found_parts)
            case Alternatives(options):
                found_parts = [self.language(option) for option in options]
                return alternation([part for part, _ in found_parts]), all(is_text for _, is_text in found_parts)
            case Both(parts):
                found_parts = [self.language(part) for part in parts]
                return intersection([part for part, _ in found_parts]), any(is_text for _, is_text in found_parts)
            case _:
                raise UnsupportedError(
                    "a special token, %json, %lark or @grammar inside of a terminal",
                    where=place_of(self.text, node.offset),
                    remedy="Use it in a rule, whose name is in small letters.",
                )

    def _size(self, node: Node) -> int:
        """The characters of a node whose language is found, written out but for counted repetitions."""
        match node:
            case Symbol(name):
                return self._sizes[name]
            case Literal(text) | Pattern(text):
                return len(text)
            case Row(parts) | Alternatives(parts) | Both(parts):
                return sum(map(self._size, parts))
            case Counted(body) | NotIn(body):
                return self._size(body)
        return 1

    def _literal(self, text: str, ignore_case: bool, offset: int) -> Expr:
        if not ignore_case:
            return literal(text.encode())
        if self.dialect is Dialect.XGRAMMAR and not text.isascii():
            raise UnsupportedError(
                f"the text {text!r} in any case, for which XGrammar takes ASCII only",
                where=place_of(self.text, offset),
                remedy="Write the cases as alternatives.",
            )
        return self._pattern("".join(f"\\u{{{ord(letter):X}}}" for letter in text), "i", offset)

    def _pattern(self, pattern: str, flags: str, offset: int) -> Expr:
        read = rust_pattern if self.dialect is Dialect.LLGUIDANCE else xgrammar_pattern
        try:
            return lower(read(pattern, flags), Utf8())
        except GuidedError as error:
            inside = f" ({error.where})" if error.where else ""
            raise type(error)(
                f"{error.what}{inside}", where=place_of(self.text, offset), remedy=error.remedy
            ) from error

    def _chunks(self, value: object, offset: int) -> list[str]:
        where = place_of(self.text, offset)
        given = {} if not isinstance(value, dict) else {key: item for key, item in value.items() if item is not None}
        if len(given) != 1 or not given.keys() <= set(_STRUCTURED):
            raise UnsupportedError(
                "%regex takes one of substring_chunks, substring_chars and substring_words",
                where=where,
                remedy='Write %regex {"substring_words": "..."}, or a pattern between slashes.',
            )
        ((kind, item),) = given.items()
        if kind == "substring_chunks" and isinstance(item, list) and all(isinstance(chunk, str) for chunk in item):
            return list(item)
        if kind == "substring_chunks" or not isinstance(item, str):
            raise GrammarError(
                f"{kind} has the wrong type", where=where, remedy="Chunks are a list of texts, the others take a text."
            )
        if kind == "substring_chars":
            return list(item)
        if self.dialect is Dialect.XGRAMMAR:
            raise UnsupportedError(
                "substring_words, which XGrammar does not have", where=where, remedy="Use substring_chunks."
            )
        return ["".join(run) for _, run in itertools.groupby(item, _kind_of_character)]


def _kind_of_character(character: str) -> int:
    """As llguidance cuts words: white space, letters with digits and '_', and all others."""
    if character.isspace() and character not in "\x1c\x1d\x1e\x1f":
        return 0
    return 1 if character.isalnum() or character == "_" else 2
