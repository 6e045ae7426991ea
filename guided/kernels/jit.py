"""The one place that knows how kernels come to be: from the library, or compiled by Numba when they are first called.

Kernels are marked by what calls them: `entry` for Python, `inner` for other kernels, `inlined` for those that are
written out wherever others call them.  Where the library of `guided.kernels.ahead` is there, an `entry` is the
library's function, the others are not needed, and nothing loads Numba.  Else `guided.kernels.just_in_time` compiles
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guided.kernels.ahead import library

__all__ = ["JUST_IN_TIME", "called", "direct", "entry", "inlined", "inner", "intrinsic"]

_LIBRARY = library.loaded()

JUST_IN_TIME = _LIBRARY is None
"""Whether Numba compiles the kernels of this process."""

if JUST_IN_TIME:
    from numba.extending import intrinsic

    from guided.kernels.just_in_time import called, direct, inlined, inner, python_calls
else:

    def _unused(kernel: Any = None, **_: Any) -> Any:
        """A function as it is written: only kernels would call it."""
        return _unused if kernel is None else kernel

    called = inlined = inner = intrinsic = _unused

    def direct(kernel: Any) -> Callable[..., Any]:
        """A kernel as it is called where the types of its arguments are known: the library knows no others."""
        return kernel  # type: ignore[no-any-return]


def entry(signature: str, *more: str) -> Callable[[Any], Any]:
    """Compile a kernel that Python calls, with arguments of these types (`guided.kernels.ahead.parameters`).

    The library is compiled for just these, and refuses others with a ``TypeError``.  Numba compiles for what comes.
    """

    def made(kernel: Any) -> Any:
        if _LIBRARY is None:
            return python_calls(kernel, (signature, *more))
        return getattr(_LIBRARY, f"{kernel.__module__}.{kernel.__name__}")

    return made
