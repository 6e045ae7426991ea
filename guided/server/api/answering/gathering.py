"""`Gathered`: one text of an answer that is not a stream, put together from its pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from guided.server.api.answering.texts import Counts, Piece, identifier
from guided.server.api.reading.parts import CallArguments, CallBegins, Content
from guided.server.api.shapes.chat import CalledFunction, MadeCall, TokenLogprob
from guided.server.api.shapes.reports import ChoiceReport, SamplerReport, SearchReport, TokenReport

__all__ = ["Gathered", "Source", "gathered", "made_call"]


class Source(Protocol):
    """Texts that come: `Texts` or `WholeTexts`."""

    @property
    def counts(self) -> Counts:
        """Tokens so far."""

    def pieces(self) -> AsyncIterator[Piece]:
        """What comes."""

    def cancel(self) -> None:
        """End it."""


@dataclass
class Gathered:
    """One text, as far as it has come."""

    content: str = ""
    reasoning: str = ""
    calls: list[MadeCall] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    reports: list[TokenReport] = field(default_factory=list)
    finish: str = "stop"
    sampler: SamplerReport | None = None
    search: SearchReport | None = None

    def take(self, piece: Piece) -> None:
        """Add a piece."""
        for part in piece.parts:
            if isinstance(part, Content):
                self.content += part.text
            elif isinstance(part, CallBegins):
                self.calls.append(made_call(part, None))
            elif isinstance(part, CallArguments):
                self.calls[part.index].function.arguments += part.text
            else:
                self.reasoning += part.text
        if piece.logprob is not None:
            self.logprobs.append(piece.logprob)
        if piece.report is not None:
            self.reports.append(piece.report)
        self.finish = piece.finish or self.finish
        self.sampler, self.search = piece.sampler or self.sampler, piece.search or self.search

    def extra(self, tokens: bool, law: Literal["after_mask", "before_mask"] | None) -> ChoiceReport | None:
        """What is said beyond OpenAI's fields, where something was asked for."""
        if not (tokens or law or self.sampler or self.search):
            return None
        return ChoiceReport(
            tokens=self.reports if tokens else None, logprobs=law, sampler=self.sampler, search=self.search
        )


def made_call(begins: CallBegins, index: int | None) -> MadeCall:
    """A call that begins; ``index`` is for streams."""
    function = CalledFunction(name=begins.name, arguments="")
    return MadeCall(index=index, id=identifier("call"), type="function", function=function)


async def gathered(source: Source, n: int) -> list[Gathered]:
    """All texts, once they have ended."""
    found = [Gathered() for _ in range(n)]
    async for piece in source.pieces():
        found[piece.choice].take(piece)
    return found
