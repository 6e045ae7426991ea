"""The levels of processors that libraries are compiled for, and which of them this one has."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LEVELS", "Level", "levels_here", "machine"]


@dataclass(frozen=True)
class Level:
    """Processors with the same instructions: LLVM's ``processor`` and ``features``, and Linux's ``flags``."""

    name: str
    machine: str
    processor: str
    features: str = ""
    flags: frozenset[str] = frozenset()

    @property
    def triple(self) -> str:
        """The target, as LLVM calls it."""
        return f"{self.machine}-unknown-linux-gnu"


_V3 = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})

_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

LEVELS = (
    # In halves of what the registers hold, a mask that is known already took 1.18 times as long (AMD EPYC, Zen 5).
    Level("x86_64_v4", "x86_64", "x86-64-v4", "-prefer-256-bit", _V4),
    Level("x86_64_v3", "x86_64", "x86-64-v3", "", _V3),
    Level("aarch64", "aarch64", "generic"),
)
"""The best first."""

_ENOUGH = 1 << 13
"""Bytes of `/proc/cpuinfo` that hold the flags of the first processor; of 200 processors it is long."""


def machine() -> str:
    """The architecture of this process, empty where no library can be loaded: on other systems, or in 32 bits."""
    return platform.machine() if sys.platform == "linux" and sys.maxsize > 1 << 32 else ""


def levels_here() -> list[Level]:
    """The levels that this processor has, the best first."""
    here = machine()
    flags = _flags() if here == "x86_64" else frozenset()
    return [level for level in LEVELS if level.machine == here and level.flags <= flags]


def _flags() -> frozenset[str]:
    """What the system says that the processor can, and lets it do."""
    try:
        with Path("/proc/cpuinfo").open("rb", buffering=0) as file:
            text = file.read(_ENOUGH).decode("ascii", "replace")
    except OSError:
        return frozenset()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())
