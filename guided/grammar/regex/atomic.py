"""Atomic groups and possessive quantifiers, rewritten into look-aheads that allow the preferred match only.

In ``(?>X)`` the first match of ``X`` in the order of preference is final.  That order is settled choice by choice: an
alternative may be taken only where no earlier one, followed by the rest of the group, matches; a greedy loop may be
left only where no further round does, and a lazy loop goes on only where leaving it does not.  Each such condition
looks at what follows within the group, so it is a negative look-ahead, and the language stays exact.
"""

from __future__ import annotations

from guided.grammar.regex.plain import size, widths
from guided.grammar.regex.syntax import Alternatives, Characters, Concatenation, Look, Node, Quantified

MAX_SPREAD = 8
"""Copies between the bounds of a counted repeat, each of which needs its own condition."""

MAX_SIZE = 5_000
"""Nodes of all conditions together."""


class CannotCommit(Exception):
    """The preferred match of this tree is not worked out here; the message says why."""


def commit(node: Node) -> Node:
    """A tree that matches like ``(?>node)``; raises `CannotCommit`.

    >>> commit(Quantified(Characters(((97, 97),)), 0, None)).parts[1]
    Look(body=Characters(ranges=((97, 97),)), ahead=True, negative=True)
    """
    return _Commitment().commit(node, ())


class _Commitment:
    def __init__(self) -> None:
        self.size = 0

    def commit(self, node: Node, rest: tuple[Node, ...]) -> Node:
        """``node`` kept to its preferred match, given that ``rest`` comes after it in the group."""
        self._grow(1)
        shortest, longest = widths(node)
        if shortest == longest or not isinstance(node, (Alternatives, Concatenation, Quantified)):
            return node  # All its matches end at one place, so the choice between them changes nothing.
        if isinstance(node, Concatenation):
            parts: list[Node] = []
            for part in reversed(node.parts):
                parts.insert(0, self.commit(part, rest))
                rest = (part, *rest)
            return _sequence(*parts)
        if isinstance(node, Alternatives):
            options: list[Node] = []
            for index, option in enumerate(node.options):
                kept = self.commit(option, rest)
                condition = self._fails(Alternatives(node.options[:index]), *rest)
                options.append(_sequence(condition, kept) if index else kept)
            return Alternatives(tuple(options))
        return self._repeat(node, rest)

    def _repeat(self, node: Quantified, rest: tuple[Node, ...]) -> Node:
        body, low, high, greedy = node.body, node.low, node.high, node.greedy
        if widths(body)[0] == 0:
            raise CannotCommit("it repeats something that may be empty")
        if isinstance(body, Characters) and greedy and not rest:
            return _commit_run(node)
        if low > MAX_SPREAD or (high is not None and high - low > MAX_SPREAD):
            raise CannotCommit(f"its counts are above {MAX_SPREAD}")

        def copy(done: int) -> Node:
            left = Quantified(body, max(low - done - 1, 0), None if high is None else high - done - 1, greedy)
            return self.commit(body, (left, *rest))

        copies = [copy(index) for index in range(low)]
        more: Node
        if high is None:
            star = Quantified(body, 0, None, greedy)
            again = self.commit(body, (star, *rest))
            if greedy:
                more = _sequence(Quantified(again, 0, None), self._fails(body, star, *rest))
            else:
                more = Quantified(_sequence(self._fails(*rest), again), 0, None)
        else:
            more = Concatenation(())
            for index in reversed(range(low, high)):
                if greedy:
                    stop = self._fails(body, Quantified(body, 0, high - index - 1), *rest)
                    more = Alternatives((_sequence(copy(index), more), stop))
                else:
                    more = Alternatives((Concatenation(()), _sequence(self._fails(*rest), copy(index), more)))
        return _sequence(*copies, more)

    def _fails(self, *nodes: Node) -> Node:
        self._grow(sum(map(size, nodes)))
        return _fails(*nodes)

    def _grow(self, amount: int) -> None:
        self.size += amount
        if self.size > MAX_SIZE:
            raise CannotCommit(f"its choices unfold to more than {MAX_SIZE} conditions")


def _commit_run(node: Quantified) -> Node:
    """A greedy run of one set with nothing after it: the maximum, or as many as there are."""
    stop = _fails(node.body)
    if node.high is None:
        return Concatenation((node, stop))
    fewer = Concatenation((Quantified(node.body, node.low, node.high - 1), stop))
    return Alternatives((Quantified(node.body, node.high, node.high), fewer))


def _fails(*nodes: Node) -> Node:
    return Look(_sequence(*nodes), ahead=True, negative=True)


def _sequence(*nodes: Node) -> Node:
    parts: list[Node] = []
    for node in nodes:
        parts.extend(node.parts if isinstance(node, Concatenation) else (node,))
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))
