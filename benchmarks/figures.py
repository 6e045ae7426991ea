"""Numbers and where they were measured: percentiles, the machine and the commit, time limits, interleaving."""

from __future__ import annotations

import hashlib
import platform
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

__all__ = ["TooSlow", "commit", "machine", "percentiles", "ratio", "time_limit", "turns"]

PERCENTILES = (50, 90, 99, 99.9, 100)

_Item = TypeVar("_Item")


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """``n``, ``mean``, ``p50`` to ``p99.9`` and ``max`` of some times; empty for none."""
    if not times:
        return {}
    found = {f"p{p:g}" if p < 100 else "max": round(float(np.percentile(times, p)), 2) for p in PERCENTILES}
    return {"n": len(times), "mean": round(float(np.mean(times)), 2), **found}


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """Ours over theirs, None where either is missing."""
    return round(ours / theirs, 3) if ours is not None and theirs else None


def turns(items: Sequence[_Item], number: int) -> list[_Item]:
    """The items in an order that begins with another one each time, so that none always goes first."""
    turn = number % len(items) if items else 0
    return [*items[turn:], *items[:turn]]


class TooSlow(Exception):
    """A block took longer than `time_limit` gave it."""


@contextmanager
def time_limit(seconds: float, processor: bool = False) -> Iterator[None]:
    """Raise `TooSlow` in the block after ``seconds``; needs a Unix main thread.

    With ``processor`` these are of this process's processor time: on a busy machine others would leave out just the
    rows that are slow.  Native code that does not return to Python in between is stopped only when it does.
    """

    def ring(*_: object) -> None:
        raise TooSlow

    timer, rings = (signal.ITIMER_PROF, signal.SIGPROF) if processor else (signal.ITIMER_REAL, signal.SIGALRM)
    before = signal.signal(rings, ring)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(rings, before)


def commit() -> str:
    """The commit that is measured; where tracked files differ from it, a digest of how."""
    git = ["git", "-C", str(Path(__file__).resolve().parent.parent)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
        changed = subprocess.run([*git, "diff", "HEAD", "--", "guided", "benchmarks"], capture_output=True, check=False)
    except OSError:
        return "unknown"
    changes = f" with changes {hashlib.sha256(changed.stdout).hexdigest()[:8]}" if changed.stdout else ""
    return (head or "unknown") + changes


def machine() -> dict[str, Any]:
    """Enough to tell two results apart: commit, processor, memory, load, versions."""
    processor = platform.processor()
    info, memory, load = Path("/proc/cpuinfo"), Path("/proc/meminfo"), Path("/proc/loadavg")
    if info.exists():
        lines = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        processor = f"{len(lines)} x {lines[0]}" if lines else processor
    facts: dict[str, Any] = {"commit": commit(), "processor": processor}
    if memory.exists():
        facts["memory_gb"] = round(int(memory.read_text().split()[1]) / 1e6, 1)
    if load.exists():
        facts["load_at_start"] = float(load.read_text().split()[0])
    packages = ("numba", "numpy", "torch", "transformers", "llguidance", "xgrammar", "outlines_core")
    return {
        **facts,
        "python": platform.python_version(),
        "system": platform.platform(),
        **{name: version_of(name) for name in packages},
    }


def version_of(package: str) -> str:
    """A package's version, or that it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
