"""Random expressions over valid UTF-8: what tests of pattern algebra try; not patterns in any notation."""

from __future__ import annotations

import random
from collections.abc import Sequence

from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.expr import Expr, alternation, complement, concat, intersection, repeat


def expression(seed: random.Random, depth: int, atoms: Sequence[Expr], most: int) -> Expr:
    """An expression of atoms, so deep; repetitions have an upper bound of up to two and ``most``, or none."""
    kind = seed.random()
    if depth == 0 or kind < 0.2:
        return seed.choice(atoms)

    def part() -> Expr:
        return expression(seed, depth - 1, atoms, most)

    if kind < 0.5:
        return concat(part(), part())
    if kind < 0.7:
        return alternation([part(), part()])
    if kind < 0.88:
        low = seed.randint(0, 2)
        return repeat(part(), low, seed.choice([None, low + seed.randint(0, most)]))
    if kind < 0.95:
        return intersection([part(), part()])
    return intersection([Utf8().text, complement(part())])
