"""The library of compiled kernels that belongs to the sources beside it, if there is one for this processor."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import sysconfig
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from guided.kernels.ahead.levels import Level, levels_here

__all__ = ["CHOICE", "FOLDER", "MODULE", "SUFFIX", "found", "library_name", "loaded", "source_digest"]

logger = logging.getLogger("guided")

MODULE = "guided_kernels"
"""What the library calls itself."""

SUFFIX = ".kernels"
"""No name of a module: nothing that looks for modules comes across it."""

FOLDER = Path(__file__).parent

CHOICE = "GUIDED_KERNELS"
"""The variable of the environment that decides: ``numba`` compiles kernels in the process, ``library`` never does."""

_HEADER = 16
"""Bytes of an object before its own fields, which the library counts on: more where Python runs without its lock."""


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Of all sources of `guided.kernels`, by their places."""
    root = FOLDER.parent
    digest = hashlib.blake2b(digest_size=10)
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


def library_name(level: Level) -> str:
    """The file with the kernels of these sources for a level."""
    return f"{level.name}-{source_digest()}{SUFFIX}"


def found() -> Path | None:
    """The library for this process; None where there is none."""
    if (
        sys.implementation.name != "cpython"
        or object.__basicsize__ != _HEADER
        or sysconfig.get_config_var("Py_GIL_DISABLED")
    ):
        return None
    for level in levels_here():
        path = FOLDER / library_name(level)
        if path.exists():
            return path
    return None


def loaded() -> ModuleType | None:
    """The library as a module, with a function for each kernel, by its place; None where Numba compiles kernels."""
    choice = os.environ.get(CHOICE, "")
    if choice not in ("", "numba", "library"):
        raise ImportError(f"{CHOICE}={choice!r}: it is `numba`, `library` or empty")
    path = None if choice == "numba" else found()
    if path is not None:
        try:
            return _load(path)
        except ImportError as error:
            if choice == "library":
                raise
            logger.warning("guided: %s cannot be loaded (%s), so Numba compiles the kernels", path, error)
    elif choice == "library":
        raise ImportError(
            f"{CHOICE}=library, and {FOLDER} has no library of these sources for this processor: "
            "`python -m guided.kernels.ahead` makes it"
        )
    return None


def _load(path: Path) -> ModuleType:
    spec = spec_from_file_location(MODULE, path, loader=ExtensionFileLoader(MODULE, str(path)))
    if spec is None:
        raise ImportError(f"{path} is no module")
    module = module_from_spec(spec)
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return module
