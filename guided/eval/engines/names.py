"""The names of the engines, and the packages behind them.  Light, since the command line's help needs it."""

from __future__ import annotations

from enum import Enum
from importlib import metadata

__all__ = ["PACKAGES", "EngineName", "engine_version"]


class EngineName(str, Enum):
    """The engines; the values are those of ``--engine`` and ``--compare``."""

    GUIDED = "guided"
    LLGUIDANCE = "llguidance"
    XGRAMMAR = "xgrammar"
    OUTLINES = "outlines"
    NONE = "none"


PACKAGES = {
    EngineName.LLGUIDANCE: "llguidance",
    EngineName.XGRAMMAR: "xgrammar",
    EngineName.OUTLINES: "outlines_core",
}
"""What the adapters of peers import."""


def engine_version(name: EngineName) -> str:
    """The installed version of what an engine's adapter uses, ``""`` for no engine and for what is not installed."""
    if name is EngineName.NONE:
        return ""
    try:
        return metadata.version(PACKAGES.get(name, "guided-decoding"))
    except metadata.PackageNotFoundError:
        return ""
