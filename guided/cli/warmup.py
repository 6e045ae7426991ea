"""`guided warmup`: compile every kernel ahead, so that no later command waits for it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from guided.cli.options import AsJson
from guided.cli.output import print_json, print_note, print_text
from guided.cli.progress import kernel_compilation

__all__ = ["warmup"]


def warmup(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels ahead: once after installing, or when building an image.

    They are kept beside the package, or in `NUMBA_CACHE_DIR` where that is set. Where there are two processors,
    a second process compiles half of them.

    **Examples:**

        guided warmup
        NUMBA_CACHE_DIR=/opt/cache guided warmup --quiet
    """
    from guided.cli import kernel_calls

    began = time.perf_counter()
    with kernel_compilation(quiet=quiet or as_json) as compiled:
        folder = _cache_folder()
        adopted = 0
        new = not any(folder.glob("*.nbi"))
        if new and not (quiet or as_json or sys.stderr.isatty()):
            # A terminal has the bar; in a log, nothing would be said until the end.
            print_note("compiling kernels, once on this machine: about a minute")
        if _processors() > 1 and new:
            with _steps_elsewhere(folder) as other:
                kernel_calls.masks()
            adopted = other[0]
        kernel_calls.everything()
    seconds = time.perf_counter() - began
    count = len(compiled) + adopted
    if as_json:
        print_json({"compiled": count, "seconds": round(seconds, 3), "cache": str(folder)})
    elif not quiet:
        done = f"{count} kernels compiled" if count else "all kernels were compiled already"
        print_text(f"{done} ({seconds:.1f} s); they are kept in {folder}")


@contextlib.contextmanager
def _steps_elsewhere(folder: Path) -> Iterator[list[int]]:
    """Compile the steps in another process during the block; yields a list that afterwards says how many it was.

    It has a cache of its own, since two processes that add to one of Numba's indices at once lose entries of it, and
    what was compiled here is kept where both did so.  Any failure only means that the work is left to be done here.
    """
    count = [0]
    with tempfile.TemporaryDirectory(prefix="guided-") as cache:
        began = time.time()
        process = subprocess.Popen(
            [sys.executable, "-c", "from guided.cli.kernel_calls import steps; steps()"],
            env={**os.environ, "NUMBA_CACHE_DIR": cache}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield count
            if process.wait() == 0:
                count[0] = sum(_adopt(index, folder, began) for index in Path(cache).rglob("*.nbi"))
        finally:
            process.kill()
            process.wait()


def _adopt(index: Path, folder: Path, began: float) -> bool:
    """Put one kernel that another process compiled into our cache: its code first, then the index that names it.

    False where the cache has the kernel already, or got some of it since ``began`` from a third process.
    """
    codes = list(index.parent.glob(f"{index.stem}.*.nbc"))
    try:
        if any((folder / code.name).exists() and (folder / code.name).stat().st_mtime >= began for code in codes):
            return False
        if (folder / index.name).exists():
            return False
        folder.mkdir(parents=True, exist_ok=True)
        for path in (*codes, index):
            beside = folder / f"{path.name}.{os.getpid()}"
            shutil.copyfile(path, beside)
            os.replace(beside, folder / path.name)
    except OSError:
        return False
    return True


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_folder() -> Path:
    from guided.kernels import entry

    stats: Any = entry.fill.stats
    return Path(stats.cache_path)
