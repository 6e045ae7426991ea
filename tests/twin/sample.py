"""Random sentences of a grammar: a random derivation, and a random member of each terminal.

Depth is bounded: once the derivation is ``depth`` rules deep, only options of least height are taken.
"""

from __future__ import annotations

import random
from functools import cache

from guided.grammar.ir import AnyTerminal, Body, Choice, Grammar, Lexing, Reference, Repetition, Sequence
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr
from guided.grammar.rules import every_rule

INFINITE = 10**9


def heights(grammar: Grammar) -> list[int]:
    """For each rule the least number of nested rules that a derivation needs."""
    known = [INFINITE] * len(grammar.rules)
    changed = True
    while changed:
        changed = False
        for index, rule in enumerate(every_rule(grammar.rules)):
            height = 1 + height_of(rule.body, known)
            if height < known[index]:
                known[index], changed = height, True
    return known


def height_of(body: Body, known: list[int]) -> int:
    if isinstance(body, AnyTerminal):
        return 0
    if isinstance(body, Reference):
        return known[body.rule]
    if isinstance(body, Sequence):
        return max((height_of(part, known) for part in body.parts), default=0)
    if isinstance(body, Choice):
        return min((height_of(option, known) for option in body.options), default=INFINITE)
    if isinstance(body, Repetition):
        return height_of(body.body, known) if body.low else 0
    raise NotImplementedError(type(body))


class Sampler:
    """Draws sentences; ``more`` is the chance of one more copy in a repetition."""

    def __init__(self, grammar: Grammar, rng: random.Random, *, depth: int = 12, more: float = 0.3) -> None:
        assert grammar.lexing is Lexing.NONE
        self.grammar, self.rng, self.depth, self.more = grammar, rng, depth, more
        self.heights = heights(grammar)
        assert self.heights[grammar.start] < INFINITE, "the language is empty"

    def sentence(self) -> bytes:
        return self._body(Reference(self.grammar.start), 0)

    def _body(self, body: Body, depth: int) -> bytes:
        if isinstance(body, AnyTerminal):
            return member(body.language(), self.rng)
        if isinstance(body, Reference):
            return self._body(self.grammar.rules[body.rule].body, depth + 1)
        if isinstance(body, Sequence):
            return b"".join(self._body(part, depth) for part in body.parts)
        if isinstance(body, Choice):
            costs = [height_of(option, self.heights) for option in body.options]
            bound = max(self.depth - depth, min(costs))
            return self._body(
                self.rng.choice([o for o, c in zip(body.options, costs, strict=True) if c <= bound]), depth
            )
        if isinstance(body, Repetition):
            count = body.low
            if height_of(body.body, self.heights) <= self.depth - depth:
                while (body.high is None or count < body.high) and self.rng.random() < self.more:
                    count += 1
            between = [b"" if body.separator is None else self._body(body.separator, depth) for _ in range(1, count)]
            parts = [self._body(body.body, depth) for _ in range(count)]
            return b"".join(part + gap for part, gap in zip(parts, [*between, b""], strict=False))
        raise NotImplementedError(type(body))


@cache
def distance(expr: Expr) -> int:
    """Bytes to the nearest end, by breadth-first search."""
    frontier, seen, steps = [expr], {expr}, 0
    while not any(item.nullable for item in frontier):
        following = {target for item in frontier for _, _, target in edges(item)} - seen
        if not following:
            return INFINITE
        seen |= following
        frontier, steps = list(following), steps + 1
    return steps


def member(expr: Expr, rng: random.Random, length: int = 6) -> bytes:
    """A random string of a regular language: a random walk of about ``length`` bytes, then the shortest way out."""
    text = bytearray()
    while True:
        if expr.nullable and (len(text) >= length or rng.random() < 0.15):
            return bytes(text)
        ways = list(edges(expr))
        if not ways:
            return bytes(text)
        if len(text) >= length:
            least = min(distance(target) for _, _, target in ways)
            ways = [way for way in ways if distance(way[2]) == least]
        low, high, expr = rng.choice(ways)
        text.append(rng.randint(low, high))
