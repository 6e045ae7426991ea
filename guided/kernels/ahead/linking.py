"""An object file made into a shared library, by the linker of whatever C compiler is there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from guided.kernels.ahead.levels import Level

__all__ = ["NoLinkerError", "link", "linker"]


class NoLinkerError(RuntimeError):
    """There is no linker for a processor."""


def link(objects: bytes, level: Level, into: Path) -> None:
    """Write the library ``into`` a file, which is there as a whole or not at all.

    Its folder is made.  It names no other library: what it calls is Python's interface and `memset`, which the process
    has.
    """
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix="linking-") as folder:
        source, made = Path(folder, "kernels.o"), Path(folder, "kernels.so")
        source.write_bytes(objects)
        command = [*linker(level), "-shared", "-o", str(made), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NoLinkerError(f"{shlex.join(command)}: {done.stderr.strip()}")
        made.chmod(0o755)
        made.replace(into)


def linker(level: Level) -> list[str]:
    """The command that links for a level, without files; `NoLinkerError` where there is none."""
    own = shlex.split(os.environ.get("CC", ""))
    cross = f"{level.machine}-linux-gnu-gcc"
    for compiler in ([*own] if own else []), [cross], ["cc"], ["gcc"], ["clang"]:
        if compiler and shutil.which(compiler[0]) and (compiler[0] == cross or level.machine == os.uname().machine):
            return [*compiler, "-nostdlib", "-Wl,-s", "-Wl,-z,noexecstack"]
    for linker in ("ld.lld", f"{level.machine}-linux-gnu-ld", "ld"):
        if shutil.which(linker) and (linker != "ld" or level.machine == os.uname().machine):
            return [linker, "-s", "-z", "noexecstack"]
    raise NoLinkerError(f"there is no C compiler nor linker here for {level.machine} (CC names one)")
