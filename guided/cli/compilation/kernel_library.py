"""The library of compiled kernels, made by a process of its own where it is missing."""

from __future__ import annotations

import os
import subprocess
import sys

from guided.cli.output import print_note
from guided.kernels.ahead.library import CHOICE, FOLDER, found

__all__ = ["kernels_of_library"]


def kernels_of_library(*, quiet: bool) -> int | None:
    """How many kernels were compiled into a library now, 0 where it was there; None where Numba must keep them."""
    if os.environ.get(CHOICE) == "numba":
        return None
    if found() is not None:
        return 0
    if not os.access(FOLDER, os.W_OK):
        return None
    if not quiet:
        print_note("compiling kernels, once on this machine: about a minute")
    done = subprocess.run([sys.executable, "-m", "guided.kernels.ahead"], capture_output=True, text=True)
    if done.returncode or found() is None:
        if not quiet:
            reason = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
            print_note(f"there is no library of kernels ({reason}); Numba compiles each when it is first called")
        return None
    from guided.kernels.ahead.library import loaded

    return sum(name.startswith("guided.") for name in dir(loaded()))
