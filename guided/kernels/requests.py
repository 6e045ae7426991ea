"""What kernels ask of Python: a buffer of requests, each a kind with up to three numbers.

A kernel never calls back.  When it needs something that Python must make (edges of a lexer state that nobody has
visited, room in a table), it writes a request (`guided.kernels.asking.ask`) and returns a negative number, at once or
when it has gathered all that it came to.  The caller answers the requests (`guided.constraint.requests`, where a table
says what each kind is) and calls again.  Kernels start over: everything they add is interned, so a second run finds it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Requests(NamedTuple):
    """Requests that are not answered yet: ``entries[:count[0]]``, each ``(kind, first, second, third)``."""

    entries: NDArray[np.int64]
    count: NDArray[np.int64]


EXPAND_STATE, GROW_EXITS, GROW_NODES, GROW_TRIES = 1, 2, 3, 4
