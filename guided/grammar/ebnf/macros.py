"""The macros of XGrammar's EBNF as pieces: patterns, substrings, special tokens, tags in free text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.pieces import Either, Name, Piece, Regular, Repeated, Row, Special
from guided.grammar.regex.lower import lower
from guided.grammar.regex.notations import xgrammar_pattern
from guided.grammar.regular.characters import Utf8, utf8
from guided.grammar.regular.expr import intersection, repeat
from guided.grammar.regular.substrings import neighbouring_chunks
from guided.grammar.special import names_of_reference
from guided.grammar.tags.free_text import TEXT, text_up_to, text_without

__all__ = ["MACROS", "Arguments", "Mention", "Value", "macro", "other_tokens"]

_INSIDE_JSON_STRING = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF))
"""What ``json_string=true`` leaves of every character of a pattern: no controls, quotes and backslashes."""

MACROS = frozenset(("Regex", "Substring", "Token", "ExcludeToken", "TagDispatch", "TokenTagDispatch"))
"""Names that are macros wherever they stand in a rule."""


@dataclass(frozen=True, slots=True)
class Mention:
    """The name of a rule among the arguments."""

    name: str
    offset: int


Value: TypeAlias = "str | int | bool | Mention | tuple[Value, ...]"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What stands between a macro's parentheses, and where the macro stands."""

    values: tuple[Value, ...]
    named: Mapping[str, Value]
    where: str

    def error(self, what: str, remedy: str) -> GrammarError:
        """The error about this macro."""
        return GrammarError(what, where=self.where, remedy=remedy)

    def check_names(self, macro: str, known: Sequence[str]) -> None:
        """Raise `GrammarError` for a named argument that the macro does not have."""
        for name in self.named:
            if name not in known:
                allowed = f"It has {', '.join(known)}." if known else "It has none."
                raise self.error(f"{macro} has no named argument {name!r}", allowed)

    def flag(self, name: str, default: bool) -> bool:
        """A named argument that is true or false."""
        value = self.named.get(name, default)
        if not isinstance(value, bool):
            raise self.error(f"{name} must be true or false", "Write true or false without quotes.")
        return value


def macro(name: str, arguments: Arguments, special_tokens: Mapping[str, int] | None) -> Piece:
    """The piece of a macro; ``special_tokens`` are a tokenizer's, for ids.

    Raises `GrammarError` for arguments that XGrammar refuses, `UnsupportedError` for what depends on a tokenizer.
    """
    match name:
        case "Regex":
            return _regex(arguments)
        case "Substring":
            return _substring(arguments)
        case "Token":
            return _token(arguments, special_tokens)
        case "TagDispatch":
            return _tag_dispatch(arguments)
        case "TokenTagDispatch":
            return _token_tag_dispatch(arguments, special_tokens)
        case _:
            raise UnsupportedError(
                f"{name} stands for tokens of text too, and which those are depends on the tokenizer",
                where=arguments.where,
                remedy="Write the text by its characters, [^]*, or any number of such tokens, ExcludeToken(...)*.",
            )


def other_tokens(arguments: Arguments, special_tokens: Mapping[str, int] | None) -> Piece:
    """``ExcludeToken(...)*``: text, in which no special token is.  Raises where an id is not a special token's."""
    arguments.check_names("ExcludeToken", ())
    _names(arguments.values, special_tokens, arguments)
    return Regular(TEXT, "free text")


def _regex(arguments: Arguments) -> Piece:
    arguments.check_names("Regex", ("json_string", "flags"))
    if len(arguments.values) != 1 or not isinstance(arguments.values[0], str):
        raise arguments.error("Regex takes one string", 'Write Regex("[a-z]+").')
    pattern = arguments.values[0]
    flags = arguments.named.get("flags")
    if flags is not None and not isinstance(flags, str):
        raise arguments.error("flags must be a string", 'Write flags="i".')
    try:
        language = lower(xgrammar_pattern(pattern, flags), Utf8())
    except (GrammarError, UnsupportedError) as error:
        raise type(error)(f"{error.what} ({error.where})", where=arguments.where, remedy=error.remedy) from error
    if arguments.flag("json_string", False):
        language = intersection([language, repeat(utf8(_INSIDE_JSON_STRING))])
    return Regular(language, f"/{pattern}/")


def _substring(arguments: Arguments) -> Piece:
    arguments.check_names("Substring", ())
    chunks = [value for value in arguments.values if isinstance(value, str)]
    if len(chunks) < len(arguments.values):
        raise arguments.error("Substring takes strings", 'Write Substring("one ", "two").')
    return Regular(neighbouring_chunks(chunks), f"a part of {''.join(chunks)!r}")


def _token(arguments: Arguments, special_tokens: Mapping[str, int] | None) -> Piece:
    arguments.check_names("Token", ())
    return Special(_names(arguments.values, special_tokens, arguments))


def _names(ids: Sequence[Value], special_tokens: Mapping[str, int] | None, at: Arguments) -> tuple[str, ...]:
    if not ids or not all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in ids):
        raise at.error("these are not the ids of tokens", "Write Token(128010).")
    return names_of_reference(f"<[{','.join(map(str, ids))}]>", special_tokens, at.where)


def _token_tag_dispatch(arguments: Arguments, special_tokens: Mapping[str, int] | None) -> Piece:
    arguments.check_names("TokenTagDispatch", ("loop_after_dispatch", "excludes"))
    text = Regular(TEXT, "free text")
    calls: list[Piece] = []
    for value in arguments.values:
        match value:
            case (int() as token, Mention() as rule):
                trigger = Special(_names((token,), special_tokens, arguments))
                calls.append(Row((text, trigger, Name(rule.name, rule.offset))))
            case _:
                raise arguments.error("TokenTagDispatch takes pairs of an id and a rule", "Write (128010, tool).")
    excludes = arguments.named.get("excludes", ())
    if not isinstance(excludes, tuple):
        raise arguments.error("excludes must be a tuple of ids", "Write excludes=(128020,).")
    if excludes:
        _names(excludes, special_tokens, arguments)
    return _around(calls, text, arguments)


def _tag_dispatch(arguments: Arguments) -> Piece:
    arguments.check_names("TagDispatch", ("loop_after_dispatch", "excludes"))
    tags: list[tuple[str, Mention]] = []
    for value in arguments.values:
        match value:
            case (str() as word, Mention() as rule) if word:
                tags.append((word, rule))
            case _:
                raise arguments.error("TagDispatch takes pairs of a text and a rule", 'Write ("<tool>", tool).')
    excludes = arguments.named.get("excludes", ())
    if not isinstance(excludes, tuple) or not all(isinstance(word, str) and word for word in excludes):
        raise arguments.error("excludes must be a tuple of texts", 'Write excludes=("</answer>",).')
    words = list(dict.fromkeys([word for word, _ in tags] + [word for word in excludes if isinstance(word, str)]))
    _check_words(words, [word for word in excludes if isinstance(word, str)], dict(tags), arguments)
    bodies: dict[str, list[Piece]] = {}
    for word, rule in tags:
        bodies.setdefault(word, []).append(Name(rule.name, rule.offset))
    calls: list[Piece] = []
    for word, rules in bodies.items():
        before = Regular(text_up_to(word, words), f"text up to {word!r}")
        calls.append(Row((before, rules[0] if len(rules) == 1 else Either(tuple(rules)))))
    return _around(calls, Regular(text_without(words) if words else TEXT, "free text"), arguments)


def _around(calls: list[Piece], rest: Piece, arguments: Arguments) -> Piece:
    """Free text with calls in it, each up to its end."""
    if not calls:
        return rest
    call = calls[0] if len(calls) == 1 else Either(tuple(calls))
    if arguments.flag("loop_after_dispatch", True):
        return Row((Repeated(call, 0, None), rest))
    return Either((call, rest))


def _check_words(words: Sequence[str], excludes: Sequence[str], tags: Mapping[str, Mention], at: Arguments) -> None:
    for word in words:
        for other in words:
            if word in excludes and word in tags:
                raise at.error(f"{word!r} is both a tag and excluded", "Keep one.")
            if word != other and word in other:
                raise UnsupportedError(
                    f"the text {other!r} contains {word!r}, and XGrammar goes on with either",
                    where=at.where,
                    remedy="Use texts none of which is inside another.",
                )
