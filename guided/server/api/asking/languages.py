"""`Languages`: the constraints of sources, by the compiler that works beside the event loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from guided.constraint.protocol import Constrains
from guided.grammar.ir import Grammar
from guided.server.api.asking.sources import Known, Source
from guided.server.scheduling import Compiler, CompilerLimits
from guided.vocab import Vocabulary

__all__ = ["Languages"]


@dataclass(frozen=True)
class _Asked:
    """A source with what it may refer to, which is one for the whole server."""

    source: Source
    known: Known = field(compare=False)

    def grammar(self, vocabulary: Vocabulary | None = None) -> Grammar:
        """The grammar; raises `GuidedError` for what is malformed or cannot be enforced."""
        return self.source.grammar(self.known)


class Languages:
    """Compiles each source once, also where several requests ask for it at the same time."""

    def __init__(self, vocabulary: Vocabulary, known: Known, seconds: float) -> None:
        self.known = known
        self._compiler = Compiler(vocabulary, CompilerLimits(seconds=seconds))

    async def constraint(self, source: Source, client: str = "") -> Constrains:
        """The constraint of a source; raises what `Compiler.compiled` raises."""
        return await self._compiler.compiled(_Asked(source, self.known), client=client)

    def grammar(self, source: Source) -> Grammar:
        """The grammar of a source, which is not compiled."""
        return source.grammar(self.known)

    def close(self) -> None:
        """Start nothing more; what runs goes on to its end."""
        self._compiler.close()
