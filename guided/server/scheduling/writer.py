"""`TextWriter`: the bytes of tokens as text, piece by piece, up to a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

__all__ = ["TextWriter"]


class TextWriter:
    """Writes a text as its bytes come.  What may be the beginning of a character or a stop string is held back.

    >>> writer = TextWriter(["END"])
    >>> [writer.write(piece) for piece in (b"caf\\xc3", b"\\xa9 E", b"N", b"T EN", b"D and more")]
    ['caf', 'é ', '', 'ENT ', '']
    >>> writer.text, writer.stop
    ('café ENT ', 'END')
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._stop = stop
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pieces: list[str] = []
        self._held = ""
        self.stop: str | None = None
        """The stop string that has come; nothing is written after it."""

    @property
    def text(self) -> str:
        """All that was given out."""
        return "".join(self._pieces)

    def write(self, data: bytes) -> str:
        """The text that these bytes complete."""
        return self._written(self._decoder.decode(data), last=False)

    def end(self) -> str:
        """What is held back: nothing comes any more.  Bytes of a character that was cut become U+FFFD."""
        return self._written(self._decoder.decode(b"", True), last=True)

    def _written(self, new: str, last: bool) -> str:
        if self.stop is not None or not (new or last):
            return ""
        found = self._held + new
        self._held = ""
        if self._stop:
            places = [(found.find(stop), number) for number, stop in enumerate(self._stop) if stop in found]
            if places:
                at, number = min(places)
                found, self.stop = found[:at], self._stop[number]
            elif not last:
                held = max(_overlap(found, stop) for stop in self._stop)
                found, self._held = found[: len(found) - held], found[len(found) - held :]
        self._pieces.append(found)
        return found


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of the text that the stop string begins with, short of all of it."""
    return next(n for n in range(min(len(text), len(stop) - 1), -1, -1) if text.endswith(stop[:n]))
