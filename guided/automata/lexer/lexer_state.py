"""What a state of an ordered lexer must tell so that `guided.automata.lexer.states` can keep it as one of its own."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["LexerState"]


@runtime_checkable
class LexerState(Protocol):
    """A state of an ordered lexer, as `guided.automata.lexer.ordered` makes them."""

    @property
    def tag(self) -> int:
        """Terminal that may end here, or -1."""

    @property
    def pending(self) -> LexerState | None:
        """What would be preferred to the match that ends here."""

    @property
    def also(self) -> LexerState | None:
        """A state without edges whose tag says how else a match may end here."""

    def edges(self) -> tuple[tuple[int, int, LexerState], ...]:
        """Sorted, disjoint byte ranges and their targets."""
