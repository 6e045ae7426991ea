"""What kernels ask of Python: a buffer of requests, each a kind with up to three numbers.

A kernel never calls back.  When it needs something that Python must make (edges of a lexer state that nobody has
visited, room in a table), it writes a request (`guided.kernels.data.asking.ask`) and returns a negative number, at once
or when it has gathered all that it came to.  The caller answers the requests (`guided.constraint.engine.requests`,
where a table says what each kind is) and calls again.  Kernels start over: everything they add is interned, so a second
run finds it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Requests(NamedTuple):
    """Requests that are not answered yet: ``entries[:count[0]]``, each ``(kind, first, second, third)``."""

    entries: NDArray[np.int64]
    count: NDArray[np.int64]


# What each asks for, and its fields: the table in `guided.constraint.engine.requests`.
EXPAND_STATE, MEASURE_STATE, NEED_PARTIAL, EXPAND_NODE, COMPOSE, OPEN_BOUNDARY = range(1, 7)
JOIN_OBLIGATIONS, COMPARE, PRICE_NODES, PRICE_TERMINAL = range(7, 11)
WANT_START, WANT_UNDER, WANT_VERDICT, WANT_REST, WANT_WAYS = range(11, 16)
NEED_EFFECT, NEED_NEAR, NEED_LEXED, NEED_LEXED_NEAR = range(16, 20)
GROW_MACHINE, GROW_SCRATCH, GROW_SEGMENTS, GROW_LISTED = range(20, 24)
GROW_EXITS, GROW_NODES, GROW_TRIES, GROW_FANS, OUT_OF_FUEL = range(24, 29)
