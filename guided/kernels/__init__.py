"""Numba loops over flat arrays; no objects.  Importing this package does not import Numba.

Numba keeps compiled kernels beside their source and compiles one anew when *its* file has changed, but not when a
kernel that it calls in another file has.  So importing the package drops compiled kernels older than any source here.
"""

from __future__ import annotations

import contextlib
from pathlib import Path


def _drop_stale() -> None:
    folder = Path(__file__).parent
    with contextlib.suppress(OSError):
        newest = max(source.stat().st_mtime_ns for source in folder.rglob("*.py"))
        for index in folder.rglob("__pycache__/*.nbi"):
            if index.stat().st_mtime_ns < newest:
                index.unlink()


_drop_stale()
