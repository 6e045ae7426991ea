"""Rows of unions and of intersections say of each byte what the rows of their parts say together."""

import random
from itertools import pairwise

from guided.grammar.regular.derivative import possible_edges
from guided.grammar.regular.expr import EMPTY, Edge, Expr, alternation, intersection, literal, repeat, switch
from tests.amounts import some

_TARGETS = [repeat(literal(bytes((65 + i,))), i) for i in range(6)]


def _row(rng: random.Random) -> list[Edge]:
    """Many ranges that leave little out, or a few far between."""
    if rng.random() < 0.5:
        cuts = sorted({0, 256, *rng.sample(range(1, 256), rng.randint(0, 12))})
        ranges = [pair for pair in pairwise(cuts) if rng.random() < 0.8]
    else:
        cuts = sorted(rng.sample(range(257), 2 * rng.randint(1, 4)))
        ranges = list(zip(cuts[::2], cuts[1::2], strict=True))
    return [(low, stop - 1, rng.choice(_TARGETS)) for low, stop in ranges]


def _by_byte(row: list[Edge]) -> list[Expr | None]:
    found: list[Expr | None] = [None] * 256
    for low, high, target in row:
        found[low : high + 1] = [target] * (high + 1 - low)
    return found


def test_bytes_of_combinations_lead_to_what_those_of_their_parts_do() -> None:
    rng = random.Random(17)
    for _ in range(some(400)):
        rows = [row for row in (_row(rng) for _ in range(rng.randint(2, 5))) if row]
        parts = [switch(row, False) for row in rows]
        each = [_by_byte(row) for row in rows]
        for combined, combine, wanted in (
            (alternation(parts), alternation, any),
            (intersection(parts), intersection, all),
        ):
            row = list(possible_edges(combined))
            assert all(low <= high for low, high, _ in row)
            assert all(one[1] < other[0] for one, other in pairwise(row))
            assert not any(one[1] + 1 == two[0] and one[2] is two[2] for one, two in pairwise(row))
            for byte, found in enumerate(_by_byte(row)):
                ways = [of[byte] for of in each]
                target = combine([way for way in ways if way is not None]) if wanted(ways) else EMPTY
                assert (found or EMPTY) is target or (found is None and target.inhabited is False)
