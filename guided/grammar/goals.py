"""How few members meet all the goals of a record (`guided.grammar.ir.Members`): bit sets, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable


def fewest_to_meet(meets: Iterable[int], goals: int) -> int | None:
    """The least number of members that together meet all goals, or None when they cannot.

    ``meets`` has a bit set for each sort of member, of which any number may be taken.

    >>> fewest_to_meet([0b01, 0b10], 0b11), fewest_to_meet([0b11, 0b01], 0b11), fewest_to_meet([0b01], 0b11)
    (2, 1, None)
    """
    sorts = {item & goals for item in meets}
    reached = {0}
    count = 0
    while goals not in reached:
        more = {met | item for met in reached for item in sorts} - reached
        if not more:
            return None
        reached |= more
        count += 1
    return count
