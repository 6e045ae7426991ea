"""What the steps of a training read, made ahead by processes, chunk by chunk.

A chunk is made from its first step alone, so a training reads the same whatever the number of processes, and a run that
goes on where another ended reads what that one would have.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import TypeVar

__all__ = ["made_ahead"]

Made = TypeVar("Made")

AHEAD = 2
"""Chunks of each process that are made or waited for."""


def made_ahead(make: Callable[[int], list[Made]], starts: Iterable[int], workers: int) -> Iterator[Made]:
    """What ``make`` gives for each of ``starts``, in order; with ``workers`` of 0 in this process.

    Both travel by pickling, so ``make`` is a function of a module, perhaps partly applied, and what it makes is no
    tensor: a tensor between processes keeps a file open.
    """
    left = iter(starts)
    if workers == 0:
        for start in left:
            yield from make(start)
        return
    with ExitStack() as stack:
        pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(workers))
        ahead = deque(pool.apply_async(make, (start,)) for start in islice(left, AHEAD * workers))
        while ahead:
            yield from ahead.popleft().get()
            ahead.extend(pool.apply_async(make, (start,)) for start in islice(left, 1))
