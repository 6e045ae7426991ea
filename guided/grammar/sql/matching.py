"""Whether two results are the same answer, in the manner of Spider's test suites and of defog's evaluation.

Columns' names say nothing and their order is free: there must be an assignment of columns to columns under which the
rows are the same, as a bag, or as a list where the gold query orders them.  A row counts as often as it comes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from guided.grammar.sql.result import QueryResult

__all__ = ["holds_result", "same_result"]

SIGNIFICANT_DIGITS = 10
"""Of numbers: sums of the same numbers in another order differ behind them."""
MAX_TRIALS = 10_000
"""Assignments of columns that are tried; columns that hold the same values many times have many."""


def same_result(found: QueryResult, gold: QueryResult, *, ordered: bool) -> bool:
    """The same rows and the same number of columns."""
    return len(found.columns) == len(gold.columns) and holds_result(found, gold, ordered=ordered)


def holds_result(found: QueryResult, gold: QueryResult, *, ordered: bool) -> bool:
    """The gold's columns with the same rows, and perhaps more columns besides: what defog counts as right, too."""
    if len(found.rows) != len(gold.rows) or len(found.columns) < len(gold.columns):
        return False
    if not gold.rows:
        return True
    mine, theirs = _columns(found.rows), _columns(gold.rows)
    wanted = list(zip(*theirs, strict=True))
    for number, chosen in enumerate(_assignments(mine, theirs, ordered)):
        if number >= MAX_TRIALS:
            return False
        rows = list(zip(*(mine[index] for index in chosen), strict=True))
        if rows == wanted if ordered else Counter(rows) == Counter(wanted):
            return True
    return False


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Hashable]]:
    return [[_comparable(value) for value in column] for column in zip(*rows, strict=True)]


def _assignments(mine: list[list[Hashable]], theirs: list[list[Hashable]], ordered: bool) -> Iterator[tuple[int, ...]]:
    """For each of their columns one of mine with the same values, no one twice; of equal columns only the first left.

    Columns with the same values are as many here as there, so that no choice runs into a dead end.
    """
    bags = [_bag(column, ordered) for column in mine]
    wanted = [_bag(column, ordered) for column in theirs]
    if Counter(wanted) - Counter(bags):
        return iter(())
    fitting = [[index for index, bag in enumerate(bags) if bag == each] for each in wanted]

    def extend(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(chosen) == len(fitting):
            yield chosen
            return
        tried: set[Hashable] = set()
        for index in fitting[len(chosen)]:
            content = tuple(mine[index])
            if index not in chosen and content not in tried:
                tried.add(content)
                yield from extend((*chosen, index))

    return extend(())


def _bag(column: list[Hashable], ordered: bool) -> Hashable:
    return tuple(column) if ordered else frozenset(Counter(column).items())


def _comparable(value: Any) -> Hashable:
    """A value such that equal ones are the same answer: 1 and 1.0 and True, a date and its text."""
    if isinstance(value, (bool, int, float, Decimal)):
        if isinstance(value, int) and abs(value) >= 2**53:
            return int(value)
        number = float(value)
        if math.isnan(number):
            return "nan"
        return float(f"{number:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ")
        return text.removesuffix(" 00:00:00")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_comparable(each) for each in value)
    return str(value)
