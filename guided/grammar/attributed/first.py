"""What a node may begin with: its terminals, each with the actions before it and the nodes behind it.

Found once for a node, whatever the attribute is; a thread then only runs the actions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guided.grammar.attributed.nodes import Action, Choice, Node, Rule, Seq, Star, Terminal

__all__ = ["First", "FirstSets"]


class First:
    """A tree of actions: what may come behind those on the way to it."""

    __slots__ = ("actions", "is_nullable", "terminals")

    def __init__(self) -> None:
        self.actions: dict[Callable[[Any], Any], First] = {}
        self.terminals: list[tuple[Terminal, Node | None]] = []
        """Terminals, with what is behind each of the node, None for nothing."""
        self.is_nullable = False
        """May the node end here, with no terminal read?"""


class FirstSets:
    """Finds them, and keeps them by node."""

    def __init__(self) -> None:
        self._known: dict[Node, First] = {}
        self._rests: dict[tuple[Node, ...], Node] = {}

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
