"""`ThinkingReader`: reasoning before an answer, told apart by what begins and ends it."""

from __future__ import annotations

from enum import Enum, auto

from guided.server.api.reading.parts import Part, PartReader, Reasoning, held_back

__all__ = ["ThinkingReader"]


class _Place(Enum):
    """What comes next."""

    BEGIN = auto()
    REASONING = auto()
    BETWEEN = auto()
    ANSWER = auto()


class ThinkingReader:
    """Gives what stands between ``begin`` and the first ``end`` as reasoning, and hands the rest on.

    ``begin`` None: the prompt has begun it.  A text that does not begin with ``begin`` has no reasoning.  Line ends
    behind ``end`` belong to neither part.
    """

    def __init__(self, begin: str | None, end: str, rest: PartReader) -> None:
        self._begin, self._end, self._rest = begin, end, rest
        self._waiting = ""
        self._place = _Place.REASONING if begin is None else _Place.BEGIN

    def read(self, text: str) -> list[Part]:
        """See `PartReader`."""
        self._waiting += text
        parts: list[Part] = []
        if self._place is _Place.BEGIN:
            assert self._begin is not None
            if self._waiting.startswith(self._begin):
                self._waiting, self._place = self._waiting[len(self._begin) :], _Place.REASONING
            elif not self._begin.startswith(self._waiting):
                self._place = _Place.ANSWER
        if self._place is _Place.REASONING:
            parts += self._reasoning()
        if self._place is _Place.BETWEEN:
            self._waiting = self._waiting.lstrip("\n")
            if self._waiting:
                self._place = _Place.ANSWER
        if self._place is _Place.ANSWER:
            parts += self._rest.read(self._waiting)
            self._waiting = ""
        return parts

    def _reasoning(self) -> list[Part]:
        before, found, after = self._waiting.partition(self._end)
        if found:
            self._waiting, self._place = after, _Place.BETWEEN
            return [Reasoning(before)] if before else []
        kept = held_back(self._waiting, self._end)
        ready, self._waiting = self._waiting[: len(self._waiting) - kept], self._waiting[len(self._waiting) - kept :]
        return [Reasoning(ready)] if ready else []

    @property
    def is_reasoning(self) -> bool:
        """Whether what comes next is reasoning, as far as is known."""
        return self._place in (_Place.REASONING, _Place.BETWEEN)

    def close(self) -> list[Part]:
        """See `PartReader`."""
        waiting, self._waiting = self._waiting, ""
        if self._place is _Place.REASONING:
            return [Reasoning(waiting)] if waiting else []
        return [*(self._rest.read(waiting) if waiting else []), *self._rest.close()]
