"""Asking a completion engine in time, once for each text, and saying so when it fails.

An engine is any object that names the completions at a cursor: jedi in a process of its own, a language server.  What
it does not answer in time counts as not known: the text is then free at that place, a warning is given and a counter
goes up; an engine that hangs or crashes several times in a row is given up for good.
"""

from __future__ import annotations

import hashlib
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from guided.monitor.json_rpc import AnswerError, ServerError

__all__ = ["Analyses", "Engine", "MonitorWarning", "Statistics"]

REMEMBERED = 8192
"""Texts whose completions are kept, some 10 KB each where an object has a hundred attributes."""
FAILURES = 3
"""Time-outs and crashes in a row after which an engine is given up."""


class MonitorWarning(UserWarning):
    """A monitor could not analyse, so that the text is not monitored here or from here on."""


class Engine(Protocol):
    """What can complete; may raise `ServerError`, and is made again after that."""

    def complete(self, source: str, suffix: str, seconds: float) -> frozenset[str] | str | None:
        """All names that may stand at the end of ``source``, with ``suffix`` behind the cursor.

        None where they are not all known, or a few words that say why.
        """
        ...

    def close(self) -> None:
        """Give up what the engine holds."""
        ...


@dataclass
class Statistics:
    """What the analyses of one monitor came to."""

    asked: int = 0
    """Questions, remembered ones included."""
    analysed: int = 0
    """Questions that went to the engine."""
    known: int = 0
    """Of these, those it had names for."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Of the others, how often which reason was given; the text is free there."""
    failures: int = 0
    """Questions that it failed: too late, an error, a crash; the text is free there."""
    starts: int = 0
    """How often the engine was started."""
    seconds: float = 0.0
    """Time spent waiting for it."""


class Analyses:
    """Completions by text, from an engine that is started when first needed and again after a failure."""

    def __init__(self, start: Callable[[], Engine], what: str, seconds: float, required: bool = False) -> None:
        self.what = what
        self.seconds = seconds
        self.required = required
        """Are failures raised instead?"""
        self.statistics = Statistics()
        self._start = start
        # At most one; a list, so that it can be closed when this object is gone.
        self._engines: list[Engine] = []
        weakref.finalize(self, _close, self._engines)
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, frozenset[str] | None] = OrderedDict()
        self._in_a_row = 0
        self._last = ""

    @property
    def given_up(self) -> bool:
        """Is nothing analysed any more?"""
        return self._in_a_row >= FAILURES

    @property
    def notes(self) -> tuple[str, ...]:
        """Failures so far, in words; none when all went well."""
        failures = self.statistics.failures
        if not failures:
            return ()
        after = f"started {self.statistics.starts} times" + (", then given up" if self.given_up else "")
        asked = self.statistics.analysed
        return (f"{self.what}: {failures} of {asked} analyses failed, the text is free there; {after} ({self._last})",)

    def complete(self, source: str, suffix: str = "") -> frozenset[str] | None:
        """The names at the end of ``source``; None when there are none or nobody knows."""
        key = hashlib.blake2b(f"{len(source)}:{source}{suffix}".encode("utf-8", "replace"), digest_size=16).digest()
        with self._lock:
            self.statistics.asked += 1
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            found = self._ask(source, suffix)
            self._known[key] = found
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            return found

    def close(self) -> None:
        """End the engine; it is started again when needed."""
        with self._lock:
            self._drop()

    def _ask(self, source: str, suffix: str) -> frozenset[str] | None:
        if self.given_up:
            return None
        began = time.monotonic()
        self.statistics.analysed += 1
        try:
            if not self._engines:
                self.statistics.starts += 1
                self._engines.append(self._start())
            found = self._engines[0].complete(source, suffix, self.seconds)
        except AnswerError as error:
            if not self._engines:
                self._failed(error)
                return None
            # Half-written code may be too much for an engine that is well otherwise.
            self._last = str(error)
            self.statistics.failures += 1
            if self.required:
                raise
            warnings.warn(f"{self.what}: {error}; the text is free at this place", MonitorWarning, stacklevel=2)
            return None
        except ServerError as error:
            self._failed(error)
            return None
        finally:
            self.statistics.seconds += time.monotonic() - began
        self._in_a_row = 0
        if isinstance(found, str):
            self.statistics.unknown[found] = self.statistics.unknown.get(found, 0) + 1
            return None
        if not found:
            return None
        self.statistics.known += 1
        return found

    def _failed(self, error: ServerError) -> None:
        self.statistics.failures += 1
        self._in_a_row += 1
        self._last = str(error)
        self._drop()
        if self.required:
            # Not a reason to give up: whoever catches it may ask again.
            self._in_a_row = 0
            raise error
        then = (
            "it is given up, the text is not monitored any more" if self.given_up else "the text is free at this place"
        )
        warnings.warn(f"{self.what} failed: {error}; {then}", MonitorWarning, stacklevel=2)

    def _drop(self) -> None:
        _close(self._engines)

    def __reduce__(self) -> tuple[object, ...]:
        return (Analyses, (self._start, self.what, self.seconds, self.required))


def _close(engines: list[Engine]) -> None:
    while engines:
        engines.pop().close()
