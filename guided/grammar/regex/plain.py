"""Patterns without assertions: their language node by node, and questions about any tree.

Nothing here knows look-around; `guided.grammar.regex.lower` decides which way a pattern goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from guided.grammar.regex.syntax import (
    Alternatives,
    At,
    Characters,
    Concatenation,
    Group,
    Look,
    Node,
    Quantified,
    WordBoundary,
)
from guided.grammar.regular.characters import Encoding
from guided.grammar.regular.expr import Expr, alternation, concat, repeat


def contains_assertions(node: Node) -> bool:
    """Does the tree hold an anchor, a word boundary or a look-around?"""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, Characters):
            continue
        if isinstance(item, (Look, At, WordBoundary)):
            return True
        stack.extend(children(item))
    return False


def widths(node: Node) -> tuple[int, int | None]:
    """The fewest and the most characters (None: no bound) that a match of ``node`` can take, assertions ignored."""
    if isinstance(node, Characters):
        return 1, 1
    if isinstance(node, Concatenation):
        parts = [widths(part) for part in node.parts]
        bounds = [high for _, high in parts if high is not None]
        return sum(low for low, _ in parts), sum(bounds) if len(bounds) == len(parts) else None
    if isinstance(node, Alternatives):
        parts = [widths(option) for option in node.options]
        bounds = [high for _, high in parts if high is not None]
        return min(low for low, _ in parts), max(bounds) if len(bounds) == len(parts) else None
    if isinstance(node, Quantified):
        low, high = widths(node.body)
        if high == 0 or node.high == 0:
            return 0, 0
        return low * node.low, None if high is None or node.high is None else high * node.high
    return 0, 0


def depth(node: Node) -> int:
    """Levels of the tree; a single character or an anchor has one."""
    levels = 0
    layer = [node]
    while layer:
        levels += 1
        layer = [child for item in layer for child in children(item)]
    return levels


def nodes(node: Node) -> Iterator[Node]:
    """All nodes of the tree."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(children(item))


def size(node: Node) -> int:
    """How many nodes the tree has."""
    return sum(1 for _ in nodes(node))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes that ``node`` is made of."""
    if isinstance(node, Concatenation):
        return node.parts
    if isinstance(node, Alternatives):
        return node.options
    return (node.body,) if isinstance(node, (Quantified, Look, Group)) else ()


def lower_plain(node: Node, encoding: Encoding) -> Expr:
    """The language of a tree without assertions, written in ``encoding``."""
    if isinstance(node, Characters):
        return encoding.characters(node.ranges)
    if isinstance(node, Concatenation):
        return concat(*_runs(node.parts, encoding))
    if isinstance(node, Alternatives):
        return alternation([lower_plain(option, encoding) for option in node.options])
    if isinstance(node, Quantified):
        return repeat(lower_plain(node.body, encoding), node.low, node.high)
    raise AssertionError(f"{type(node).__name__} is an assertion")


def _runs(parts: tuple[Node, ...], encoding: Encoding) -> list[Expr]:
    """The parts, neighbouring single characters taken together as one string."""
    result: list[Expr] = []
    run: list[str] = []
    for part in parts:
        if isinstance(part, Characters) and len(part.ranges) == 1 and part.ranges[0][0] == part.ranges[0][1]:
            run.append(chr(part.ranges[0][0]))
            continue
        if run:
            result.append(encoding.string("".join(run)))
            run = []
        result.append(lower_plain(part, encoding))
    if run:
        result.append(encoding.string("".join(run)))
    return result
