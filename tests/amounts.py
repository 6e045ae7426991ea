"""How much of what is random, or many of a kind, the default suite takes; `make test-slow` takes all of it.

And how much of it may be refused: a test that passes over refusals counts them, or refusing everything would pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from types import TracebackType
from typing import Any, TypeVar

import pytest

ALL = os.environ.get("GUIDED_TEST_ALL", "") not in ("", "0")


T = TypeVar("T")


def some(n: int, share: int = 4) -> int:
    """The number of random trials: one in ``share`` of the ``n`` that the long suite makes, the first of the same."""
    return n if ALL else max(n // share, 1)


def mostly_slow(values: Iterable[Any], n: int) -> list[Any]:
    """Parameters of which the default suite takes the first ``n``."""
    return [value if place < n else pytest.param(value, marks=pytest.mark.slow) for place, value in enumerate(values)]


def crossed(*lists: Iterable[Any], share: int = 3) -> list[Any]:
    """Parameters that are combined each with each: the default suite takes one in ``share``, and each value of each list.

    It takes more than one in ``share`` where no two lists are that long, or some values would not come.

    >>> [case for case in crossed("ab", "xyz") if type(case) is tuple]
    [('a', 'x'), ('a', 'z'), ('b', 'y')]
    """
    cases: list[Any] = []
    numbers = [list(enumerate(values)) for values in lists]
    if any(isinstance(value, type(pytest.param())) for of in numbers for _, value in of):
        raise ValueError("what is marked already cannot be crossed: it would be handed over with its mark")
    # Where another list is as long as this, one of its values brings each value here to a sum that is taken.
    others = sorted(map(len, numbers))[-2]
    share = min(share, others) if others > 1 else share
    for numbered in product(*numbers):
        case = tuple(value for _, value in numbered)
        taken = sum(place for place, _ in numbered) % share == 0
        cases.append(case if taken else pytest.param(*case, marks=pytest.mark.slow))
    return cases


def each(values: Iterable[T], share: int = 4) -> list[T]:
    """One in ``share`` of these, in order; all of them in the long suite."""
    return list(values)[:: 1 if ALL else share]


class Refusals:
    """Trials that may be refused: behind the block, no more than a share of them was, and there were some.

    >>> with Refusals(most=0.5) as refusals:
    ...     for text in ("1", "x", "2"):
    ...         with refusals.trial(ValueError):
    ...             assert int(text) > 0
    >>> refusals.n_trials, refusals.n_refused
    (3, 1)
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self.n_trials = 0
        self.n_refused = 0

    @contextmanager
    def trial(self, *refusals: type[Exception]) -> Iterator[None]:
        """One trial, which ends where one of these errors is raised."""
        self.n_trials += 1
        try:
            yield
        except refusals:
            self.n_refused += 1

    def __enter__(self) -> Refusals:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            assert self.n_trials, "there was no trial"
            share = self.n_refused / self.n_trials
            assert share <= self.most, f"refused: {self.n_refused} of {self.n_trials}, more than {self.most:.0%}"
