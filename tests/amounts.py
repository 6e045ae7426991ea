"""How much of what is random, or many of a kind, the default suite takes; `make test-slow` takes all of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

ALL = os.environ.get("GUIDED_TEST_ALL", "") not in ("", "0")


def some(n: int, share: int = 4) -> int:
    """The number of random trials: one in ``share`` of the ``n`` that the long suite makes, the first of the same."""
    return n if ALL else max(n // share, 1)


def mostly_slow(values: Iterable[Any], n: int) -> list[Any]:
    """Parameters of which the default suite takes the first ``n``."""
    return [value if place < n else pytest.param(value, marks=pytest.mark.slow) for place, value in enumerate(values)]
