"""What runs the model itself: samplers and searches, which look at whole texts, and drafts, which are verified."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import guided.infer
import guided.search
from guided.errors import GuidedError, LimitError
from guided.hf.generate import generate
from guided.infer.analysis.fields import posteriors
from guided.lm import LanguageModel
from guided.server.api.answering.drafting import draft_text
from guided.server.api.answering.texts import Counts, Piece, TextReader
from guided.server.api.answering.tokens import Spelling, finite
from guided.server.api.asking.wanted import Wanted
from guided.server.api.guarding.errors import refused
from guided.server.api.reading.parts import Content
from guided.server.api.service import Service
from guided.server.api.shapes.reports import (
    FieldReport,
    SamplerReport,
    SearchReport,
    StepReport,
    TextReport,
    ValueReport,
)
from guided.server.scheduling import Job

__all__ = ["WholeTexts"]

_SAMPLERS = {"smc-steer": "smc_steer", "best-of-n": "best_of_n"}
"""Where a request's name is not that of the function."""

_SEARCHES = {
    "beam": "beam_search", "best-first": "best_first_beam_search", "diverse": "diverse_beam_search",
    "grid": "grid_beam_search", "dynamic": "dynamic_beam_search", "neurologic": "neurologic_search",
}  # fmt: skip


@dataclass
class WholeTexts:
    """The texts of one prompt, by a sampler, a search or with a draft; the same face as `Texts`."""

    service: Service
    wanted: Wanted
    job: Job
    counts: Counts = field(default_factory=Counts)
    _early: asyncio.Queue[Piece | None] = field(default_factory=asyncio.Queue)
    """What comes before the run is over."""
    _run: asyncio.Future[list[Piece]] | None = None

    async def begin(self) -> None:
        """Ask the scheduler for a turn; raises `ApiError` where it takes no more."""
        loop = asyncio.get_running_loop()
        client = self.job.client
        self._run = asyncio.ensure_future(
            self.service.scheduler.run(lambda model: self._found(model, loop), client=client)
        )
        self._run.add_done_callback(lambda _: self._early.put_nowait(None))
        # What takes no more says so before it waits for anything.
        await asyncio.sleep(0)
        if self._run.done() and isinstance(error := self._run.exception(), GuidedError):
            raise refused(error) from error

    def cancel(self) -> None:
        """End the run before its next pass of the model."""
        if self._run is not None:
            self._run.cancel()

    async def pieces(self) -> AsyncIterator[Piece]:
        """What comes early, then the texts; raises `ApiError`."""
        assert self._run is not None
        try:
            while (early := await self._early.get()) is not None:
                yield early
            for piece in await self._run:
                yield piece
        except GuidedError as error:
            extension = self.wanted.guided
            param = "guided.search" if extension.search else "guided.sampler" if extension.sampler else "guided.draft"
            raise refused(error, param) from error
        finally:
            self.cancel()

    def _found(self, model: LanguageModel, loop: asyncio.AbstractEventLoop) -> list[Piece]:
        """The run itself, in a thread of the scheduler's."""
        # Drafts learn, and are no more made for several threads at once than models are.
        with self.service.drafting if self.job.draft is not None else nullcontext():
            if self.wanted.guided.search is not None:
                return self._searched(model)
            if self.wanted.guided.sampler is not None:
                return self._sampled(model, loop)
            return self._drafted(model, loop)

    def _drafted(self, model: LanguageModel, loop: asyncio.AbstractEventLoop) -> list[Piece]:
        spelling = Spelling(self.service.loaded.vocabulary, before_mask=False)
        reader = TextReader(self.service, self.wanted)

        def emit(token: int, drafted: bool) -> None:
            report = spelling.plain(token, drafted) if self.wanted.guided.tokens else None
            parts = reader.token(token)
            if parts or report is not None:
                loop.call_soon_threadsafe(self._early.put_nowait, Piece(0, parts, report))

        written = draft_text(model, self.job, emit)
        self.counts.prompt, self.counts.written = len(self.job.prompt), len(written.tokens)
        self.counts.reasoning = reader.reasoning
        parts = reader.close()
        ended = bool(written.tokens) and written.tokens[-1] in self.service.loaded.vocabulary.eos_ids
        return [Piece(0, parts, finish="length" if not ended else "tool_calls" if reader.calls else "stop")]

    def _common(self) -> dict[str, Any]:
        job = self.job
        found: dict[str, Any] = {"steer": job.steer, "tokenizer": self.service.loaded.tokenizer,
                                 "max_new_tokens": job.max_new_tokens}  # fmt: skip
        if job.steer is not None:
            found["same_tokenizer"] = True
        cuts = {"temperature": (job.temperature, 1.0), "top_p": (job.top_p, 1.0), "top_k": (job.top_k, 0)}
        # A search is greedy by itself, whatever the temperature: it is asked for at 0 or 1.
        return found | {name: value for name, (value, neutral) in cuts.items() if value not in (neutral, 0)}

    def _sampled(self, model: LanguageModel, loop: asyncio.AbstractEventLoop) -> list[Piece]:
        asked = self.wanted.guided.sampler
        assert asked is not None
        options: dict[str, Any] = {} if self.job.draft is None else {"draft": self.job.draft}
        result: Any = generate(
            model, list(self.job.prompt), self.job.constraint,
            sampler=getattr(guided.infer, _SAMPLERS.get(asked.name, asked.name)), n=asked.particles,
            seed=self.job.seed, progress=self._progress(loop, asked.steps), **self._common(), **options,
        )  # fmt: skip
        weights = result.posterior() if hasattr(result, "posterior") else _ranked(result)
        if not weights:
            raise LimitError(
                "no particle wrote a whole text", remedy="Raise guided.sampler.particles or the limit of tokens."
            )
        self._account(result.cost.tokens)
        report = _sampler_report(asked.name, asked.particles, result, weights, self.wanted.goal.is_json)
        texts = [next(iter(weights))]
        if asked.pick == "draw":
            rng = np.random.default_rng(self.job.seed)
            texts = rng.choice(list(weights), self.wanted.n, p=list(weights.values())).tolist()
        return self._pieces(texts, sampler=report)

    def _progress(self, loop: asyncio.AbstractEventLoop, told: bool) -> Callable[[Any], None]:
        vocabulary = self.service.loaded.vocabulary

        def shown(token: int | None) -> str | None:
            return None if token is None else (vocabulary.token_bytes(token) or b"").decode("utf-8", "replace")

        def progress(step: Any) -> None:
            if told and hasattr(step, "increments"):
                report = StepReport(
                    number=step.number, tokens=[shown(token) for token in step.tokens],
                    logw=[finite(value) for value in step.logw], ess=step.ess,
                    ancestors=None if step.ancestors is None else list(step.ancestors),
                    parents=None if step.parents is None else list(step.parents), finished=step.finished,
                )  # fmt: skip
                loop.call_soon_threadsafe(self._early.put_nowait, Piece(0, step=report))

        return progress

    def _searched(self, model: LanguageModel) -> list[Piece]:
        asked = self.wanted.guided.search
        assert asked is not None
        function = None if asked.name is None else getattr(guided.search, _SEARCHES[asked.name])
        options: dict[str, Any] = {}
        if asked.beams is not None:
            options["width"] = asked.beams
        if asked.length_penalty is not None:
            options["length_penalty"] = asked.length_penalty
        # Several hypotheses may be one text, cut into tokens otherwise: so many more are asked for as there are beams.
        wanted = self.wanted.n
        most = wanted if asked.beams is None or asked.name == "diverse" else max(wanted, asked.beams)
        result: Any = generate(
            model, list(self.job.prompt), self.job.constraint, search=function, n=most,
            must_include=asked.must_include, must_exclude=asked.must_exclude, **self._common(), **options,
        )  # fmt: skip
        best: dict[str, float] = {}
        for each in result.hypotheses:
            if each.text is not None:
                best.setdefault(each.text, each.score)
        if len(best) < wanted:
            raise LimitError(
                f"the search found {len(best)} texts, and {wanted} are wanted",
                remedy="Raise guided.search.beams, or ask for fewer texts or phrases.",
            )
        self._account(result.cost.rows)
        report = SearchReport(
            name=asked.name or "dynamic",
            texts=[TextReport(text=text, score=score) for text, score in best.items()],
            passes=result.cost.passes, rows=result.cost.rows,
        )  # fmt: skip
        return self._pieces(list(best)[:wanted], search=report)

    def _account(self, tokens: int) -> None:
        self.counts.prompt, self.counts.written = len(self.job.prompt), tokens

    def _pieces(self, texts: Sequence[str], **reports: Any) -> list[Piece]:
        pieces: list[Piece] = []
        for choice, text in enumerate(texts):
            pieces.append(Piece(choice, [Content(text)], finish="stop", **reports))
            reports = {}
        return pieces


def _ranked(result: Any) -> dict[str, float]:
    """Texts of a ranking, the best first: equal shares, since a ranking has no weights."""
    texts = [particle.text for particle in result.particles if particle.finished and particle.text is not None]
    return {text: texts.count(text) / len(texts) for text in dict.fromkeys(texts)}


def _sampler_report(
    name: str, particles: int, result: Any, weights: Mapping[str, float], is_json: bool
) -> SamplerReport:
    log_ml, error = getattr(result, "log_ml", None), getattr(result, "log_ml_error", None)
    known = log_ml is not None and math.isfinite(log_ml)
    fields = None
    if is_json and hasattr(result, "posterior"):
        fields = {
            pointer: FieldReport(
                absent=field.absent,
                alternatives=[
                    ValueReport(
                        value=one.value, probability=one.probability, standard_error=one.standard_error, count=one.count
                    )
                    for one in field.alternatives
                ],
            )
            for pointer, field in posteriors(result).items()
        }
    return SamplerReport(
        name=name, particles=particles,
        texts=[TextReport(text=text, weight=weight) for text, weight in weights.items()],
        log_ml=log_ml if known else None,
        log_ml_error=error if known and error is not None and math.isfinite(error) else None,
        ess=getattr(result, "ess", None), missing=getattr(result, "missing", 0), fields=fields,
    )  # fmt: skip
