"""`guided warmup`: compile every kernel ahead, so that no later command waits for it."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from guided.cli.compilation.kernel_claims import shared_kernels
from guided.cli.compilation.kernel_library import kernels_of_library
from guided.cli.methods.options import AsJson
from guided.cli.output import print_json, print_text
from guided.cli.progress import kernel_compilation
from guided.kernels.ahead.library import FOLDER

__all__ = ["compile_beside", "warmup"]


def warmup(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels ahead: once after installing, or when building an image.

    They become a library beside the package, which later processes load without Numba. Where that cannot be made,
    because nothing links it or the folder cannot be written, Numba keeps them: beside the package, or in
    `NUMBA_CACHE_DIR` where that is set; where there are two processors, a second process compiles about half of them.

    **Examples:**

        guided warmup
        GUIDED_KERNELS=numba NUMBA_CACHE_DIR=/opt/cache guided warmup --quiet
    """
    began, clock = time.perf_counter(), time.time()
    if (count := kernels_of_library(quiet=quiet or as_json)) is not None:
        _tell(count, time.perf_counter() - began, str(FOLDER), quiet=quiet, as_json=as_json)
        return
    from guided.cli.compilation import kernel_calls

    with kernel_compilation(quiet=quiet or as_json) as compiled:
        folders = _cache_folders()
        new = not any(any(folder.glob("*.nbi")) for folder in folders)
        with _second_process() if _processors() > 1 and new else contextlib.nullcontext(), _seldom_collected():
            kernel_calls.masks()
            kernel_calls.everything()
    seconds = time.perf_counter() - began
    # What the second process compiled is seen in the cache alone.
    count = max(len(compiled), _kept_since(folders, clock)) if new else len(compiled)
    _tell(count, seconds, os.path.commonpath(folders), quiet=quiet, as_json=as_json)


def _tell(count: int, seconds: float, home: str, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        print_json({"compiled": count, "seconds": round(seconds, 3), "cache": home})
    elif not quiet:
        done = f"{count} kernels compiled" if count else "all kernels were compiled already"
        print_text(f"{done} ({seconds:.1f} s); they are kept in {home}")


@contextlib.contextmanager
def _second_process() -> Iterator[None]:
    """Another process compiles kernels too during the block, from the other end: each kernel is compiled by one of us.

    Whatever comes of it, what it did not compile is compiled here; its work ends with the block.
    """
    with tempfile.TemporaryDirectory(prefix="guided-") as claims:
        code = (
            "import sys; from guided.cli.commands.warmup import compile_beside;"
            " compile_beside(sys.argv[1], int(sys.argv[2]))"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, claims, str(os.getpid())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            with shared_kernels(Path(claims), lambda: process.poll() is None):
                yield
        finally:
            process.kill()
            process.wait()


def compile_beside(claims: str, parent: int) -> None:
    """The second process's share: kernels that no mask needs, steps, then whatever is left."""
    from guided.cli.compilation import kernel_calls

    with shared_kernels(Path(claims), lambda: os.getppid() == parent), _seldom_collected():
        kernel_calls.alone()
        kernel_calls.steps()
        kernel_calls.everything()


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """In the block, cyclic garbage is looked for a thirtieth as often, and not among what was there before.

    Numba's compiler keeps most of what it makes: at Python's own pace the looking takes a tenth of the time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _kept_since(folders: list[Path], clock: float) -> int:
    """How many variants of kernels were put into the cache since."""
    return sum(path.stat().st_mtime >= clock for folder in folders for path in folder.glob("*.nbc"))


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_folders() -> list[Path]:
    """Where compiled kernels are kept: a folder for each of the sources'."""
    from guided.cli.compilation.kernel_claims import all_kernels

    return sorted({Path(kernel.stats.cache_path) for kernel in all_kernels()})
