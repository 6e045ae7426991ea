"""`guided.gbnf`: llama.cpp's grammar format, character by character and without a lexer.

The language is that of the context-free grammar; every split of the text counts.  Parts that are regular become single
terminals, so that the parser has few steps: folding changes no language, only the cost.

Left recursion, which llama.cpp refuses, is fine.  A token ``<name>`` is the special token of that name; negated tokens
are refused, since a grammar knows no others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from guided.errors import GrammarError
from guided.grammar.gbnf_syntax import (
    Class,
    Definition,
    Either,
    Name,
    Piece,
    Repeated,
    Row,
    Special,
    Text,
    place_of,
    read_gbnf,
)
from guided.grammar.ir import Body, Choice, Grammar, Reference, Repetition, Rule, Sequence, Terminal
from guided.grammar.regular.characters import utf8
from guided.grammar.regular.expr import EMPTY, EPSILON, Expr, alternation, concat, literal, optional, repeat
from guided.grammar.special import special_terminal

MAX_FOLDED = 48
"""Pieces that one terminal may be folded from.  A JSON string or number needs about 15.  A terminal shares its
automaton states with every other use of it, but not with a longer terminal around it; so folding stops at a lexeme."""
MAX_COUNTED = 8
"""Pieces in the body of a counted repetition inside a terminal: its states multiply with the count."""


def gbnf(text: str, *, start: str = "root", special_tokens: Mapping[str, int] | None = None) -> Grammar:
    """The language of a GBNF grammar, beginning at rule ``start``.

    ``<think>`` is the special token of that name, brackets included.  ``<[151657]>`` is the one with that id, which
    only ``special_tokens=vocabulary.special_tokens`` can tell.  Raises `GrammarError` for malformed text and undefined
    rules, `UnsupportedError` for ids without it and for negated tokens.

    >>> gbnf('root ::= "-"? [0-9]+ ("." [0-9]+)?')
    <Grammar 'root': 1 rules, lexing none>
    """
    if not isinstance(text, str):
        raise GrammarError("a GBNF grammar is a str", remedy="Read the file and pass its text.")
    definitions = read_gbnf(text, special_tokens)
    if start not in definitions:
        known = ", ".join(definitions) or "none"
        raise GrammarError(
            f"there is no rule {start!r} to start from", remedy=f"Define it, or name another by start=... ({known})."
        )
    mentions = {name: _mentioned(definition.body) for name, definition in definitions.items()}
    for names in mentions.values():
        for name, offset in names.items():
            if name not in definitions:
                raise GrammarError(
                    f"rule {name!r} is not defined",
                    where=place_of(text, offset),
                    remedy="Define it, or quote the text.",
                )
    used = _reachable(start, mentions)
    folded = _fold({name: definitions[name] for name in used})
    numbers = {name: index for index, name in enumerate(used)}
    lowering = _Lowering(folded, numbers)
    rules = tuple(Rule(name, lowering.rule(name, definitions[name].body)) for name in used)
    named = tuple(sorted(lowering.special))
    source = f"gbnf\0{start}\0{named}\0{text}"
    return Grammar(
        rules=rules,
        start=0,
        rebuild=(gbnf, (text,), {"start": start, "special_tokens": dict(special_tokens) if special_tokens else None}),
        key=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        special_tokens=named,
    )


def _mentioned(piece: Piece) -> dict[str, int]:
    """The rules that a piece names, with the offset of the first mention."""
    found: dict[str, int] = {}
    stack = [piece]
    while stack:
        item = stack.pop()
        if isinstance(item, Name):
            found[item.name] = min(item.offset, found.get(item.name, item.offset))
        else:
            stack.extend(_inner(item))
    return found


def _inner(piece: Piece) -> tuple[Piece, ...]:
    match piece:
        case Row(parts):
            return parts
        case Either(options):
            return options
        case Repeated(body):
            return (body,)
        case _:
            return ()


def _reachable(start: str, mentions: Mapping[str, Mapping[str, int]]) -> list[str]:
    order = {start: None}
    queue = [start]
    for name in queue:
        for other in sorted(mentions[name], key=mentions[name].__getitem__):
            if other not in order:
                order[other] = None
                queue.append(other)
    return queue


class _Folded:
    """A regular language and from how many pieces it was made."""

    __slots__ = ("expr", "weight")

    def __init__(self, expr: Expr, weight: int) -> None:
        self.expr = expr
        self.weight = weight


def _fold(definitions: Mapping[str, Definition]) -> dict[str, _Folded]:
    """The rules that are small regular languages: they name only such rules, or themselves at one end."""
    folded: dict[str, _Folded] = {}
    waiting = dict(definitions)
    progress = True
    while progress:
        progress = False
        for name in list(waiting):
            if any(other not in folded and other != name for other in _mentioned(waiting[name].body)):
                continue
            result = _regular(waiting[name].body, folded) or _linear(name, waiting[name].body, folded)
            del waiting[name]
            if result is not None and result.weight <= MAX_FOLDED:
                folded[name] = result
                progress = True
    return folded


def _regular(piece: Piece, folded: Mapping[str, _Folded]) -> _Folded | None:
    """The piece as one language, or None where it is not regular for sure, or too big."""
    match piece:
        case Text(text):
            return _Folded(literal(text.encode()), 1 + len(text) // 16)
        case Class(ranges):
            return _Folded(utf8(ranges), 1)
        case Name(name):
            return folded.get(name)
        case Special():
            return None
        case Repeated(body, low, high):
            inner = _regular(body, folded)
            counted = low > 1 or high not in (None, 0, 1)
            if inner is None or (counted and inner.weight > MAX_COUNTED):
                return None
            return _Folded(repeat(inner.expr, low, high), inner.weight + 1)
        case Row(parts) | Either(parts):
            items = []
            for part in parts:
                item = _regular(part, folded)
                if item is None:
                    return None
                items.append(item)
            weight = sum(item.weight for item in items)
            if weight > MAX_FOLDED:
                return None
            exprs = [item.expr for item in items]
            return _Folded(concat(*exprs) if isinstance(piece, Row) else alternation(exprs), weight)


def _linear(name: str, body: Piece, folded: Mapping[str, _Folded]) -> _Folded | None:
    """A rule that names itself only at its right end, or only at its left end: a loop."""
    for rightmost in (True, False):
        pair = _step_and_rest(name, body, folded, rightmost)
        if pair is not None:
            step, rest, weight = pair
            loop = repeat(step)
            return _Folded(concat(loop, rest) if rightmost else concat(rest, loop), weight + 1)
    return None


def _step_and_rest(
    name: str, body: Piece, folded: Mapping[str, _Folded], rightmost: bool
) -> tuple[Expr, Expr, int] | None:
    """``(step, rest, weight)`` such that the body is ``step`` before (after) the rule itself, or ``rest``."""
    if isinstance(body, Name) and body.name == name:
        return EPSILON, EMPTY, 1
    plain = _regular(body, folded)
    if plain is not None:
        return EMPTY, plain.expr, plain.weight
    match body:
        case Either(options):
            pairs = [_step_and_rest(name, option, folded, rightmost) for option in options]
            found = [pair for pair in pairs if pair is not None]
            if len(found) < len(pairs):
                return None
            return alternation(p[0] for p in found), alternation(p[1] for p in found), sum(p[2] for p in found)
        case Row(parts) if parts:
            others, last = (parts[:-1], parts[-1]) if rightmost else (parts[1:], parts[0])
            around = _regular(Row(others), folded)
            pair = _step_and_rest(name, last, folded, rightmost)
            if around is None or pair is None:
                return None
            step, rest, weight = pair
            if rightmost:
                return concat(around.expr, step), concat(around.expr, rest), around.weight + weight
            return concat(step, around.expr), concat(rest, around.expr), around.weight + weight
        case Repeated(inner, 0, 1):
            pair = _step_and_rest(name, inner, folded, rightmost)
            return None if pair is None else (pair[0], optional(pair[1]), pair[2])
        case _:
            return None


class _Lowering:
    """Rule bodies as IR, with everything folded that is small and regular."""

    def __init__(self, folded: Mapping[str, _Folded], numbers: Mapping[str, int]) -> None:
        self.folded = folded
        self.numbers = numbers
        self.special: set[str] = set()

    def rule(self, name: str, body: Piece) -> Body:
        found = self.folded.get(name)
        return Terminal(found.expr, name) if found is not None else self.body(body)

    def body(self, piece: Piece) -> Body:
        found = _regular(piece, self.folded)
        if found is not None and found.weight <= MAX_FOLDED:
            return Terminal(found.expr, _label(piece))
        match piece:
            case Name(name):
                return Reference(self.numbers[name])
            case Row(parts):
                return Sequence(tuple(self.body(part) for part in _joined(parts)))
            case Either(options):
                return Choice(tuple(self.body(option) for option in options))
            case Repeated(body, low, high):
                return Repetition(self.body(body), low, high)
            case Special(names):
                self.special.update(names)
                named = tuple(map(special_terminal, names))
                return named[0] if len(named) == 1 else Choice(named)
            case _:
                raise AssertionError("texts and classes are regular")


def _joined(parts: tuple[Piece, ...]) -> list[Piece]:
    """Neighbouring texts and classes as one piece; anything bigger keeps its own terminal, which others share."""
    result: list[list[Piece]] = []
    for part in parts:
        simple = isinstance(part, (Text, Class))
        if simple and result and all(isinstance(item, (Text, Class)) for item in result[-1]):
            result[-1].append(part)
        else:
            result.append([part])
    return [items[0] if len(items) == 1 else Row(tuple(items)) for items in result]


_SHOWN = 40
"""Characters of a label; explanations are read by people."""


def _label(piece: Piece) -> str:
    """The piece in the grammar's own notation, shortened."""
    text = _written(piece)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _written(piece: Piece) -> str:
    match piece:
        case Text(text):
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        case Class(ranges):
            return "[" + "".join(_shown_range(low, high) for low, high in ranges[:8]) + "]"
        case Name(name):
            return name
        case Special(names):
            return " | ".join(names)
        case Row(parts):
            return " ".join(map(_written, parts))
        case Either(options):
            return "(" + " | ".join(map(_written, options)) + ")"
        case Repeated(body, low, high):
            inner = f"({_written(body)})" if isinstance(body, Row) else _written(body)
            marks = {(0, None): "*", (1, None): "+", (0, 1): "?"}
            return inner + marks.get((low, high), f"{{{low},{'' if high is None else high}}}")


def _shown_range(low: int, high: int) -> str:
    ends = [chr(code) if 0x20 < code < 0x7F and chr(code) not in "[]^-\\" else f"\\U{code:08X}" for code in (low, high)]
    return ends[0] if low == high else "-".join(ends)
