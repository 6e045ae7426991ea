"""Reading an L-attributed grammar lexeme by lexeme, in all ways at once.

A thread is a stack of nodes that are still to be read, with the attribute.  A `Place` is a set of threads; equal sets
are one object, so what may come at a place is found once.  Most places have one thread: two, where the next lexeme
decides (a column or a function, a bracket or a query).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from guided.grammar.attributed.first import First, FirstSets
from guided.grammar.attributed.nodes import (
    Keyword,
    Literal,
    LiteralForm,
    Name,
    Names,
    Node,
    Prices,
    Sign,
    Spelled,
    Terminal,
)
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.attributed.words import Words, words_of

__all__ = ["Lexeme", "LexemeKind", "Open", "Place", "Stack", "Threads"]


class LexemeKind(Enum):
    """What a lexeme is, before any grammar looks at it."""

    WORD = "word"
    QUOTED = "quoted name"
    DOUBTFUL = "quoted name, or a string"
    TEXT = "string in quotes of its own"
    NUMBER = "number"
    STRING = "string"
    SIGN = "sign"


class Lexeme(NamedTuple):
    """A piece of text: a word or name is folded, quotes and what they double are gone."""

    kind: LexemeKind
    text: str
    written: str = ""
    """A word or name before it was folded, where the lexis keeps that."""


class Stack:
    """What is still to be read: a node and the stack below, with the price of both; equal ones are one object."""

    __slots__ = ("below", "node", "price")

    def __init__(self, node: Node, below: Stack | None, price: int) -> None:
        self.node = node
        self.below = below
        self.price = price


class Open(NamedTuple):
    """A terminal that may come next, None for the end of the text, with what is behind it and the attribute."""

    terminal: Terminal | None
    stack: Stack | None
    attribute: Any


class Place:
    """What may come next.  Identity is equality: `Threads` keeps one object for each set of threads."""

    def __init__(self, threads: tuple[tuple[Stack | None, Any], ...], opens: tuple[Open, ...]) -> None:
        self.threads = threads
        self.opens = opens
        self.followed: dict[Lexeme, Place | None] = {}

    @cached_property
    def may_end(self) -> bool:
        """Is the text so far in the language?"""
        return any(open_.terminal is None for open_ in self.opens)

    @cached_property
    def keywords(self) -> Words:
        """The keywords that may come."""
        return words_of(open_.terminal.word for open_ in self.opens if isinstance(open_.terminal, Keyword))

    @cached_property
    def signs(self) -> frozenset[str]:
        """The signs that may come."""
        return frozenset(open_.terminal.text for open_ in self.opens if isinstance(open_.terminal, Sign))

    @cached_property
    def _all_names(self) -> tuple[tuple[Open, Spelled, Names], ...]:
        return tuple(
            (open_, open_.terminal.spelled, open_.terminal.kind.allowed(open_.attribute))
            for open_ in self.opens
            if isinstance(open_.terminal, Name)
        )

    @cached_property
    def names(self) -> tuple[tuple[Open, Names], ...]:
        """The names that may come as words, with what is open for them."""
        return tuple((open_, names) for open_, spelled, names in self._all_names if spelled is not Spelled.STRING)

    @cached_property
    def quoted(self) -> tuple[tuple[Open, Names], ...]:
        """The names that may come in quotes."""
        return tuple((open_, names) for open_, spelled, names in self._all_names if spelled is Spelled.ANY)

    @cached_property
    def doubtful(self) -> tuple[tuple[Open, Names], ...]:
        """What may come in quotes that hold a name or a string."""
        return tuple((open_, names) for open_, spelled, names in self._all_names if spelled is not Spelled.WORD)

    @cached_property
    def texts(self) -> tuple[tuple[Open, Names], ...]:
        """What may come in quotes that hold strings only."""
        return tuple((open_, names) for open_, spelled, names in self._all_names if spelled is Spelled.STRING)

    @cached_property
    def literals(self) -> tuple[tuple[Open, LiteralForm, Words | Spellings | None], ...]:
        """The literals that may come, with their values where these are few."""
        return tuple(
            (open_, open_.terminal.form, open_.terminal.kind.allowed(open_.attribute))
            for open_ in self.opens
            if isinstance(open_.terminal, Literal)
        )


class Threads:
    """Makes and keeps the places of a grammar."""

    def __init__(self, start: Node, attribute: Hashable) -> None:
        self._stacks: dict[tuple[Node, Stack | None], Stack] = {}
        self._places: dict[frozenset[tuple[Stack | None, Any]], Place] = {}
        self.prices = Prices()
        self._first = FirstSets()
        self._opens: dict[tuple[Stack | None, Any], tuple[Open, ...]] = {}
        first = self.place([(self.push(start, None), attribute)])
        assert first is not None
        self.start = first

    def push(self, node: Node, below: Stack | None) -> Stack:
        """The one stack of a node above another stack."""
        key = (node, below)
        found = self._stacks.get(key)
        if found is None:
            price = self.prices.of(node) + (0 if below is None else below.price)
            found = self._stacks[key] = Stack(node, below, price)
        return found

    def place(self, threads: Iterable[tuple[Stack | None, Any]]) -> Place | None:
        """The place of these threads, None where nothing can follow and the text may not end."""
        ordered = tuple(dict.fromkeys(threads))
        key = frozenset(ordered)
        found = self._places.get(key)
        if found is None:
            opens = tuple(dict.fromkeys(open_ for thread in ordered for open_ in self.opens(*thread)))
            if not opens:
                return None
            found = self._places[key] = Place(ordered, opens)
        return found

    def opens(self, stack: Stack | None, attribute: Any) -> tuple[Open, ...]:
        """The terminals that may come at a thread."""
        known = self._opens.get((stack, attribute))
        if known is not None:
            return known
        found: list[Open] = []
        if stack is None:
            found.append(Open(None, None, attribute))
        else:
            self._begin(self._first.of(stack.node), stack.below, attribute, found)
        opens = self._opens[(stack, attribute)] = tuple(dict.fromkeys(found))
        return opens

    def _begin(self, first: First, below: Stack | None, attribute: Any, found: list[Open]) -> None:
        """Run the actions of a node, and note the terminals behind them."""
        for terminal, rest in first.terminals:
            found.append(Open(terminal, below if rest is None else self.push(rest, below), attribute))
        for change, behind in first.actions.items():
            changed = change(attribute)
            if changed is not None:
                self._begin(behind, below, changed, found)
        if first.is_nullable:
            found += self.opens(below, attribute)

    def after(self, place: Place, lexeme: Lexeme, reserved: bool) -> Place | None:
        """The place behind a lexeme, None where it may not stand; a ``reserved`` word is no name."""
        found = place.followed.get(lexeme, place)
        if found is place:
            found = place.followed[lexeme] = self.place(_read(place, lexeme, reserved))
        return found


def _read(place: Place, lexeme: Lexeme, reserved: bool) -> list[tuple[Stack | None, Any]]:
    """The threads behind a lexeme."""
    kind, text, written = lexeme
    found: list[tuple[Stack | None, Any]] = []
    if kind is LexemeKind.SIGN:
        return [
            (open_.stack, open_.attribute)
            for open_ in place.opens
            if isinstance(open_.terminal, Sign) and open_.terminal.text == text
        ]
    if kind in (LexemeKind.NUMBER, LexemeKind.STRING):
        form = LiteralForm.NUMBER if kind is LexemeKind.NUMBER else LiteralForm.STRING
        held = False
        for open_, of, values in place.literals:
            assert isinstance(open_.terminal, Literal)
            if of is form and not open_.terminal.gives_way and (values is None or text in values):
                found.append((open_.stack, open_.terminal.kind.after(open_.attribute)))
                held = held or values is not None
        for open_, of, values in () if held else place.literals:
            assert isinstance(open_.terminal, Literal)
            if of is form and open_.terminal.gives_way and (values is None or text in values):
                found.append((open_.stack, open_.terminal.kind.after(open_.attribute)))
        return found
    if kind is LexemeKind.WORD:
        found = [
            (open_.stack, open_.attribute)
            for open_ in place.opens
            if isinstance(open_.terminal, Keyword) and open_.terminal.word == text
        ]
    if not reserved:
        for open_, names in _named(place, kind):
            assert isinstance(open_.terminal, Name)
            name = (written or text) if open_.terminal.is_exact else text
            # No name is empty, but a string may be.
            is_name = bool(name) or open_.terminal.spelled is Spelled.STRING
            if is_name and (names.free or name in names.words):
                after = open_.terminal.kind.after(open_.attribute, name)
                if after is not None:
                    found.append((open_.stack, after))
    return found


def _named(place: Place, kind: LexemeKind) -> tuple[tuple[Open, Names], ...]:
    """The names that a lexeme of a kind may be."""
    match kind:
        case LexemeKind.WORD:
            return place.names
        case LexemeKind.DOUBTFUL:
            return place.doubtful
        case LexemeKind.TEXT:
            return place.texts
    return place.quoted
