"""Whether a text is in a language, and if not, at which byte it leaves it."""

from __future__ import annotations

from dataclasses import dataclass

from guided.constraint.protocol import Constrains

__all__ = ["Covered", "coverage"]

SHOWN_BYTES = 40


@dataclass(frozen=True)
class Covered:
    """Where a text leaves a language."""

    at: int | None
    """The first byte that cannot come, the text's length where it may not end there; None: the text is in it."""
    near: str = ""
    """The text around that byte, which is behind ``|``."""


def coverage(constraint: Constrains, text: str) -> Covered:
    """Follow the bytes of a text, one by one.

    An error of the constraint's own (`LimitError`) is not caught.
    """
    data = text.encode("utf-8", "surrogatepass")
    state = constraint.start
    for at in range(len(data)):
        after = constraint.advance_bytes(state, data[at : at + 1])
        if after == 0:
            return Covered(at, _near(data, at))
        state = after
    return Covered(None) if constraint.is_accepting(state) else Covered(len(data), _near(data, len(data)))


def _near(data: bytes, at: int) -> str:
    before, after = data[max(0, at - SHOWN_BYTES) : at], data[at : at + SHOWN_BYTES]
    return f"{before.decode('utf-8', 'replace')}|{after.decode('utf-8', 'replace')}"
