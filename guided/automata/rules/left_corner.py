"""Left-recursive rules as loops: the left-corner construction.

For a cycle K of rules that begin with each other, a text of rule A is a text of some rule of K that begins with none of
K, followed by the rests of rules of K that may begin with what was just completed, up to A.
"""

from __future__ import annotations

from guided.automata.rules.nodes import Nodes
from guided.kernels.data.layout import CALL, EMPTY


def lower_cycle(graph: Nodes, rule: int, component: frozenset[int], start: int) -> None:
    """The left-corner loop for one rule of a left-recursive cycle."""
    # Hubs lead on by empty edges to what is behind a call, which may be counted.
    graph.may_reach = True
    before = set(graph.pending)
    starts: dict[int, int] = {}
    hubs: dict[int, int] = {}
    for member in sorted(component & graph.analysis.productive):
        starts[member], hubs[member] = graph.node(), graph.node()
        graph.lower(graph.analysis.rules[member].body, starts[member], hubs[member])
    # Copies of the nodes that can be reached before anything is read: their calls into the cycle move to the hubs.
    leading: dict[int, int] = {}
    work: list[int] = []

    def lead(node: int) -> int:
        if node not in leading:
            if not graph.is_known(node):
                graph.make(node)
            leading[node] = graph.node()
            work.append(node)
        return leading[node]

    entries = [lead(node) for node in starts.values()]
    while work:
        node = work.pop()
        for kind, argument, target, label in list(graph.pending[node]):
            if kind == EMPTY:
                graph.add(leading[node], EMPTY, 0, lead(target))
            elif kind == CALL and argument in hubs:
                graph.add(hubs[argument], EMPTY, 0, target)
            elif not (kind == CALL and argument in component):
                graph.add(leading[node], kind, argument, target, label)
    final = graph.node()
    graph.end_at(final)
    graph.add(hubs[rule], EMPTY, 0, final)
    _end_with_itself(graph, set(graph.pending) - before, rule, hubs[rule], final)
    graph.pending[start] = []
    for entry in entries:
        graph.add(start, EMPTY, 0, entry)
    _keep_useful(graph, set(graph.pending) - before, final)


def _end_with_itself(graph: Nodes, nodes: set[int], rule: int, hub: int, final: int) -> None:
    """Let the rule end where a text of itself ends it, as ``e: e "+" e``: the inner text goes on as the outer would.

    So there is nothing to return to, and a text of a thousand terms is no deeper than one.
    """
    for node in nodes:
        graph.pending[node] = [
            (kind, argument, final if (kind, argument, target) == (CALL, rule, hub) else target, label)
            for kind, argument, target, label in graph.pending[node]
        ]


def _keep_useful(graph: Nodes, nodes: set[int], final: int) -> None:
    """Drop edges from which ``final`` is out of reach: another rule's text that never grows into this one's."""
    sources: dict[int, list[int]] = {}
    for node in nodes:
        for _, _, target, _ in graph.pending[node]:
            sources.setdefault(target, []).append(node)
    for node in [target for target in sources if not graph.is_known(target)]:
        sources.setdefault(graph.end_of(node), []).append(node)
    useful = {final}
    work = [final]
    while work:
        for node in sources.get(work.pop(), ()):
            if node not in useful:
                useful.add(node)
                work.append(node)
    for node in nodes:
        graph.pending[node] = [edge for edge in graph.pending[node] if edge[2] in useful]
