"""How much of what is random, or many of a kind, the default suite takes; `make test-slow` takes all of it.

And how much of it may be refused: a test that passes over refusals counts them, or refusing everything would pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import pytest

ALL = os.environ.get("GUIDED_TEST_ALL", "") not in ("", "0")


def some(n: int, share: int = 4) -> int:
    """The number of random trials: one in ``share`` of the ``n`` that the long suite makes, the first of the same."""
    return n if ALL else max(n // share, 1)


def mostly_slow(values: Iterable[Any], n: int) -> list[Any]:
    """Parameters of which the default suite takes the first ``n``."""
    return [value if place < n else pytest.param(value, marks=pytest.mark.slow) for place, value in enumerate(values)]


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
