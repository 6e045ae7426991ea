"""Arrays on disk by key: what is slow to build once is quick to read in the next process.

A cache and nothing more: an entry that is missing, cut, altered or written by another version reads as absent, and a
directory that cannot be written is no error.  The directory is ``$GUIDED_CACHE`` (set but empty: no cache at all) or
``guided`` in the platform's user cache directory.  Entries are never evicted; delete the directory at will.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Entry", "cache_directory", "load", "store"]

# An entry is: _MAGIC, CRC-32 of all that follows (4 bytes), length of the header (4), the header in JSON, the arrays.
# Integers are little-endian; every array begins at a multiple of _ALIGN from the start of the file.
_MAGIC = b"guided cache 1\r\n"
_ALIGN = 64


@dataclass(frozen=True, eq=False)
class Entry:
    """What an entry holds: named read-only arrays and a small JSON object of facts about them."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def cache_directory() -> Path | None:
    """Return the directory of the cache, which need not exist; ``None`` when there is none."""
    chosen = os.environ.get("GUIDED_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen else None
    try:
        home = Path.home()
    except RuntimeError:  # no home directory is known
        return None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else home / "AppData" / "Local") / "guided" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "guided"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home / ".cache") / "guided"


def load(kind: str, key: str) -> Entry | None:
    """Return the entry stored under ``(kind, key)``, ``None`` when there is none that is whole.

    ``kind`` is a folder's name, ``key`` a hex digest of everything that the entry was computed from.
    """
    path = _path(kind, key)
    if path is None:
        return None
    try:
        return _parse(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store(kind: str, key: str, entry: Entry) -> bool:
    """Write an entry in one atomic step, so that readers and other writers never see a part; return whether it is so.

    Two processes that store the same key write equal files, and the last one stays.
    """
    import tempfile  # 10 ms, and most processes find what they need.

    path = _path(kind, key)
    if path is None:
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=path.stem[:16], suffix=".part", dir=path.parent)
    except OSError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_serialise(entry))
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    return True


def _path(kind: str, key: str) -> Path | None:
    directory = cache_directory()
    return None if directory is None else directory / kind / f"{key}.bin"


def _serialise(entry: Entry) -> bytes:
    layout: list[list[Any]] = []
    parts: list[bytes] = []
    position = 0
    for name, array in entry.arrays.items():
        raw = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        layout.append([name, array.dtype.newbyteorder("<").str, position, array.size])
        parts += [raw, bytes(-len(raw) % _ALIGN)]
        position += len(parts[-2]) + len(parts[-1])
    header = json.dumps({"facts": entry.facts, "arrays": layout}).encode()
    header += b" " * (-(len(_MAGIC) + 8 + len(header)) % _ALIGN)
    body = b"".join([len(header).to_bytes(4, "little"), header, *parts])
    return _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def _parse(content: bytes) -> Entry:
    start = len(_MAGIC) + 4
    view = memoryview(content)
    if content[: len(_MAGIC)] != _MAGIC or zlib.crc32(view[start:]).to_bytes(4, "little") != content[start - 4 : start]:
        raise ValueError("not a whole entry of this version")
    base = start + 4 + int.from_bytes(content[start : start + 4], "little")
    header = json.loads(content[start + 4 : base])
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, offset, count in header["arrays"]:
        array = np.frombuffer(content, np.dtype(dtype), count, base + offset)
        arrays[name] = array if sys.byteorder == "little" else array.astype(array.dtype.newbyteorder("="))
    return Entry(header["facts"], arrays)
