"""How kernels are compiled: those that Python calls, and those that only kernels call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event

__all__ = ["compiled_kernel", "direct", "entry", "inner", "logger"]

logger = logging.getLogger("guided")
"""Says once a process that kernels are compiled: nobody should wait half a minute without knowing what for."""


_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "_nrt": False,
}
"""No kernel divides by 0, so none has to be ready to raise that: first masks take a twentieth less.

And none makes an array (`guided.kernels.local_arrays`), so none counts references (``_nrt``): that was a tenth of the
time of compiling them, and of what a call from Python with arrays takes.
"""


def entry(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel that Python calls."""
    return njit(kernel, **_OPTIONS)


def inner(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel that only kernels call: without what Python would call it by.

    That unpacks each array of an argument and packs each of a result, a third of the time of compiling a small kernel.
    A call from Python would end the process.
    """
    return njit(kernel, no_cpython_wrapper=True, **_OPTIONS)


_entry_points: dict[Any, Callable[..., Any]] = {}


def direct(kernel: Any) -> Callable[..., Any]:
    """A kernel as it is called where the types of its arguments are known: half of what a call from Python costs.

    Numba's dispatcher asks each argument for its type, 0.4 us where one is an array.  This is what it would choose,
    once the kernel has been called and only ever for one kind of arguments; until then it is the dispatcher itself.
    """
    if kernel not in _entry_points:
        made = list(getattr(kernel, "overloads", {}).values())
        if len(made) == 1 and made[0].entry_point is not None:
            _entry_points[kernel] = made[0].entry_point
    return _entry_points.get(kernel, kernel)


def compiled_kernel(of: Any) -> str | None:
    """The kernel that one of Numba's events of compiling is about; None where it is a function of somebody else's."""
    kernel = of.data["dispatcher"].py_func
    return str(kernel.__name__) if str(kernel.__module__).startswith("guided.") else None


class _Announcement(event.Listener):  # type: ignore[misc]
    """Numba has an event when it compiles what its cache on disk does not hold, and none when it reads the cache."""

    said = False

    def on_start(self, of: Any) -> None:
        if not self.said and compiled_kernel(of):
            self.said = True
            logger.warning(
                "guided: compiling kernels, once on this machine: about half a minute (`guided warmup` does it ahead)"
            )

    def on_end(self, of: Any) -> None:
        pass


event.register("numba:compile", _Announcement())
