"""What a node may begin with: its terminals, each with the actions before it and the nodes behind it.

Found once for a node, whatever the attribute is; a thread then only runs the actions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from guided.grammar.attributed.nodes import (
    Action,
    Choice,
    Keyword,
    Literal,
    LiteralForm,
    Name,
    Node,
    Rule,
    Seq,
    Sign,
    Spelled,
    Star,
    Terminal,
)

__all__ = ["Begun", "First", "FirstSets"]


class Begun(NamedTuple):
    """How the lexemes begin that are of interest; others need not be found."""

    signs: frozenset[str]
    """The first characters of signs."""
    words: bool
    numbers: bool
    strings: bool
    quotes: bool
    """Other quotes than ``'``."""

    @property
    def is_any(self) -> bool:
        """Does anything begin so?"""
        return bool(self.signs) or self.words or self.numbers or self.strings or self.quotes

    def has(self, terminal: Terminal) -> bool:
        """May a terminal begin so?"""
        match terminal:
            case Sign(text):
                return text[0] in self.signs
            case Keyword():
                return self.words
            case Name(spelled=spelled):
                return (self.words and spelled is not Spelled.STRING) or (self.quotes and spelled is not Spelled.WORD)
            case Literal(form=LiteralForm.NUMBER):
                return self.numbers
        return self.strings


class First:
    """A tree of actions: what may come behind those on the way to it."""

    def __init__(self) -> None:
        self.actions: dict[Callable[[Any], Any], First] = {}
        self.terminals: list[tuple[Terminal, Node | None]] = []
        """Terminals, with what is behind each of the node, None for nothing."""
        self.is_nullable = False
        """May the node end here, with no terminal read?"""

    @cached_property
    def signs(self) -> frozenset[str]:
        """The first characters of all signs."""
        own = {terminal.text[0] for terminal, _ in self.terminals if isinstance(terminal, Sign)}
        return frozenset(own).union(*(following.signs for following in self.actions.values()))


class FirstSets:
    """Finds them, and keeps them by node."""

    def __init__(self) -> None:
        self._known: dict[Node, First] = {}
        self._rests: dict[tuple[Node, ...], Node] = {}
        self._parts: dict[tuple[First, Begun], First] = {}

    def part(self, first: First, begun: Begun) -> First:
        """What of it begins in some ways, without the actions that lead to nothing else."""
        # Few of the signs of a vocabulary's tokens are the grammar's.
        begun = begun._replace(signs=begun.signs & first.signs)
        found = self._parts.get((first, begun))
        if found is None:
            found = self._parts[first, begun] = _part(first, begun)
        return found

    def of(self, node: Node) -> First:
        """What a node may begin with."""
        found = self._known.get(node)
        if found is None:
            found = First()
            self._add(found, (node,))
            self._known[node] = found
        return found

    def _rest(self, parts: tuple[Node, ...]) -> Node | None:
        """Some parts as one node."""
        if len(parts) <= 1:
            return parts[0] if parts else None
        found = self._rests.get(parts)
        if found is None:
            found = self._rests[parts] = Seq(parts)
        return found

    def _add(self, to: First, parts: tuple[Node, ...]) -> None:
        """Add what parts in a row begin with."""
        if not parts:
            to.is_nullable = True
            return
        node, rest = parts[0], parts[1:]
        match node:
            case Terminal():
                to.terminals.append((node, self._rest(rest)))
            case Action(change):
                self._add(to.actions.setdefault(change, First()), rest)
            case Seq(inner):
                self._add(to, inner + rest)
            case Choice(options=options):
                for option in options:
                    self._add(to, (option, *rest))
            case Star(item=item):
                self._add(to, (item, *parts))
                self._add(to, rest)
            case Rule(body=body):
                assert body is not None
                self._add(to, (body, *rest))


def _part(first: First, begun: Begun) -> First:
    found = First()
    found.is_nullable = first.is_nullable
    found.terminals = [one for one in first.terminals if begun.has(one[0])]
    for change, following in first.actions.items():
        part = _part(following, begun)
        if part.terminals or part.actions or part.is_nullable:
            found.actions[change] = part
    return found
