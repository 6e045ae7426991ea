"""Strongly connected components of a graph of ints."""

from __future__ import annotations

from collections.abc import Sequence


def components(graph: Sequence[Sequence[int]]) -> list[list[int]]:
    """The components of the nodes ``0..len(graph)-1``, those that one leads to before it.

    Tarjan 1972, without recursion.

    >>> components([[1], [0, 2], []])
    [[2], [1, 0]]
    """
    index = [-1] * len(graph)
    low = [0] * len(graph)
    on_stack = [False] * len(graph)
    stack: list[int] = []
    result: list[list[int]] = []
    counter = 0
    for root in range(len(graph)):
        if index[root] >= 0:
            continue
        work = [(root, 0)]
        while work:
            node, position = work.pop()
            if position == 0:
                index[node] = low[node] = counter
                counter += 1
                stack.append(node)
                on_stack[node] = True
            for i in range(position, len(graph[node])):
                child = graph[node][i]
                if index[child] < 0:
                    work.append((node, i + 1))
                    work.append((child, 0))
                    break
                if on_stack[child]:
                    low[node] = min(low[node], index[child])
            else:
                if low[node] == index[node]:
                    members: list[int] = []
                    while True:
                        member = stack.pop()
                        on_stack[member] = False
                        members.append(member)
                        if member == node:
                            break
                    result.append(members)
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
    return result
