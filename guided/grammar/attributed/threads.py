"""Reading an L-attributed grammar lexeme by lexeme, in all ways at once.

A thread is a stack of nodes that are still to be read, with the attribute.  A `Place` is a set of threads; equal sets
are one object, so what may come at a place is found once.  Most places have one thread: two, where the next lexeme
decides (a column or a function, a bracket or a query).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from copy import copy
from dataclasses import replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from guided.grammar.attributed.first import Begun, First, FirstSets
from guided.grammar.attributed.kept import Kept
from guided.grammar.attributed.lexis import is_called
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

__all__ = ["Lexeme", "LexemeKind", "Open", "Place", "Plan", "Stack", "Thread", "Threads", "names_as"]


class LexemeKind(Enum):
    """What a lexeme is, before any grammar looks at it."""

    # Python's own hashes the name, in Python; places are looked up by lexemes all the time.
    __hash__ = object.__hash__

    WORD = "word"
    QUOTED = "quoted name"
    BRACKETED = "name in brackets"
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


_PLACES = 1 << 14
"""Places that are kept: some 100 MB; a mask looks at 8 on average."""
_ATTRIBUTES = 1 << 15
"""The same of their attributes: a place in a query whose types are followed has 30 in the mean."""
_PLANS = 1 << 10
"""Plans that stay when places are forgotten, some 12 KB each; what is remembered by its stacks is lost with them."""
Thread = tuple[Stack | None, Any]
"""What is still to be read, and the attribute."""
Way = tuple[Terminal | None, Stack | None]
"""A terminal that may come next, None for the end of the text, and the stack behind it."""


class Ways(NamedTuple):
    """The terminals that may come next with one attribute; ``behind`` is one object for each node and stack below."""

    behind: tuple[Way, ...]
    attribute: Any


Entry = tuple[int, Stack | None]
"""The number of the ways to which a terminal belongs, and the stack behind it."""


class Plan:
    """What may come at all places with the same `Ways.behind`, whatever the attributes say.

    The attribute of the ways with an entry's number says the rest.
    """

    def __init__(self, ways: tuple[Ways, ...], prices: Prices) -> None:
        self._prices = prices
        self.ways = tuple(behind for behind, _ in ways)
        self._every = [(number, *way) for number, (behind, _) in enumerate(ways) for way in behind]

    @cached_property
    def may_end(self) -> bool:
        """May the text end?"""
        return any(terminal is None for _, terminal, _ in self._every)

    @cached_property
    def keywords(self) -> Words:
        """The keywords that may come."""
        return words_of(self.behind_words)

    @cached_property
    def behind_words(self) -> dict[str, tuple[Entry, ...]]:
        """What is behind each keyword."""
        return _by_text((one.word, number, stack) for number, one, stack in self._every if isinstance(one, Keyword))

    @cached_property
    def behind_signs(self) -> dict[str, tuple[Entry, ...]]:
        """What is behind each sign."""
        return _by_text((one.text, number, stack) for number, one, stack in self._every if isinstance(one, Sign))

    @cached_property
    def signs(self) -> frozenset[str]:
        """The signs that may come."""
        return frozenset(self.behind_signs)

    @cached_property
    def sign_groups(self) -> tuple[tuple[frozenset[str], tuple[Entry, ...]], ...]:
        """The signs, those together that have the same behind them."""
        groups: dict[tuple[Entry, ...], set[str]] = {}
        for sign, behind in self.behind_signs.items():
            groups.setdefault(behind, set()).add(sign)
        return tuple((frozenset(signs), behind) for behind, signs in groups.items())

    @cached_property
    def names(self) -> tuple[tuple[int, Name, Stack | None], ...]:
        """The names that may come."""
        return tuple((number, one, stack) for number, one, stack in self._every if isinstance(one, Name))

    @cached_property
    def literals(self) -> tuple[tuple[int, Literal, Stack | None], ...]:
        """The literals that may come."""
        return tuple((number, one, stack) for number, one, stack in self._every if isinstance(one, Literal))

    @cached_property
    def cheapest(self) -> tuple[int, ...]:
        """For each of the ways the lowest price of a terminal with what is behind it."""
        return tuple(min(_price(way, self._prices) for way in ways) for ways in self.ways)


@lru_cache(maxsize=4096)
def _without_brackets(words: Words) -> Words:
    """Those of some names that do not hold what closes brackets."""
    left = [word for word in words.members if "]" not in word]
    return words if len(left) == len(words) else words_of(left)


def _price(way: Way, prices: Prices) -> int:
    terminal, stack = way
    return (0 if terminal is None else prices.of(terminal)) + (0 if stack is None else stack.price)


def _by_text(found: Iterable[tuple[str, int, Stack | None]]) -> dict[str, tuple[Entry, ...]]:
    behind: dict[str, tuple[Entry, ...]] = {}
    for text, number, stack in found:
        behind[text] = (*behind.get(text, ()), (number, stack))
    return behind


class Place:
    """What may come next, or the part of it that begins in some ways (`Begun`).

    Identity is equality: `Threads` keeps one object for each set of threads.
    """

    def __init__(self, threads: tuple[Thread, ...], ways: tuple[Ways, ...], plan: Plan) -> None:
        self.threads = threads
        self.ways = ways
        self.plan = plan
        self.followed: dict[tuple[Lexeme, Begun | None], Place | None] = {}
        self.reached: dict[Lexeme, list[Thread]] = {}
        """The places, and the threads, that `Threads` has found behind lexemes."""
        self.least: int | None = None
        """Bytes to an end, as `guided.grammar.attributed.pricing` has found them."""
        self.listed: Words | None = None
        """The words that may come, as `guided.grammar.attributed.language` has found them."""
        self.in_quotes: dict[int, tuple[tuple[tuple[Words, bool], ...], bool]] = {}
        self.told: tuple[Words, ...] | None = None
        """The same of names in each of the quotes, and of all that mean something."""

    @cached_property
    def opens(self) -> tuple[Open, ...]:
        """The terminals that may come, each with what is behind it."""
        found = (Open(terminal, stack, one) for behind, one in self.ways for terminal, stack in behind)
        return tuple({(open_.terminal, open_.stack, id(open_.attribute)): open_ for open_ in found}.values())

    @property
    def may_end(self) -> bool:
        """Is the text so far in the language?"""
        return self.plan.may_end

    @property
    def keywords(self) -> Words:
        """The keywords that may come."""
        return self.plan.keywords

    @property
    def signs(self) -> frozenset[str]:
        """The signs that may come."""
        return self.plan.signs

    @cached_property
    def _all_names(self) -> tuple[tuple[Open, Spelled, Names], ...]:
        found = []
        for number, terminal, stack in self.plan.names:
            attribute = self.ways[number].attribute
            names = terminal.kind.allowed(attribute)
            if names.free or len(names.words):
                found.append((Open(terminal, stack, attribute), terminal.spelled, names))
        return tuple(found)

    @cached_property
    def names(self) -> tuple[tuple[Open, Names], ...]:
        """The names that may come as words, with what is open for them."""
        return tuple((open_, names) for open_, spelled, names in self._all_names if spelled is not Spelled.STRING)

    @cached_property
    def quoted(self) -> tuple[tuple[Open, Names], ...]:
        """The names that may come in quotes."""
        return tuple((open_, names) for open_, spelled, names in self._all_names if spelled is Spelled.ANY)

    @cached_property
    def bracketed(self) -> tuple[tuple[Open, Names], ...]:
        """The names that may come in brackets."""
        found = []
        for open_, names in self.quoted:
            words = _without_brackets(names.words)
            if names.free or len(words):
                found.append((open_, names if words is names.words else replace(names, words=words)))
        return tuple(found)

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
        found = []
        for number, terminal, stack in self.plan.literals:
            attribute = self.ways[number].attribute
            values = terminal.kind.allowed(attribute)
            if not isinstance(values, Words) or len(values):
                found.append((Open(terminal, stack, attribute), terminal.form, values))
        return tuple(found)

    @cached_property
    def keeps(self) -> bool:
        """Is a free string kept as it is read?"""
        kept = ((one.terminal, one.attribute) for one, _, _ in self.literals)
        return any(isinstance(of, Literal) and of.keeps is not None and of.keeps(one) for of, one in kept)


class Threads:
    """Makes and keeps the places of a grammar.

    Attributes are large, so each is hashed once: equal ones become one object, which is known by its address.
    """

    def __init__(self, start: Node, attribute: Hashable) -> None:
        self._stacks: dict[tuple[Node, Stack | None], Stack] = {}
        self._attributes: dict[Any, Any] = {}
        self._places: dict[frozenset[tuple[Stack | None, int]], Place] = {}
        self._parts: dict[tuple[Begun, frozenset[tuple[Stack | None, int]]], Place] = {}
        self.prices = Prices()
        self._first = FirstSets()
        self._behind: dict[tuple[First, Stack | None], tuple[Way, ...]] = {}
        self._ways: dict[tuple[Stack | None, int, Begun | None], tuple[Any, tuple[Ways, ...]]] = {}
        self._plans: dict[tuple[int, ...], Plan] = {}
        self._leads: Kept[tuple[tuple[Stack | None, int], ...], tuple[list[Thread], bool]] = Kept(_PLACES)
        """With the threads themselves: as long as it is known, no other attribute may come to be where theirs are."""
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

    def place(self, threads: Iterable[Thread], begun: Begun | None = None) -> Place | None:
        """The place of these threads, None where nothing can follow and the text may not end."""
        return self.place_of(self._kept(threads), begun)

    def _kept(self, threads: Iterable[Thread]) -> list[Thread]:
        """Threads whose attributes are each the one of its kind."""
        return [(stack, self._attributes.setdefault(one, one)) for stack, one in threads]

    def place_of(self, threads: list[Thread], begun: Begun | None = None) -> Place | None:
        """The same of threads that were `reached`, whose attributes are each the one of its kind."""
        ordered = {(stack, id(one)): (stack, one) for stack, one in threads}
        key = frozenset(ordered)
        found = self._places.get(key) if begun is None else self._parts.get((begun, key))
        if found is None:
            if len(self._places) + len(self._parts) >= _PLACES or len(self._attributes) >= _ATTRIBUTES:
                self._forget()
            kept = tuple(ordered.values())
            if len(kept) == 1:
                ways = self._open(*kept[0], begun)
            else:
                ways = _each_once(one for thread in kept for one in self._open(*thread, begun))
            if not ways:
                return None
            key_of_plan = tuple([id(behind) for behind, _ in ways])
            plan = self._plans.get(key_of_plan)
            if plan is None:
                plan = self._plans[key_of_plan] = Plan(ways, self.prices)
            found = Place(kept, ways, plan)
            if begun is None:
                self._places[key] = found
            else:
                self._parts[begun, key] = found
        return found

    def _forget(self) -> None:
        """Forget all places; those that are held elsewhere go on to work, and equal ones are two objects then."""
        for place in (*self._places.values(), *self._parts.values()):
            place.followed.clear()
            place.reached.clear()
        for kept in (self._places, self._parts, self._ways, self._attributes, self._leads):
            kept.clear()
        if len(self._plans) > _PLANS:
            for read in (self._stacks, self._behind, self._plans):
                read.clear()

    def _open(self, stack: Stack | None, attribute: Any, begun: Begun | None) -> tuple[Ways, ...]:
        """The terminals that may come at a thread, whose attribute is the one of its kind."""
        key = (stack, id(attribute), begun)
        known = self._ways.get(key)
        if known is not None:
            return known[1]
        found: list[Ways] = []
        if stack is None:
            found.append(Ways(_END, attribute))
        else:
            first = self._first.of(stack.node)
            if begun is not None:
                first = self._first.part(first, begun)
            self._begin(first, stack.below, attribute, found, begun)
        ways = _each_once(found)
        # With the attribute, so that no other comes to have its address.
        self._ways[key] = (attribute, ways)
        return ways

    def _begin(self, first: First, below: Stack | None, attribute: Any, found: list[Ways], begun: Begun | None) -> None:
        """Run the actions of a node, and note the terminals behind them."""
        if first.terminals:
            behind = self._behind.get((first, below))
            if behind is None:
                pairs = ((one, below if rest is None else self.push(rest, below)) for one, rest in first.terminals)
                behind = self._behind[(first, below)] = tuple(dict.fromkeys(pairs))
            found.append(Ways(behind, attribute))
        for change, following in first.actions.items():
            changed = change(attribute)
            if changed is attribute:
                self._begin(following, below, attribute, found, begun)
            elif changed is not None:
                self._begin(following, below, self._attributes.setdefault(changed, changed), found, begun)
        if first.is_nullable:
            found += self._open(below, attribute, begun)

    def after(self, place: Place, lexeme: Lexeme, reserved: bool, begun: Begun | None = None) -> Place | None:
        """The place behind a lexeme, None where it may not stand; a ``reserved`` word is no name.

        With ``begun`` it is only the part of the place where the next lexeme begins so, None where none does.
        """
        found = place.followed.get((lexeme, begun), place)
        if found is place:
            found = self.place_of(self.reached(place, lexeme, reserved), begun)
            place.followed[lexeme, begun] = found
        return found

    def reached(self, place: Place, lexeme: Lexeme, reserved: bool) -> list[Thread]:
        """The threads behind a lexeme, of which no place is made; for ``reserved`` see `after`."""
        found = place.reached.get(lexeme)
        if found is None:
            if lexeme.kind is LexemeKind.SIGN:
                found = self.behind(place, place.plan.behind_signs.get(lexeme.text, ()))
            else:
                found = self._kept(_read(place, lexeme, reserved))
            place.reached[lexeme] = found
        return found

    def behind(self, place: Place, entries: Iterable[Entry]) -> list[Thread]:
        """The threads behind some entries of a place's plan."""
        return [(stack, place.ways[number].attribute) for number, stack in entries]

    def lead_on(self, threads: list[Thread]) -> bool:
        """Is there a place of threads that were `reached`?  It is not made: few are ever come to."""
        key = tuple([(stack, id(one)) for stack, one in threads])
        found = self._leads.get(key)
        if found is None:
            found = self._leads[key] = threads, any(self._may_follow(*thread) for thread in threads)
        return found[1]

    def apart(self) -> Threads:
        """Threads of the same grammar that keep their places by themselves."""
        found = copy(self)
        found._attributes, found._places, found._parts, found._ways = {}, {}, {}, {}
        found._leads = Kept(_PLACES)
        return found

    def _may_follow(self, stack: Stack | None, attribute: Any) -> bool:
        """May anything follow, or the text end?"""
        return stack is None or self._may_begin(self._first.of(stack.node), stack.below, attribute)

    def _may_begin(self, first: First, below: Stack | None, attribute: Any) -> bool:
        """The same of a node: as `_begin`, but only until a terminal is found."""
        if first.terminals:
            return True
        for change, following in first.actions.items():
            changed = change(attribute)
            if changed is not None and self._may_begin(following, below, changed):
                return True
        return first.is_nullable and self._may_follow(below, attribute)


_END: tuple[Way, ...] = ((None, None),)


def _each_once(ways: Iterable[Ways]) -> tuple[Ways, ...]:
    """Ways, each once and in their order."""
    return tuple({(id(one.behind), id(one.attribute)): one for one in ways}.values())


def _read(place: Place, lexeme: Lexeme, reserved: bool) -> list[Thread]:
    """The threads behind a lexeme that is no sign."""
    kind, text, written = lexeme
    found: list[Thread] = []
    if kind in (LexemeKind.NUMBER, LexemeKind.STRING):
        form = LiteralForm.NUMBER if kind is LexemeKind.NUMBER else LiteralForm.STRING
        held = False
        for open_, of, values in place.literals:
            assert isinstance(open_.terminal, Literal)
            if of is form and not open_.terminal.gives_way and (values is None or text in values):
                found.append((open_.stack, open_.terminal.after(open_.attribute, text)))
                held = held or values is not None
        for open_, of, values in () if held else place.literals:
            assert isinstance(open_.terminal, Literal)
            if of is form and open_.terminal.gives_way and (values is None or text in values):
                found.append((open_.stack, open_.terminal.after(open_.attribute, text)))
        return found
    if kind is LexemeKind.WORD:
        found = [(stack, place.ways[number].attribute) for number, stack in place.plan.behind_words.get(text, ())]
    if not reserved:
        for open_, names in names_as(place, kind):
            assert isinstance(open_.terminal, Name)
            name = (written or text) if open_.terminal.is_exact else text
            # No name is empty, but a string may be.
            is_name = bool(name) or open_.terminal.spelled is Spelled.STRING
            is_free = names.free and not is_called(text) and (kind is not LexemeKind.WORD or text.isascii())
            if is_name and (is_free or name in names.words):
                after = open_.terminal.kind.after(open_.attribute, name)
                if after is not None:
                    found.append((open_.stack, after))
    return found


def names_as(place: Place, kind: LexemeKind) -> tuple[tuple[Open, Names], ...]:
    """The names that a lexeme of a kind may be."""
    match kind:
        case LexemeKind.BRACKETED:
            return place.bracketed
        case LexemeKind.WORD:
            return place.names
        case LexemeKind.DOUBTFUL:
            return place.doubtful
        case LexemeKind.TEXT:
            return place.texts
    return place.quoted
