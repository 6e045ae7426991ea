"""How much texts take: in bytes, or in tokens of a vocabulary (`guided.constraint.attributed.counts`)."""

from __future__ import annotations

from typing import Protocol

__all__ = ["BYTES", "Measure"]


class Measure(Protocol):
    """Bounds for parts of texts; what joins parts takes no more than they take together."""

    def text(self, text: str) -> int:
        """What some lexemes take, in any letter case, and with the white space that stands between them."""
        ...

    def name(self, name: str) -> int:
        """What a name takes, in quotes if it needs them."""
        ...


class _Bytes:
    def text(self, text: str) -> int:
        return len(text)

    def name(self, name: str) -> int:
        return 2 + len(name.encode("utf-8", "surrogatepass")) + name.count('"')


BYTES: Measure = _Bytes()
