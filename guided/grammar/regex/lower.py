"""From the tree of a pattern to the regular language over bytes of the texts that it matches.

Three ways, the first that fits, all exact:

* no assertions: node by node, counts stay counts, a few microseconds a node;
* assertions outside unbounded repetitions whose left side is plain (``^``, ``$``, look-aheads): by continuation.  With
  ``K`` the language of what may follow, ``(?=X)`` makes it ``K & X any*`` and ``(?!X)`` makes it ``K - X any*``;
* everything else (look-behinds, word boundaries, assertions in loops): `guided.grammar.regex.assertions`.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

from guided.grammar.regex.assertions import solve
from guided.grammar.regex.plain import contains_assertions, lower_plain, widths
from guided.grammar.regex.syntax import (
    Alternatives,
    Anchor,
    At,
    Characters,
    Concatenation,
    Look,
    Node,
    Quantified,
)
from guided.grammar.regex.unanchored import trimmed_beside_any_text
from guided.grammar.regex.unicode_sets import LINE_FEED
from guided.grammar.regular.characters import ANY_CHARACTER, Encoding
from guided.grammar.regular.expr import EMPTY, EPSILON, Expr, alternation, concat, difference, intersection

__all__ = ["contains_assertions", "lower", "search"]

MAX_COPIES = 4
"""Copies of a repeated body with assertions that are written out by continuation; more go to the automaton."""


MAX_CONDITIONS = 24
"""Look-aheads that are resolved by continuation, those inside alternatives and repeats counted as `NESTED_CONDITION`.

Conditions that stand one after another stay one flat intersection.  Alternatives nest them, and the derivatives of
nested intersections and unions multiply; the automaton, which keeps each alternative apart, does not suffer from it.
"""
NESTED_CONDITION = 8


class _NeedsAutomaton(Exception):
    """The continuation alone does not know enough about what stands to the left."""


def lower(node: Node, encoding: Encoding) -> Expr:
    """The texts that ``node`` matches from end to end (``re.fullmatch``), written in ``encoding``.

    Greediness and the order of alternatives do not change which texts match.  Raises `LimitError` when assertions need
    more than a bounded number of automaton states; never approximates.

    >>> from guided.grammar.regex.parse import parse
    >>> from guided.grammar.regular.characters import Utf8
    >>> from guided.grammar.regular.derivative import matches
    >>> language = lower(parse("(?:(?!no)[a-z])+"), Utf8())
    >>> [matches(language, text) for text in (b"yes", b"not", b"son")]
    [True, False, True]
    """
    if not contains_assertions(node):
        return lower_plain(node, encoding)
    return _with_assertions(node, encoding)


def search(node: Node, encoding: Encoding) -> Expr:
    """The texts in which ``node`` matches somewhere (``re.search``, JSON Schema's ``pattern``).

    >>> from guided.grammar.regex.parse import parse
    >>> from guided.grammar.regular.characters import Utf8
    >>> from guided.grammar.regular.derivative import matches
    >>> [matches(search(parse("^a|b$"), Utf8()), text) for text in (b"ax", b"xb", b"xax")]
    [True, True, False]
    """
    starts, inner, ends = _unanchored(node)
    if not contains_assertions(inner):
        inner = trimmed_beside_any_text(inner, not starts, not ends)
        before, after = EPSILON if starts else encoding.text, EPSILON if ends else encoding.text
        return concat(before, lower_plain(inner, encoding), after)
    return _search_with_assertions(node, encoding)


def _unanchored(node: Node) -> tuple[bool, Node, bool]:
    """The tree without an anchor at its very start and end, and whether they were there."""
    if not isinstance(node, Concatenation) or not node.parts:
        return False, node, False
    parts = node.parts
    starts, ends = parts[0] == At(Anchor.TEXT_START), parts[-1] == At(Anchor.TEXT_END)
    if len(parts) == 1:
        return starts, Concatenation(()) if starts or ends else node, ends
    return starts, Concatenation(parts[starts : len(parts) - ends]), ends


@lru_cache(maxsize=1024)
def _with_assertions(node: Node, encoding: Encoding) -> Expr:
    try:
        return _Continuation(encoding).followed_by(node, EPSILON, True)
    except _NeedsAutomaton:
        return solve(node, encoding)


@lru_cache(maxsize=1024)
def _search_with_assertions(node: Node, encoding: Encoding) -> Expr:
    try:
        continuation = _Continuation(encoding)
        at_start = continuation.followed_by(node, encoding.text, True)
        later = continuation.followed_by(node, encoding.text, False)
    except _NeedsAutomaton:
        anything = Quantified(Characters(ANY_CHARACTER), 0, None)
        return solve(Concatenation((anything, node, anything)), encoding)
    if at_start is later:
        return concat(encoding.text, later)
    return alternation((at_start, concat(encoding.characters(ANY_CHARACTER), encoding.text, later)))


class _Continuation:
    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.conditions = 0
        self.weight = 1

    def followed_by(self, node: Node, rest: Expr, at_start: bool | None) -> Expr:
        """A match of ``node`` and then ``rest``; ``at_start``: no character stands before (None: that depends)."""
        encoding = self.encoding
        if not contains_assertions(node):
            if rest is encoding.text:
                # A look-ahead, once met, is any text at once, and one that must not be met is over.
                node = trimmed_beside_any_text(node, False, True)
            return concat(lower_plain(node, encoding), rest)
        match node:
            case Concatenation(parts):
                contexts: list[bool | None] = []
                parts = _grouped(parts)
                for part in parts:
                    contexts.append(at_start)
                    at_start = _after(part, at_start)
                for part, context in zip(reversed(parts), reversed(contexts), strict=True):
                    rest = self.followed_by(part, rest, context)
                return rest
            case Alternatives(options):
                self.weight = NESTED_CONDITION
                return alternation([self.followed_by(option, rest, at_start) for option in options])
            case Quantified(body, low, high):
                if high is None or high > MAX_COPIES:
                    raise _NeedsAutomaton
                self.weight = NESTED_CONDITION
                contexts = []
                for _ in range(high):
                    contexts.append(at_start)
                    at_start = _after(body, at_start)
                result = rest
                for index in reversed(range(high)):
                    result = self.followed_by(body, result, contexts[index])
                    if index >= low:
                        result = alternation((rest, result))
                return result
            case Look(body, True, negative):
                self.conditions += self.weight
                if self.conditions > MAX_CONDITIONS:
                    raise _NeedsAutomaton
                condition = self.followed_by(body, encoding.text, at_start)
                if negative:
                    return difference(rest, condition)
                return condition if rest is encoding.text else intersection((rest, condition))
            case At(Anchor.TEXT_START):
                if at_start is None:
                    raise _NeedsAutomaton
                return rest if at_start else EMPTY
            case At(Anchor.TEXT_END):
                return EPSILON if rest.nullable else EMPTY
            case At(Anchor.TEXT_END_OR_FINAL_NEWLINE):
                final = alternation((EPSILON, encoding.characters(LINE_FEED)))
                return final if rest is encoding.text else intersection((rest, final))
            case At(Anchor.LINE_END):
                ahead = alternation((EPSILON, concat(encoding.characters(LINE_FEED), encoding.text)))
                return ahead if rest is encoding.text else intersection((rest, ahead))
            case _:
                raise _NeedsAutomaton


def _grouped(parts: tuple[Node, ...]) -> tuple[Node, ...]:
    """The parts, neighbours without assertions made one, so that their characters become one string."""
    result: list[Node] = []
    for asserting, run in itertools.groupby(parts, contains_assertions):
        if asserting:
            result.extend(run)
        else:
            result.append(Concatenation(tuple(run)))
    return tuple(result)


def _after(node: Node, at_start: bool | None) -> bool | None:
    """Does the text still have no character before it after a match of ``node``?"""
    shortest, longest = widths(node)
    if longest == 0:
        return at_start
    return False if shortest > 0 or at_start is False else None
