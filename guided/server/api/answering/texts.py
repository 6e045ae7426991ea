"""`Texts`: all texts of a request, as jobs of the scheduler, read while they come."""

from __future__ import annotations

import asyncio
import codecs
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from guided.constraint.constraint import Constraint
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.server.api.answering.tokens import Spelling
from guided.server.api.asking.wanted import Wanted, named
from guided.server.api.guarding.errors import ApiError, refused
from guided.server.api.reading.parts import CallBegins, Part, Reasoning
from guided.server.api.service import Service
from guided.server.api.shapes.chat import CompletionDetails, PromptDetails, TokenLogprob, Usage
from guided.server.api.shapes.reports import ChoiceReport, SamplerReport, SearchReport, StepReport, TokenReport
from guided.server.scheduling import Failed, Finished, Job, Reason, Stream, Token
from guided.server.scheduling.biases import Biases
from guided.steer import Stack

__all__ = ["Counts", "Piece", "TextReader", "Texts", "identifier", "job_for", "seed_of"]


@dataclass(frozen=True)
class Piece:
    """What came of one text."""

    choice: int
    parts: Sequence[Part] = ()
    report: TokenReport | None = None
    logprob: TokenLogprob | None = None
    finish: str | None = None
    """OpenAI's ``finish_reason``, with the last piece of a text."""
    sampler: SamplerReport | None = None
    search: SearchReport | None = None
    step: StepReport | None = None

    @property
    def extra(self) -> ChoiceReport | None:
        """What the piece says beyond OpenAI's fields."""
        if self.report is None and self.sampler is None and self.search is None and self.step is None:
            return None
        tokens = None if self.report is None else [self.report]
        return ChoiceReport(tokens=tokens, sampler=self.sampler, search=self.search, step=self.step)


@dataclass
class Counts:
    """Tokens, counted while texts come."""

    prompt: int = 0
    cached: int = 0
    written: int = 0
    reasoning: int = 0

    def usage(self) -> Usage:
        """As answers tell it."""
        return Usage(
            prompt_tokens=self.prompt, completion_tokens=self.written, total_tokens=self.prompt + self.written,
            prompt_tokens_details=PromptDetails(cached_tokens=self.cached),
            completion_tokens_details=CompletionDetails(reasoning_tokens=self.reasoning),
        )  # fmt: skip


def job_for(
    service: Service, wanted: Wanted, prompt: tuple[int, ...], constraint: Constrains | None, number: int, client: str
) -> Job:
    """The job of one text; ``number`` counts the texts of a request, so that they do not draw the same numbers."""
    settings, extension, drawing = service.settings, wanted.guided, wanted.drawing
    stacks = [named(settings.steerers, name, "steerer", f"guided.steer[{i}]") for i, name in enumerate(extension.steer)]
    draft = extension.draft
    drafting = None if draft is None else named(settings.drafts, draft, "draft", "guided.draft")
    budget = service.budget(wanted, constraint, len(prompt))
    try:
        return Job(
            prompt, constraint, budget, drawing.temperature, drawing.top_p, extension.top_k,
            None if drawing.seed is None else seed_of(drawing.seed, number), drawing.stop,
            max(extension.alternatives, wanted.logprobs or 0), stack_of(stacks), drafting, client,
            checked_biases(service, drawing.biases),
        )  # fmt: skip
    except GuidedError as error:
        raise refused(error, error.where) from error


def checked_biases(service: Service, biases: Biases) -> Biases | None:
    """The biases, None where they change nothing; raises `ApiError` for ids that the model does not have."""
    size = service.loaded.vocabulary.size
    for token in biases.of_tokens:
        if token >= size:
            what = f"logit_bias: there is no token {token}, the last one is {size - 1}"
            raise ApiError(400, what, param="logit_bias", code="invalid_value")
    return biases or None


def stack_of(stacks: Sequence[Stack]) -> Stack | None:
    """Several stacks as one, in order; None for none."""
    steerers = [steerer for stack in stacks for steerer in ([stack.adaptive] if stack.adaptive else [])]
    plain = [steerer for stack in stacks for steerer in stack.steerers]
    return Stack([*steerers, *plain]) if stacks else None


def seed_of(seed: int, number: int) -> int:
    """The seed of the n-th text of a request: the request's own for the first, and others for the others."""
    return (seed + number * 0x9E3779B97F4A7C15) % (1 << 64)


@dataclass
class Texts:
    """The texts of one request, which all have the same goal; ``jobs`` are one for each, in the order of choices."""

    service: Service
    wanted: Wanted
    jobs: Sequence[Job]
    counts: Counts = field(default_factory=Counts)
    _streams: list[Stream] = field(default_factory=list)

    async def begin(self) -> None:
        """Hand the jobs to the scheduler, all or none; raises `ApiError` where it takes no more."""
        try:
            for job in self.jobs:
                self._streams.append(await self.service.scheduler.submit(job))
        except GuidedError as error:
            self.cancel()
            raise refused(error, error.where) from error
        except asyncio.CancelledError:
            self.cancel()
            raise

    def cancel(self) -> None:
        """End all texts; those that have ended are not changed."""
        for stream in self._streams:
            stream.cancel()

    async def pieces(self) -> AsyncIterator[Piece]:
        """What comes, of whichever text it comes first; raises `ApiError` for a text that cannot go on."""
        queue: asyncio.Queue[Piece | GuidedError | None] = asyncio.Queue()
        tasks = [asyncio.create_task(self._follow(i, queue)) for i in range(len(self._streams))]
        running = len(tasks)
        try:
            while running:
                found = await queue.get()
                if found is None:
                    running -= 1
                elif isinstance(found, GuidedError):
                    raise refused(found)
                else:
                    yield found
            for task in tasks:
                await task
        finally:
            self.cancel()
            for task in tasks:
                task.cancel()

    async def _follow(self, choice: int, queue: asyncio.Queue[Piece | GuidedError | None]) -> None:
        try:
            async for piece in self._read(choice):
                queue.put_nowait(piece)
        except GuidedError as error:
            queue.put_nowait(error)
        finally:
            queue.put_nowait(None)

    async def _read(self, choice: int) -> AsyncIterator[Piece]:
        service, wanted, job = self.service, self.wanted, self.jobs[choice]
        metrics = service.metrics
        reader = TextReader(service, wanted)
        spelling = Spelling(service.loaded.vocabulary, before_mask=wanted.guided.logprobs == "before_mask")
        ends = service.loaded.vocabulary.eos_ids
        reasons = _Reasons(job.constraint) if wanted.guided.explain else None
        before, first = time.perf_counter(), True
        async for event in self._streams[choice]:
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Finished):
                parts = [*reader.text(event.tail), *reader.close()]
                self._count(choice, event)
                self.counts.reasoning += reader.reasoning
                yield Piece(choice, parts, finish=_finish(event.reason, reader.calls))
                return
            now = time.perf_counter()
            (metrics.first_token if first else metrics.between_tokens).observe(now - before)
            metrics.removed.observe(event.removed)
            before, first = now, False
            parts = reader.text(event.text + reader.special(event.id))
            report = None
            if wanted.guided.tokens:
                why = await reasons.of(event) if reasons is not None else {}
                report = spelling.report(event, why)
            listed = wanted.logprobs is not None and event.id not in ends
            logprob = spelling.logprob(event, wanted.logprobs or 0) if listed else None
            if parts or report is not None or logprob is not None:
                yield Piece(choice, parts, report, logprob)

    def _count(self, choice: int, end: Finished) -> None:
        # Texts of one prompt are asked for with one prompt, which is counted once.
        counts, metrics = self.counts, self.service.metrics
        if choice % self.wanted.n == 0:
            counts.prompt += end.prompt_tokens
            metrics.prompt_tokens.inc(end.prompt_tokens)
            # Where a prompt is read several times, as some steerers ask, nothing of it was saved.
            counts.cached += end.cached_tokens
            metrics.cached_tokens.inc(end.cached_tokens)
        counts.written += end.completion_tokens
        metrics.written_tokens.inc(end.completion_tokens)
        metrics.ends.labels(end.reason.name.lower()).inc()


class TextReader:
    """Reads one text, and counts what it finds."""

    def __init__(self, service: Service, wanted: Wanted) -> None:
        self._service, self._reader = service, service.reader(wanted.goal)
        self._vocabulary = service.loaded.vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.calls = 0
        """Calls that have begun."""
        self.reasoning = 0
        """Tokens that held reasoning."""

    def special(self, token: int) -> str:
        """The character that stands for a special token; empty for others, and for those that end texts."""
        return "" if token in self._vocabulary.eos_ids else self._service.special.character(token)

    def token(self, token: int) -> list[Part]:
        """What a token says."""
        data = self._vocabulary.token_bytes(token) or b""
        return self.text(self._decoder.decode(data) + self.special(token))

    def text(self, text: str) -> list[Part]:
        """What some more text says."""
        return self._counted(self._reader.read(text)) if text else []

    def close(self) -> list[Part]:
        """What was held back."""
        return self._counted(self._reader.close())

    def _counted(self, parts: list[Part]) -> list[Part]:
        self.calls += sum(isinstance(part, CallBegins) for part in parts)
        self.reasoning += any(isinstance(part, Reasoning) for part in parts)
        return [self._shown(part) for part in parts]

    def _shown(self, part: Part) -> Part:
        """The part with its special tokens by name."""
        if isinstance(part, CallBegins):
            return part
        shown = self._service.special.shown(part.text)
        return part if shown == part.text else replace(part, text=shown)


def _finish(reason: Reason, calls: int) -> str:
    if reason in (Reason.LENGTH, Reason.TIME, Reason.CANCELLED):
        return "length"
    return "tool_calls" if calls else "stop"


class _Reasons:
    """Why alternatives were refused, in the words of the grammar."""

    def __init__(self, constraint: Constrains | None) -> None:
        self._constraint = constraint if isinstance(constraint, Constraint) else None
        self._state = 0 if constraint is None else constraint.start

    async def of(self, token: Token) -> dict[int, str]:
        """The reasons for the alternatives of the next token."""
        if self._constraint is None:
            return {}
        return await asyncio.to_thread(self._explained, self._constraint, token)

    def _explained(self, constraint: Constraint, token: Token) -> dict[int, str]:
        found = {one.id: constraint.explain(self._state, one.id) for one in token.alternatives if not one.allowed}
        self._state = constraint.advance(self._state, token.id)
        return found


def identifier(prefix: str) -> str:
    """A name that no other answer has."""
    return f"{prefix}-{secrets.token_hex(12)}"
