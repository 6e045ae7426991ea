"""What native code writes to standard error, as text: XGrammar warns there, and nowhere else, of what it ignores."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["native_messages"]


@contextmanager
def native_messages() -> Iterator[list[str]]:
    """Yields a list that holds the lines written to file descriptor 2 in the block, once the block has ended.

    The descriptor is the process's: what other threads write there in the meantime is taken as well.
    """
    lines: list[str] = []
    try:
        saved = os.dup(2)
    except OSError:  # a process without standard error loses nothing
        yield lines
        return
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            lines += file.read().decode("utf-8", "replace").splitlines()
