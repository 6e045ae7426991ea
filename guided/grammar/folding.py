"""From the pieces of a grammar without a lexer to IR rules: what is regular and small becomes one terminal.

Folding changes no language, only the cost: the parser has fewer steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.embed import embedded_rules
from guided.grammar.ir import Body, Choice, Grammar, Mark, Reference, Repetition, Rule, Sequence, Terminal
from guided.grammar.limited.terminals import limited
from guided.grammar.pieces import (
    Class,
    Definition,
    Either,
    Name,
    Piece,
    Regular,
    Repeated,
    Row,
    Special,
    Text,
    Whole,
    pieces_of,
)
from guided.grammar.regular.characters import utf8
from guided.grammar.regular.decide import are_disjoint
from guided.grammar.regular.expr import (
    EMPTY,
    EPSILON,
    Expr,
    alternation,
    byte_range,
    concat,
    literal,
    optional,
    repeat,
)
from guided.grammar.special import special_terminal
from guided.special_bytes import SENTINEL

__all__ = ["FoldedRules", "RegularParts", "fold", "place_of", "regular_language"]

MAX_FOLDED = 48
"""Pieces that one terminal may be folded from.  A JSON string or number needs about 15.  A terminal shares its
automaton states with every other use of it, but not with a longer terminal around it; so folding stops at a lexeme."""
MAX_COUNTED = 8
"""Pieces in the body of a counted repetition inside a terminal: its states multiply with the count."""
REGULAR_WEIGHT = 16
"""Pieces that a language counts for which the notation says in a way of its own: a pattern has about as many."""


@dataclass(frozen=True, slots=True)
class FoldedRules:
    """The rules, of which the first is where texts begin, and what `Grammar` says besides."""

    rules: tuple[Rule, ...]
    special_tokens: tuple[str, ...]
    holds_sentinel: bool
    notes: tuple[str, ...]
    parts: tuple[Grammar, ...]
    """The grammars inside, in the order of their places."""


def fold(definitions: Mapping[str, Definition], start: str, text: str) -> FoldedRules:
    """The rules that ``start`` reaches; ``text`` is what they were read from.

    Raises `GrammarError` for a rule that is not defined, start included, and `UnsupportedError` for a language with the
    byte that is kept for special tokens beside one of those.
    """
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
    lowering = _Lowering(folded, {name: index for index, name in enumerate(used)})
    own = tuple(Rule(name, lowering.rule(name, definitions[name].body), _mark(definitions[name].body)) for name in used)
    special = lowering.special.union(*(part.special_tokens for part in lowering.parts))
    holds_sentinel = any(part.holds_sentinel for part in lowering.parts)
    for piece in pieces_of(definitions[name].body for name in used):
        if isinstance(piece, Regular) and not piece.is_text:
            holds_sentinel = holds_sentinel or not are_disjoint(piece.language, _WITH_SENTINEL)
    if special and holds_sentinel:
        raise UnsupportedError(
            f"a part of the grammar holds the byte 0xFF, which is kept for special tokens such as {min(special)}",
            remedy="Say that its text is UTF-8, for instance by an intersection with /(?s:.*)/.",
        )
    notes = dict.fromkeys(note for part in lowering.parts for note in part.notes)
    rules = (*own, *lowering.embedded)
    return FoldedRules(rules, tuple(sorted(special)), holds_sentinel, tuple(notes), tuple(lowering.parts))


def _mark(body: Piece) -> Mark | None:
    """What a rule's body asks of the engine."""
    limited = any(isinstance(piece, Regular) and piece.most_tokens is not None for piece in pieces_of([body]))
    return Mark.LIMITED if limited else None


def place_of(text: str, offset: int) -> str:
    """``line L, column C`` of an offset, both counted from 1."""
    line_start = text.rfind("\n", 0, offset) + 1
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - line_start + 1}"


def regular_language(piece: Piece, definitions: Mapping[str, Definition]) -> Expr | None:
    """The language of a piece that names no rule which comes back to itself, nor special tokens; None for others."""
    return _Whole(definitions, {}).language(piece)


class RegularParts:
    """The languages of pieces that are small and regular, where ``definitions`` are all rules that may be folded."""

    def __init__(self, definitions: Mapping[str, Definition]) -> None:
        self._folded = _fold(definitions)

    def language(self, piece: Piece) -> Expr | None:
        """That of a piece; None where it is not regular for sure, or too big."""
        if isinstance(piece, Regular):
            # Whoever asks here reads texts: what they take in tokens is not asked.
            return piece.language
        found = _regular(piece, self._folded)
        if found is None or (found.weight > MAX_FOLDED and not isinstance(piece, (Text, Class, Regular))):
            return None
        return found.expr


class _Whole:
    """Languages of rules, however big; None for a rule that is being looked at."""

    def __init__(self, definitions: Mapping[str, Definition], found: dict[str, Expr | None]) -> None:
        self.definitions = definitions
        self.found = found

    def language(self, piece: Piece) -> Expr | None:
        match piece:
            case Name(name):
                if name not in self.found and name in self.definitions:
                    self.found[name] = None
                    self.found[name] = self.language(self.definitions[name].body)
                return self.found.get(name)
            case Special() | Whole():
                return None
            case Regular() if piece.most_tokens is not None:
                return None
            case Repeated(body, low, high):
                language = self.language(body)
                return None if language is None else repeat(language, low, high)
            case Row(parts) | Either(parts):
                languages = [self.language(part) for part in parts]
                known = [language for language in languages if language is not None]
                if len(known) < len(languages):
                    return None
                return concat(*known) if isinstance(piece, Row) else alternation(known)
            case _:
                return _simple(piece).expr


def _mentioned(piece: Piece) -> dict[str, int]:
    """The rules that a piece names, with the offset of the first mention."""
    found: dict[str, int] = {}
    for item in pieces_of([piece]):
        if isinstance(item, Name):
            found[item.name] = min(item.offset, found.get(item.name, item.offset))
    return found


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
        case Regular() if piece.most_tokens is not None:
            return None
        case Text() | Class() | Regular():
            return _simple(piece)
        case Name(name):
            return folded.get(name)
        case Special() | Whole():
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


def _simple(piece: Text | Class | Regular) -> _Folded:
    match piece:
        case Text(text):
            return _Folded(literal(text.encode()), 1 + len(text) // 16)
        case Class(ranges):
            return _Folded(utf8(ranges), 1)
        case Regular(language):
            return _Folded(language, REGULAR_WEIGHT)


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
        self.parts: list[Grammar] = []
        self.embedded: list[Rule] = []
        self._starts: dict[int, Reference] = {}

    def rule(self, name: str, body: Piece) -> Body:
        found = self.folded.get(name)
        return Terminal(found.expr, name) if found is not None else self.body(body)

    def embed(self, grammar: Grammar, where: str) -> Reference:
        self.parts.append(grammar)
        found = self._starts.get(id(grammar))
        if found is None:
            first = len(self.numbers) + len(self.embedded)
            self.embedded += embedded_rules(grammar, first, where=where)
            found = self._starts[id(grammar)] = Reference(first + grammar.start)
        return found

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
            case Whole(grammar, where):
                return self.embed(grammar, where)
            case Regular(language, label, most_tokens=int(most)):
                return Terminal(limited(language, most), label)
            case Repeated(body, low, high):
                return Repetition(self.body(body), low, high)
            case Special(names):
                self.special.update(names)
                named = tuple(map(special_terminal, names))
                return named[0] if len(named) == 1 else Choice(named)
            case _:
                raise AssertionError("texts, classes and patterns are regular")


def _joined(parts: tuple[Piece, ...]) -> list[Piece]:
    """Neighbouring texts and classes as pieces of one terminal each; others keep their own, which is shared."""
    result: list[list[Piece]] = []
    weight = MAX_FOLDED
    for part in parts:
        if isinstance(part, (Text, Class)):
            added = _simple(part).weight
            weight += added
            if weight <= MAX_FOLDED:
                result[-1].append(part)
            else:
                result.append([part])
                weight = added
        else:
            result.append([part])
            weight = MAX_FOLDED
    return [items[0] if len(items) == 1 else Row(tuple(items)) for items in result]


_ANY_BYTES = repeat(byte_range(0, 255))
_WITH_SENTINEL = concat(_ANY_BYTES, literal(SENTINEL), _ANY_BYTES)


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
        case Regular(_, label):
            return label
        case Whole(grammar):
            return repr(grammar)
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
