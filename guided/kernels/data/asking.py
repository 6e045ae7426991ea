"""How a kernel writes a request."""

from __future__ import annotations

from guided.kernels.data import views
from guided.kernels.jit import called, inner

__all__ = ["ask"]


@inner
def ask(table, kind, first=0, second=0, third=0):
    """Write a request, once; False where there is no room for another, and the kernel must return.

    Those that are there already are few: they are compared one by one.
    """
    called()
    requests = views.requests(table)
    n = requests.count[0]
    if n == requests.entries.shape[0]:
        return False
    for i in range(n):
        if (
            requests.entries[i, 0] == kind
            and requests.entries[i, 1] == first
            and requests.entries[i, 2] == second
            and requests.entries[i, 3] == third
        ):
            return True
    requests.entries[n, 0] = kind
    requests.entries[n, 1] = first
    requests.entries[n, 2] = second
    requests.entries[n, 3] = third
    requests.count[0] = n + 1
    return n + 1 < requests.entries.shape[0]
