"""`guided.captures`: the named parts of a finished text of a grammar.

Who defines a notation reads it: `re` a Python pattern, Lark a Lark grammar, with the lexer and parser that it is
enforced for.  Rules of XGrammar's EBNF and of its and llguidance's dialects of Lark say themselves what they capture;
those texts are read by `guided.reading.named`.  For a JSON Schema the names are JSON pointers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from guided.errors import GrammarError, TextError, UnsupportedError
from guided.grammar.ir import Grammar, Lexing
from guided.grammar.named import NamedRules, named_rules
from guided.reading.json_pointer import pointer_of
from guided.reading.json_stream import JsonStream

__all__ = ["Capture", "captures"]


class Capture(NamedTuple):
    """A part of a text: ``text[start:end]``, without markers in it that XGrammar's ``stop`` hides."""

    text: str
    start: int
    end: int


def captures(grammar: Grammar, text: str, *, names: Iterable[str] | None = None) -> dict[str, list[Capture]]:
    """The named parts of ``text``, a whole text of ``grammar``, by name, in the order in which they begin.

    * `guided.regex`: named groups, ``(?P<name>...)``, as ``re.fullmatch`` finds them: one part, the last of a group
      that repeats, or none.
    * `guided.lark`: rules, aliases (``-> name``) and terminals of Lark's parse tree, where Lark shows them: no rule
      whose name begins with ``_``, none marked ``?`` with a single child, no terminal that the tree leaves out.
    * `guided.ebnf` in XGrammar's EBNF, `guided.lark` in XGrammar's and llguidance's dialects: what the rules capture,
      in one derivation of the text.  Of several it is the one in which, from the left, each part is as long as can be,
      and of equally long ones the first that is written.
    * `guided.json_schema`: every value by its JSON pointer.  That it is JSON is checked, not that it is valid.

    ``names`` are those that are wanted; None is all.  Raises `TextError` for a text that is not of the grammar,
    `GrammarError` for a name that the grammar does not have, `UnsupportedError` for other grammars.

    >>> import guided
    >>> captures(guided.regex(r"(?P<year>\\d{4})-(?P<month>\\d\\d)"), "2024-05")
    {'year': [Capture(text='2024', start=0, end=4)], 'month': [Capture(text='05', start=5, end=7)]}
    """
    if not isinstance(text, str):
        raise TextError(f"the text is a {type(text).__name__}", remedy="Decode it: captures count characters.")
    if grammar.special_tokens:
        raise UnsupportedError(
            "the grammar names special tokens, which a text cannot tell from their names",
            remedy="Split the generated tokens at the special ones, and capture from the text between.",
        )
    from guided.grammar.json_schema import JsonSchemaGrammar
    from guided.grammar.lark import lark
    from guided.grammar.regex import regex

    function, arguments, keywords = grammar.rebuild or (None, (), {})
    if (named := named_rules(grammar)) is not None:
        found = _of_rules(named, text)
    elif function is regex:
        found = _of_pattern(arguments[0], keywords, text)
    elif function is lark and "dialect" not in keywords:
        found = _of_tree(grammar, arguments[0], keywords, text)
    elif isinstance(grammar, JsonSchemaGrammar):
        found = _of_json(text)
    else:
        raise UnsupportedError(
            f"{grammar!r} names no parts",
            remedy="Captures are of guided.regex with named groups, guided.lark, guided.ebnf and guided.json_schema.",
        )
    if names is None:
        return found
    wanted = list(names)
    unknown = [name for name in wanted if name not in found and not isinstance(grammar, JsonSchemaGrammar)]
    if unknown:
        raise GrammarError(f"the grammar has no name {unknown[0]!r}", remedy=f"Its names are {', '.join(found)}.")
    return {name: found.get(name, []) for name in wanted}


def _of_rules(named: NamedRules, text: str) -> dict[str, list[Capture]]:
    from guided.reading.named.parts import named_parts, names_of

    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise TextError("the text holds half of a surrogate pair", where=f"offset {error.start}") from None
    starts = itertools.accumulate((len(character.encode()) for character in text), initial=0)
    places = {place: number for number, place in enumerate(starts)}
    found: dict[str, list[Capture]] = {name: [] for name in names_of(named)}
    for part in named_parts(named, data):
        if part.start not in places or part.end not in places:
            raise UnsupportedError(
                f"the part {part.name!r} is cut inside of a character",
                where=f"byte {part.start}",
                remedy="Let the terminal match whole characters, by an intersection with /(?s:.*)/.",
            )
        found[part.name].append(Capture(part.data.decode(), places[part.start], places[part.end]))
    return {name: sorted(parts, key=lambda part: (part.start, -part.end)) for name, parts in found.items()}


def _of_pattern(pattern: str, keywords: Mapping[str, Any], text: str) -> dict[str, list[Capture]]:
    from guided.grammar.regex import Dialect

    if keywords.get("dialect", Dialect.PYTHON) is not Dialect.PYTHON:
        raise UnsupportedError(
            "groups of a pattern that is not Python's, whose re gives them another meaning",
            remedy="Write the pattern in Python's notation, (?P<name>...).",
        )
    try:
        compiled = re.compile(pattern, keywords.get("flags", 0))
    except re.error as error:
        raise UnsupportedError(
            f"Python's re does not read this pattern: {error.msg}",
            where=None if error.pos is None else f"offset {error.pos}",
            remedy="Write it without \\p{...} and look-behinds of no fixed width.",
        ) from error
    match = compiled.fullmatch(text)
    if match is None:
        raise TextError(f"the text does not match the pattern {pattern!r}", remedy="Pass a whole text of the grammar.")
    spans = {name: match.span(name) for name in compiled.groupindex}
    return {name: [] if start < 0 else [Capture(text[start:end], start, end)] for name, (start, end) in spans.items()}


def _of_tree(grammar: Grammar, source: str, keywords: Mapping[str, Any], text: str) -> dict[str, list[Capture]]:
    from lark import Tree
    from lark.exceptions import LarkError, UnexpectedInput

    paths = tuple(keywords.get("import_paths", ()))
    contextual = grammar.lexing is Lexing.CONTEXTUAL
    parser = _parser(grammar.key, source, keywords.get("start", "start"), paths, contextual, keywords.get("postlex"))
    try:
        tree = parser.parse(text)
    except UnexpectedInput as error:
        at = None if getattr(getattr(error, "token", None), "type", "") == "$END" else error.pos_in_stream
        raise TextError(
            "Lark does not parse the text with this grammar",
            where=f"offset {len(text) if at is None or at < 0 else at}",
            remedy="Pass a whole text of the grammar.",
        ) from error
    except (LarkError, RuntimeError, RecursionError) as error:
        raise UnsupportedError(
            f"Lark fails on this text: {type(error).__name__}: {error}", remedy="Give each text one parse."
        ) from error
    found: dict[str, list[Capture]] = {name: [] for name in _names(parser)}
    end_of_last = 0
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Tree):
            name = str(node.data)
            # A rule that has read nothing stands where the text before it ended.
            start = getattr(node.meta, "start_pos", end_of_last)
            end = getattr(node.meta, "end_pos", start)
            waiting += reversed(node.children)
        else:
            name, start = str(node.type), int(node.start_pos)
            end = end_of_last = start + len(node)
        if not name.startswith("__"):
            found.setdefault(name, []).append(Capture(text[start:end], start, end))
    return {name: sorted(parts, key=lambda part: (part.start, -part.end)) for name, parts in found.items()}


@lru_cache(maxsize=32)
def _parser(key: str | None, source: str, start: str, paths: tuple[str, ...], contextual: bool, postlex: Any) -> Any:
    """Lark's own parser of a grammar that is known to load; ``key`` tells imports with other contents apart."""
    from lark import Lark
    from lark.lexer import ContextualLexer

    def lexer(conf: Any, states: Any, always_accept: Any = ()) -> Any:
        # Lark would compare all terminals with each other, minutes for a large grammar, only to log what it finds.
        conf.skip_validation = True
        return ContextualLexer(conf, states, always_accept)

    return Lark(
        source,
        start=start,
        parser="lalr" if contextual else "earley",
        lexer="contextual" if contextual else "dynamic",
        import_paths=list(paths),
        postlex=postlex,
        propagate_positions=True,
        maybe_placeholders=False,
        _plugins={"ContextualLexer": lexer},
    )


def _names(parser: Any) -> list[str]:
    """What a tree of this parser can show."""
    rules = [str(rule.alias or rule.origin.name) for rule in parser.rules]
    terminals = [
        str(symbol.name)
        for rule in parser.rules
        for symbol in rule.expansion
        if symbol.is_term and (rule.options.keep_all_tokens or not symbol.filter_out)
    ]
    return [name for name in dict.fromkeys([*rules, *terminals]) if not name.startswith("_")]


class _Spans(JsonStream):
    """A JSON text whose values are noted with their places."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: dict[str, tuple[int, int]] = {}

    def _finished(self, value: Any, start: int, end: int) -> None:
        self.spans[pointer_of(item.key for item in self._stack if item.key is not None)] = (start, end)


def _of_json(text: str) -> dict[str, list[Capture]]:
    stream = _Spans()
    stream.append(text)
    stream.close()
    ordered = sorted(stream.spans.items(), key=lambda item: (item[1][0], -item[1][1]))
    return {pointer: [Capture(text[start:end], start, end)] for pointer, (start, end) in ordered}
