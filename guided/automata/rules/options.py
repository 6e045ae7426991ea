"""Options of a choice as one small automaton: what they begin with, and what they end with, is lowered once.

``item~0..30`` is written out by Lark as 31 options of 465 items, and of a product of such repetitions there are
thousands.  A finite set of sequences has a deterministic automaton whose states are the sets of what may be left
(Brzozowski, "Derivatives of Regular Expressions", 1964): of that repetition it has 31.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from guided.automata.rules.nodes import Nodes
from guided.grammar.ir import Body, Reference, Sequence, Terminal
from guided.kernels.data.layout import EMPTY


def lower_options(graph: Nodes, options: Iterable[Body], start: int, end: int) -> None:
    """Add edges from ``start`` to ``end`` for each of some options."""
    rests: list[tuple[Body, int]] = [(Sequence(()), 0)]
    """What may be left of an option, by number: its first part, and the rest behind that; 0: nothing."""
    numbers: dict[tuple[Hashable, int], int] = {}
    whole: set[int] = set()
    for option in options:
        left = 0
        for part in reversed(option.parts) if isinstance(option, Sequence) else (option,):
            number = numbers.setdefault((_said(part), left), len(rests))
            if number == len(rests):
                rests.append((part, left))
            left = number
        whole.add(left)
    nodes: dict[tuple[int, ...], int] = {(0,): end}
    work = [(start, tuple(sorted(whole)))]
    while work:
        at, several = work.pop()
        following: dict[Hashable, tuple[Body, set[int]]] = {}
        for each in several:
            part, left = rests[each]
            if each:
                following.setdefault(_said(part), (part, set()))[1].add(left)
            else:
                graph.add(at, EMPTY, 0, end)
        for part, behind in following.values():
            then = tuple(sorted(behind))
            node = nodes.get(then)
            if node is None:
                node = nodes[then] = graph.node()
                work.append((node, then))
            graph.lower(part, at, node)


def _said(part: Body) -> Hashable:
    """What is the same for parts that say the same, as far as that is plain."""
    if isinstance(part, Reference):
        return part.rule
    if isinstance(part, Terminal):
        return part.expr, part.label, part.lexer
    return part
