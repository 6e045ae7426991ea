"""`handing_over`: while texts grow or grammars are compiled, a thread that waits for the interpreter gets it soon.

A pass of the model gives the interpreter up at every operation, some hundred times, and asks for it again.  Whoever
has it then, a mask or a grammar, keeps it for `sys.getswitchinterval`: with Python's 5 ms the pass stands still until
all of them are done, instead of running beside them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["SECONDS", "handing_over"]

SECONDS = 2e-4
"""With 64 clients, schemas all different, in the turns that nothing else disturbed: 1,220 tokens a second and 85 ms at
the 99th percentile between tokens; where it was so only while a grammar was compiled, 1,031 and 106.  With 0.02 ms it
was 1,202 and 82, but 86 and 279 for 376 and 460 on cores that others share: who gets it waits for a core."""

_lock = threading.Lock()
_inside = 0
_usual = 0.0


@contextmanager
def handing_over() -> Iterator[None]:
    """The interpreter changes hands soon as long as some thread is in here; it is a setting of the whole process."""
    global _inside, _usual
    with _lock:
        if not _inside:
            _usual = sys.getswitchinterval()
            if _usual > SECONDS:
                sys.setswitchinterval(SECONDS)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _usual > SECONDS:
                # It is cut to whole microseconds, of which one would be lost each time.
                sys.setswitchinterval(_usual + 5e-7)
