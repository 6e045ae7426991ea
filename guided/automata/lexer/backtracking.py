"""Patterns as a backtracking matcher sees them: what it would try next, most preferred first.

A `Term` is a compiled pattern, a `Cell` one link of what remains to be matched, and `first_steps` lists, in order of
preference, the ways in which a chain of cells can read its next character or end: an ordered form of Antimirov's
partial derivatives.  Counted repeats stay counters; nothing is unrolled.

Assertions are kept exact.  A look-behind is an automaton that reads along (`Term.behind`); a look-ahead becomes a
condition on the rest of the whole text, a regular language again (`Condition`).

The order is that of CPython's ``re``: alternatives from left to right, greedy repeats body first, lazy ones last, and a
repeat whose body has just matched nothing goes on with what follows it.  This file knows single patterns; several
terminals and their states are in `guided.automata.lexer.ordered`.

Source: Antimirov, "Partial derivatives of regular expressions", TCS 1996; Frisch and Cardelli, "Greedy regular
expression matching", ICALP 2004, for the order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeAlias, cast

from guided.errors import UnsupportedError
from guided.grammar.regex.lower import contains_assertions, lower
from guided.grammar.regex.plain import lower_plain, widths
from guided.grammar.regex.syntax import (
    Alternatives,
    Anchor,
    At,
    Characters,
    Concatenation,
    Look,
    Node,
    Quantified,
    WordBoundary,
)
from guided.grammar.regular.characters import ANY_CHARACTER, CharacterSet, Utf8, negate, utf8
from guided.grammar.regular.derivative import edges, inhabited
from guided.grammar.regular.expr import (
    ALL,
    Edge,
    Expr,
    alternation,
    complement,
    concat,
    difference,
    intersection,
    repeat,
)

TEXT = repeat(utf8(ANY_CHARACTER))
"""Every text in UTF-8."""

Condition: TypeAlias = "tuple[Expr, Expr] | None"
"""What the rest of the text must be: ``(language, texts)``, where ``texts`` is every continuation that completes the
character being read; None: anything."""

Memory: TypeAlias = "tuple[tuple[Expr, Expr], ...]"
"""For each look-behind automaton, by its initial state: its current one."""


class Shape(IntEnum):
    """What a `Term` is; its ``parts`` are documented at each."""

    CHARACTER = 0
    """``(expr,)``: one character, or what is left of one."""
    SEQUENCE = 1
    """``(terms...)``"""
    CHOICE = 2
    """``(terms...)``, most preferred first."""
    LOOP = 3
    """``(body, low, high or None, greedy)``"""
    BEHIND = 4
    """``(automaton, negative)``: does the text so far end in the look-behind's body?"""
    AHEAD = 5
    """``(expr,)``: the rest of the text must be in this language."""


class Term:
    """A compiled piece of a pattern, interned; ``behinds`` are the look-behind automata in it."""

    __slots__ = ("asserts", "behinds", "parts", "serial", "shape")

    asserts: bool
    behinds: frozenset[Expr]

    def __init__(self, shape: Shape, parts: tuple[Any, ...]) -> None:
        self.shape = shape
        self.parts = parts
        self.serial = next(_serials)
        inner = [part for part in parts if isinstance(part, Term)]
        self.behinds = frozenset(expr for part in inner for expr in part.behinds)
        self.asserts = shape in (Shape.BEHIND, Shape.AHEAD) or any(part.asserts for part in inner)
        if shape is Shape.BEHIND:
            self.behinds |= {parts[0]}


class Cell:
    """``term``, then the rest of the chain; interned.  The end of the chain is None: the pattern has matched.

    ``fresh`` marks a loop that has begun a round at the very position being looked at.
    """

    __slots__ = ("asserts", "behinds", "fresh", "has_fresh", "rest", "serial", "term")

    asserts: bool
    behinds: frozenset[Expr]
    has_fresh: bool

    def __init__(self, term: Term, rest: Cell | None, fresh: bool) -> None:
        self.term = term
        self.rest = rest
        self.fresh = fresh
        self.has_fresh = fresh or (rest is not None and rest.has_fresh)
        self.asserts = term.asserts or (rest is not None and rest.asserts)
        self.behinds = term.behinds | rest.behinds if rest is not None else term.behinds
        self.serial = next(_serials)


_serials = itertools.count()
_terms: dict[tuple[Any, ...], Term] = {}
_cells: dict[tuple[Any, ...], Cell] = {}


def _term(shape: Shape, *parts: Any) -> Term:
    key = (shape, *parts)
    found = _terms.get(key)
    # setdefault is atomic under the interpreter lock, so threads agree on one object.
    return found if found is not None else _terms.setdefault(key, Term(shape, parts))


def cell(term: Term, rest: Cell | None, fresh: bool = False) -> Cell:
    """The interned link ``term`` followed by ``rest``."""
    key = (term, rest, fresh)
    found = _cells.get(key)
    return found if found is not None else _cells.setdefault(key, Cell(term, rest, fresh))


def _settled(chain: Cell | None) -> Cell | None:
    """The chain once a character was read: no loop is at the position where its round began."""
    if chain is None or not chain.has_fresh:
        return chain
    return cell(chain.term, _settled(chain.rest))


def first_steps(
    chain: Cell | None, condition: Condition, memory: Memory
) -> Iterator[tuple[Expr | None, Cell | None, Condition]]:
    """How ``chain`` can go on here, most preferred first: ``(character, chain after it, condition)``.

    The character is None where the pattern ends.  ``memory`` must hold every look-behind of the chain.  Ways that a
    condition rules out are left out.
    """
    current = dict(memory)
    visited: set[tuple[Cell | None, Condition]] = set()
    stack: list[tuple[Cell | None, Condition]] = [(chain, condition)]
    while stack:
        at, condition = stack.pop()
        if (at, condition) in visited or (at, None) in visited:
            continue
        visited.add((at, condition))
        if at is None:
            yield None, None, condition
            continue
        term, rest = at.term, at.rest
        match term.shape:
            case Shape.CHARACTER:
                yield term.parts[0], _settled(rest), condition
            case Shape.SEQUENCE:
                for part in reversed(term.parts):
                    rest = cell(part, rest)
                stack.append((rest, condition))
            case Shape.CHOICE:
                stack.extend((cell(option, rest), condition) for option in reversed(term.parts))
            case Shape.LOOP:
                stack.extend((after, condition) for after in reversed(_rounds(at)))
            case Shape.BEHIND:
                automaton, negative = term.parts
                if current[automaton].nullable is not negative:
                    stack.append((rest, condition))
            case Shape.AHEAD:
                narrowed = both(condition, (term.parts[0], TEXT))
                if narrowed is not _IMPOSSIBLE:
                    stack.append((rest, cast(Condition, narrowed)))


def _rounds(at: Cell) -> list[Cell | None]:
    """What a loop tries, in order: another round of its body, or what follows it."""
    body, low, high, greedy = at.term.parts
    if at.fresh or high == 0:
        return [at.rest]
    after = _term(Shape.LOOP, body, max(low - 1, 0), None if high is None else high - 1, greedy)
    if low:
        # CPython lets a required round match nothing and counts it.
        return [cell(body, cell(after, at.rest))]
    ways = [cell(body, cell(after, at.rest, fresh=True)), at.rest]
    return ways if greedy else ways[::-1]


_IMPOSSIBLE = object()


@lru_cache(maxsize=65536)
def _decide(language: Expr, texts: Expr) -> object:
    if not inhabited(intersection((language, texts))):
        return _IMPOSSIBLE
    if not inhabited(difference(texts, language)):
        return None
    return (language, texts)


def both(left: Condition, right: Condition) -> object:
    """The conjunction of two conditions at one position; decided, so that what always holds is None."""
    if left is None or right is None:
        pair = left or right
        return None if pair is None else _decide(*pair)
    return _decide(intersection((left[0], right[0])), left[1])


def opposite(condition: tuple[Expr, Expr]) -> Condition:
    """The condition that holds exactly where this (undecided) one does not."""
    return (complement(condition[0]), condition[1])


def decided(language: Expr | None, texts: Expr | None) -> object:
    """The condition of which this is left: a `Condition`, or `IMPOSSIBLE` when it is lost."""
    return _IMPOSSIBLE if language is None or texts is None else _decide(language, texts)


IMPOSSIBLE = _IMPOSSIBLE
"""The answer of `both` and `decided` for a condition that no text meets."""


@lru_cache(maxsize=4096)
def edges_of(expr: Expr) -> tuple[Edge, ...]:
    """The edges of a language (`guided.grammar.regular.derivative.edges`), of which those last asked for are kept."""
    return edges(expr)


# --- compiling -------------------------------------------------------------------------------------------------------


class Compiled:
    """A pattern as a `Term`; ``outside`` are the look-behind automata that may look at what precedes the match."""

    __slots__ = ("outside", "term")

    def __init__(self, term: Term, outside: frozenset[Expr]) -> None:
        self.term = term
        self.outside = outside


def compile_pattern(node: Node) -> Compiled:
    """Compile a parsed pattern.

    Raises `UnsupportedError` for an assertion inside an assertion that looks past the outer one's own text.
    """
    outside: set[Expr] = set()
    return Compiled(_compile(node, 0, outside), frozenset(outside))


_NOTHING = _term(Shape.SEQUENCE)
_NEVER = _term(Shape.CHOICE)
_UTF8 = Utf8()
_ANY = Quantified(Characters(ANY_CHARACTER), 0, None)


def _compile(node: Node, before: int, outside: set[Expr]) -> Term:
    """``before``: at least so many characters of the match precede the node."""
    match node:
        case Characters(ranges):
            return _term(Shape.CHARACTER, utf8(ranges)) if ranges else _NEVER
        case Concatenation(parts):
            terms = []
            for part in parts:
                terms.append(_compile(part, before, outside))
                before += widths(part)[0]
            return terms[0] if len(terms) == 1 else _term(Shape.SEQUENCE, *terms)
        case Alternatives(options):
            return _term(Shape.CHOICE, *(_compile(option, before, outside) for option in options))
        case Quantified(body, low, high, greedy):
            if high == 0:
                return _NOTHING
            inner = _compile(body, before, outside)
            return inner if low == high == 1 else _term(Shape.LOOP, inner, low, high, greedy)
        case Look(body, True, negative):
            return _ahead(_language_ahead(body), negative)
        case Look(body, False, negative):
            width = None if contains_assertions(body) else widths(body)[1]
            return _behind(_language_behind(body), width, negative, before, outside)
        case At(anchor):
            return _anchor(anchor, before, outside)
        case WordBoundary(word, negative):
            return _word_boundary(word, negative, before, outside)
    raise AssertionError(f"no such pattern node: {node!r}")


def _language_ahead(body: Node) -> Expr:
    """The texts that go on with ``body``."""
    if not contains_assertions(body):
        return concat(lower_plain(body, _UTF8), ALL)
    if _looks(body, 0, ahead=False):
        raise UnsupportedError(
            "a look-ahead whose body looks back at what precedes it",
            remedy="Move the look-behind, '^' or '\\b' in front of the look-ahead.",
        )
    return lower(Concatenation((body, _ANY)), _UTF8)


def _language_behind(body: Node) -> Expr:
    """The texts that end in ``body``."""
    if not contains_assertions(body):
        return concat(ALL, lower_plain(body, _UTF8))
    if _looks(body, 0, ahead=True):
        raise UnsupportedError(
            "a look-behind whose body looks ahead", remedy="Move the look-ahead, '$' or '\\b' behind the look-behind."
        )
    return lower(Concatenation((_ANY, body)), _UTF8)


def _looks(node: Node, before: int, ahead: bool) -> bool:
    """May an assertion in ``node`` look ahead, or back past the ``before`` characters that certainly precede it?"""
    match node:
        case Concatenation(parts):
            for part in parts:
                if _looks(part, before, ahead):
                    return True
                before += widths(part)[0]
            return False
        case Alternatives(options):
            return any(_looks(option, before, ahead) for option in options)
        case Quantified(body):
            return _looks(body, before, ahead)
        case Look(body, forward, _):
            if forward:
                return ahead or _looks(body, before, ahead)
            width = widths(body)[1]
            return _looks(body, 0, ahead) or (not ahead and (width is None or width > before))
        case At(anchor):
            backward = anchor in (Anchor.TEXT_START, Anchor.LINE_START)
            return not backward if ahead else backward and before == 0
        case WordBoundary():
            return ahead or before == 0
        case _:
            return False


def _ahead(language: Expr, negative: bool) -> Term:
    return _term(Shape.AHEAD, complement(language) if negative else language)


def _behind(automaton: Expr, width: int | None, negative: bool, before: int, outside: set[Expr]) -> Term:
    if width is None or width > before:
        outside.add(automaton)
    return _term(Shape.BEHIND, automaton, negative)


def _anchor(anchor: Anchor, before: int, outside: set[Expr]) -> Term:
    any_character, newline = utf8(ANY_CHARACTER), utf8(((10, 10),))
    not_newline = utf8(negate(((10, 10),)))
    match anchor:
        case Anchor.TEXT_START:
            return _behind(concat(ALL, any_character), 1, True, before, outside)
        case Anchor.LINE_START:
            return _behind(concat(ALL, not_newline), 1, True, before, outside)
        case Anchor.TEXT_END:
            return _ahead(concat(any_character, ALL), True)
        case Anchor.LINE_END:
            return _ahead(concat(not_newline, ALL), True)
        case Anchor.TEXT_END_OR_FINAL_NEWLINE:
            return _ahead(concat(alternation((not_newline, concat(newline, any_character))), ALL), True)


def _word_boundary(word: CharacterSet, negative: bool, before: int, outside: set[Expr]) -> Term:
    """``\\b``: one side is a word character and the other is not (a missing one is not)."""
    language = utf8(word)
    sides = []
    for inside in (True, False):
        behind = _behind(concat(ALL, language), 1, not inside, before, outside)
        sides.append(_term(Shape.SEQUENCE, behind, _ahead(concat(language, ALL), inside is not negative)))
    return _term(Shape.CHOICE, *sides)


def keyword_languages(keywords: Iterable[tuple[Node, int]]) -> tuple[tuple[Expr, int], ...]:
    """The texts of each keyword pattern with its terminal, in order."""
    return tuple((lower_plain(node, _UTF8), index) for node, index in keywords)
