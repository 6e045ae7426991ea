"""Limits on tokens by their definition: an automaton over bytes, each of whose places knows what is left of its span.

A text is described by nested tuples: bytes; ``("then", ...)``; ``("or", ...)``; ``("star", x)``; ``("span", x, most)``,
of which ``x`` holds no other span.  `grammar_of` makes the grammar that the package reads, `Twin` the automaton.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from guided.grammar.embed import Assembly
from guided.grammar.ir import Body, Choice, Grammar, Mark, Repetition, Rule, Terminal
from guided.grammar.ir import Sequence as Parts
from guided.grammar.json_schema import json_schema
from guided.grammar.limited.terminals import limited
from guided.grammar.regular.expr import Expr, alternation, concat, literal, repeat

Text: TypeAlias = Any
Places: TypeAlias = frozenset[tuple[int, int]]
"""Places of the automaton, each with the tokens left, -1 outside of spans."""


def language_of(text: Text) -> Expr:
    match text:
        case bytes():
            return literal(text)
        case ("then", *parts):
            return concat(*map(language_of, parts))
        case ("or", *options):
            return alternation(map(language_of, options))
        case ("star", body):
            return repeat(language_of(body))
    raise AssertionError(text)


def _body(text: Text) -> Body:
    match text:
        case bytes():
            return Terminal(literal(text), repr(text))
        case ("then", *parts):
            return Parts(tuple(map(_body, parts)))
        case ("or", *options):
            return Choice(tuple(map(_body, options)))
        case ("star", body):
            return Repetition(_body(body))
        case ("span", body, most):
            return Terminal(limited(language_of(body), most), f"span of {most}")
    raise AssertionError(text)


def grammar_of(text: Text) -> Grammar:
    """The grammar of a description."""
    rules = (Rule("text", _body(text), Mark.LIMITED),)
    return Grammar(rules, 0, rebuild=(grammar_of, (text,), {}), key=repr(text))


def beside_json(text: Text) -> Grammar:
    """The texts of a description, and JSON arrays of items that must not repeat."""
    assembly = Assembly()
    array = {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}
    either = Choice((assembly.embed(grammar_of(text)), assembly.embed(json_schema(array, whitespace="compact"))))
    return assembly.finish(assembly.rule("either", either), source="", rebuild=(beside_json, (text,), {}))


class Twin:
    """A description and tokens, byte by byte."""

    def __init__(self, text: Text, tokens: Sequence[bytes]) -> None:
        self.tokens = tokens
        self._bytes: list[list[tuple[int, int]]] = []
        self._empty: list[list[tuple[int, int | None]]] = []
        """Steps without a byte, each with the tokens of the span that begins (-1: ends) there; None for neither."""
        start, self._end = self._place(), self._place()
        self._add(text, start, self._end)
        self.start = self._closed({(start, -1)})
        self._lives: dict[Places, bool] = {}
        self.after = lru_cache(maxsize=None)(self._after)

    def _place(self) -> int:
        self._bytes.append([])
        self._empty.append([])
        return len(self._bytes) - 1

    def _add(self, text: Text, first: int, last: int) -> None:
        match text:
            case bytes():
                for byte in text:
                    then = self._place()
                    self._bytes[first].append((byte, then))
                    first = then
                self._empty[first].append((last, None))
            case ("then", *parts):
                for part in parts:
                    then = self._place()
                    self._add(part, first, then)
                    first = then
                self._empty[first].append((last, None))
            case ("or", *options):
                for option in options:
                    self._add(option, first, last)
            case ("star", body):
                loop = self._place()
                back = self._place()
                self._empty[first].append((loop, None))
                self._add(body, loop, back)
                self._empty[back].append((loop, None))
                self._empty[loop].append((last, None))
            case ("span", body, most):
                inside, behind = self._place(), self._place()
                self._empty[first].append((inside, most))
                self._add(body, inside, behind)
                self._empty[behind].append((last, -1))

    def _closed(self, places: Iterable[tuple[int, int]]) -> Places:
        found = set(places)
        work = list(found)
        while work:
            place, left = work.pop()
            for then, changed in self._empty[place]:
                after = then, left if changed is None else changed
                if after not in found:
                    found.add(after)
                    work.append(after)
        return frozenset(found)

    def _after(self, places: Places, data: bytes) -> Places:
        """The places behind one token."""
        for at, byte in enumerate(data):
            then = set()
            for place, left in places:
                # The first byte of a token is what counts it; 0 is none left, and -1 outside.
                if at == 0 and left == 0:
                    continue
                paid = left - 1 if at == 0 and left > 0 else left
                then |= {(target, paid) for value, target in self._bytes[place] if value == byte}
            places = self._closed(then)
        return places

    def accepts(self, places: Places) -> bool:
        """May the text end here?"""
        return any(place == self._end and left < 0 for place, left in places)

    def lives(self, places: Places) -> bool:
        """Do tokens lead to an end?"""
        if places not in self._lives:
            leads: dict[Places, set[Places]] = {}
            work = [places]
            while work:
                at = work.pop()
                if at not in leads:
                    leads[at] = {self.after(at, token) for token in self.tokens}
                    work.extend(leads[at])
            good = {at for at in leads if self.accepts(at)}
            changed = True
            while changed:
                more = {at for at, ways in leads.items() if at not in good and ways & good}
                good |= more
                changed = bool(more)
            for at in leads:
                self._lives[at] = at in good
        return self._lives[places]

    def behind(self, places: Places, data: bytes) -> tuple[Places, bool]:
        """The places behind bytes, cut into tokens in any way; and can the text go on, perhaps within a token?"""
        at: list[Places] = [frozenset()] * (len(data) + 1)
        at[0] = places
        within = False
        for first in range(len(data)):
            for token in self.tokens:
                stop = first + len(token)
                after = self.after(at[first], token) if at[first] else frozenset()
                if data[first:stop] == token:
                    at[stop] |= after
                elif stop > len(data) and token.startswith(data[first:]):
                    within = within or self.lives(after)
        return at[-1], within or self.lives(at[-1])
