"""`Service`: a loaded model, its scheduler and all that endpoints share; made once, when the server starts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError
from guided.hf.loading import LoadedModel
from guided.lm import LanguageModel
from guided.server.api.asking.languages import Languages
from guided.server.api.asking.sources import Known
from guided.server.api.asking.wanted import Goal, Wanted
from guided.server.api.guarding.errors import ApiError, refused
from guided.server.api.guarding.metrics import Metrics
from guided.server.api.reading.calls import CallReader, ContentReader, check_style
from guided.server.api.reading.parts import PartReader
from guided.server.api.reading.special import SpecialTokens
from guided.server.api.reading.thinking import ThinkingReader
from guided.server.api.settings import Settings
from guided.server.scheduling import Job, Stream
from guided.server.scheduling.compiler import is_ample

__all__ = ["Schedules", "Service"]

T = TypeVar("T")


class Schedules(Protocol):
    """What the application asks of a scheduler; `guided.server.scheduling.Scheduler` is one."""

    async def submit(self, job: Job) -> Stream:
        """Take a job, or raise `Busy` or `Closing`."""

    def run(self, function: Callable[[LanguageModel], T], *, client: str = "") -> Awaitable[T]:
        """Call a function that runs the model itself; its passes take turns with everybody's."""

    async def close(self, grace: float) -> None:
        """End what runs within ``grace`` seconds, and take nothing new."""


@dataclass(eq=False)
class Service:
    """What answers requests, without HTTP."""

    loaded: LoadedModel
    scheduler: Schedules
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        """Raises `GuidedError` for settings that this model or this server cannot have."""
        check_style(self.settings.tool_style)
        vocabulary = self.loaded.vocabulary
        self.special = SpecialTokens(vocabulary.special_tokens)
        known = Known(dict(vocabulary.special_tokens), self.settings.databases)
        self.languages = Languages(vocabulary, known, self.settings.compile_seconds)
        self.metrics = Metrics()
        self.drafting = threading.Lock()
        # Tokenizers are not made for several threads at once.
        self._words = ThreadPoolExecutor(1, "guided-words")
        self.started = int(time.time())
        self.is_closing = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which requests may ask for the model."""
        return (self.loaded.name, *self.settings.aliases)

    @property
    def room(self) -> int | None:
        """The positions that the model has."""
        config = self.loaded.model.config
        found = getattr(config.get_text_config(), "max_position_embeddings", None)
        return found if isinstance(found, int) and not config.is_encoder_decoder else None

    def check_model(self, name: str) -> None:
        """Raise `ApiError` for a model that is not here."""
        if name not in self.names:
            known = ", ".join(map(repr, self.names))
            raise ApiError(404, f"there is no model {name!r}: here is {known}", param="model", code="model_not_found")

    async def in_words(self, function: Callable[[], T], param: str) -> T:
        """Call what uses the tokenizer; errors of guided are those of the field ``param``."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._words, function)
        except GuidedError as error:
            raise refused(error, param) from error

    async def constraint(self, goal: Goal, client: str = "") -> Constrains | None:
        """The compiled constraint of a goal; raises `ApiError`."""
        if goal.source is None:
            return None
        try:
            with self.metrics.compiling.time():
                return await self.languages.constraint(goal.source, client)
        except GuidedError as error:
            raise refused(error, goal.param) from error

    def budget(self, wanted: Wanted, constraint: Constrains | None, n_prompt: int) -> int:
        """How many tokens a text may have; raises `ApiError` where the prompt, or the shortest text, does not fit."""
        param = wanted.paths.max_tokens
        room = None if self.room is None else self.room - n_prompt
        if room is not None and room < (wanted.max_tokens or 1):
            raise ApiError(
                400,
                f"the prompt has {n_prompt} tokens, which leaves {max(room, 0)} of the model's {self.room}",
                param=param if room > 0 else "messages", code="context_length_exceeded",
            )  # fmt: skip
        most = self.settings.default_tokens if wanted.max_tokens is None else wanted.max_tokens
        within = most if room is None else min(most, room)
        least = 1
        if constraint is not None and not is_ample(constraint, within):
            least = constraint.shortest_completion(constraint.start) + 1
        if wanted.max_tokens is None:
            most = max(most, least)
            most = most if room is None else min(most, room)
        if least > most:
            error = LimitError(
                f"the shortest text that is allowed takes {least} tokens, and {most} are left",
                remedy=f"Pass {param} of {least} or more, or a shorter prompt.",
            )
            raise refused(error, param)
        return most

    def reader(self, goal: Goal) -> PartReader:
        """What reads one text of a goal."""
        rest: PartReader = ContentReader()
        if goal.reads_calls:
            rest = CallReader(self.settings.tool_style, self.special, only_calls=goal.only_calls)
        thinking = self.settings.thinking
        if thinking is None or not goal.thinks:
            return rest
        begin = None if thinking.begin is None else self.special.read(thinking.begin)
        return ThinkingReader(begin, self.special.read(thinking.end), rest)

    async def close(self) -> None:
        """End what runs within the grace that settings give, and refuse what is new."""
        self.is_closing = True
        await self.scheduler.close(self.settings.grace_seconds)
        self.languages.close()
        self._words.shutdown(wait=False)
