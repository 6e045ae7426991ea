"""`python -m guided.kernels.ahead`: make the library of compiled kernels, beside the sources."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> None:
    """Make the libraries of this machine's architecture, or of the levels that are named."""
    # Before anything loads Numba: nothing may be lowered for more than the least of the levels.
    os.environ["GUIDED_KERNELS"] = "numba"
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = "generic", ""
    from guided.kernels.ahead.levels import LEVELS, levels_here, machine
    from guided.kernels.ahead.library import FOLDER

    parser = argparse.ArgumentParser(prog="python -m guided.kernels.ahead", description=__doc__)
    names = [level.name for level in LEVELS]
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help=f"of {', '.join(names)}; all of this architecture")
    parser.add_argument("--here", action="store_true", help="only the best level of this processor")
    parser.add_argument("--machine", default=machine(), help="all levels of another architecture than this one's")
    parser.add_argument("--into", type=Path, default=FOLDER, help="another folder than the package's own")
    chosen = parser.parse_args()
    if unknown := set(chosen.levels) - set(names):
        parser.error(f"no level: {', '.join(sorted(unknown))}")
    levels = [
        level
        for level in LEVELS
        if level.name in chosen.levels or (not chosen.levels and level.machine == chosen.machine)
    ]
    if chosen.here:
        levels = levels_here()[:1]
    if not levels:
        sys.exit("no library can be made for this system; Numba compiles the kernels")

    from guided.kernels.ahead.build import build

    for path in build(levels, chosen.into):
        print(path)


if __name__ == "__main__":
    main()
