"""`Growing`: a job that has a row of a batch, or will have one; its text, its constraint's state, its chance."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from itertools import count

import numpy as np

from guided.errors import GuidedError
from guided.hf.constraints import named_special_ids
from guided.server.scheduling.drawing import Chosen
from guided.server.scheduling.events import Alternative, Event, Failed, Finished, Reason, Token
from guided.server.scheduling.jobs import Job
from guided.server.scheduling.stream import Stream
from guided.server.scheduling.writer import TextWriter
from guided.serving.matcher import Matcher
from guided.vocab import Vocabulary

__all__ = ["Growing"]

_NUMBERS = count()


class Growing:
    """A job in progress.  One thread makes it grow; any may cancel it."""

    def __init__(
        self,
        job: Job,
        matcher: Matcher | None,
        vocabulary: Vocabulary,
        eos_ids: frozenset[int],
        wake: threading.Event,
    ) -> None:
        """``matcher`` is at the beginning of the job's constraint, within its budget; None without a constraint."""
        self.job = job
        self.number = next(_NUMBERS)
        self.cancelled = threading.Event()
        self.matcher = matcher
        self.events: list[Event] = []
        """What the stream has not been handed yet."""
        self.over = False
        self.cached_tokens = 0
        self.began = 0.0
        """When the job left the queue, by the monotonic clock."""
        self._tokens: tuple[bytes | None, ...] = vocabulary.tokens
        self._names: Mapping[int, str] = {} if job.constraint is None else named_special_ids(job.constraint)
        self._eos_ids = eos_ids
        self._writer = TextWriter(job.stop)
        self._rng = np.random.default_rng(job.seed)
        self._n_tokens = 0
        self._counts: Counter[int] = Counter()

        def cancel() -> None:
            self.cancelled.set()
            wake.set()

        self.stream = Stream(cancel)

    @property
    def reserved(self) -> int:
        """Tokens for which keys and values are kept at most."""
        return len(self.job.prompt) + self.job.max_new_tokens

    def chance(self) -> float:
        """The job's next number in [0, 1)."""
        return float(self._rng.random()) if self.job.temperature else 0.0

    def shift(self) -> Mapping[int, float]:
        """What is added to the logits of the next token, by ids."""
        return self.job.biases.shift(self._counts) if self.job.biases else {}

    def data(self, token: int) -> bytes:
        """What a token adds to the text: of special tokens the names of those that the grammar asks for."""
        if token in self._names:
            return self._names[token].encode()
        found = self._tokens[token] if token < len(self._tokens) else None
        return found or b""

    def grow(self, chosen: Chosen, accepted: bool = False, drafted: bool = False) -> None:
        """Go on by a token, which may be the last; the matcher may have ``accepted`` it already."""
        token = chosen.id
        if not accepted and self.matcher is not None and not self.matcher.accept(token):
            self.fail(GuidedError(f"token {token} is not in the constraint's language", where="the scheduler"))
            return
        self._n_tokens += 1
        self._counts[token] += 1
        ended = token in self._eos_ids
        data = b"" if ended else self.data(token)
        text = self._writer.write(data)
        reason: Reason | None = None
        if ended or self._writer.stop is not None:
            reason = Reason.STOP
        elif self._n_tokens >= self.job.max_new_tokens:
            reason = Reason.LENGTH
        if reason is not None:
            text += self._writer.end()
        alternatives = tuple(
            Alternative(each, b"" if each in self._eos_ids else self.data(each), logprob, own, allowed)
            for each, logprob, own, allowed in chosen.alternatives
        )
        self.events.append(
            Token(token, data, text, chosen.logprob, chosen.model_logprob, chosen.removed, drafted, alternatives)
        )
        if reason is not None:
            self._finish(reason, "", ended)

    def cut(self, reason: Reason) -> None:
        """End the text where it is."""
        if not self.over:
            self._finish(reason, self._writer.end(), False)

    def fail(self, error: GuidedError) -> None:
        """End the job with an error."""
        if not self.over:
            self.over = True
            self.events.append(Failed(error))

    def must_end(self, seconds: float | None) -> Reason | None:
        """Why the text must be cut now, if it must."""
        if self.cancelled.is_set():
            return Reason.CANCELLED
        late = seconds is not None and self.began and time.monotonic() - self.began > seconds
        return Reason.TIME if late else None

    def _finish(self, reason: Reason, tail: str, ended: bool) -> None:
        self.over = True
        stopped = self._writer.stop is not None
        whole = ended if self.matcher is None else self.matcher.is_whole and not stopped
        self.events.append(
            Finished(
                reason, self._writer.text, len(self.job.prompt), self._n_tokens, self.cached_tokens, whole,
                self._writer.stop, tail,
            )
        )  # fmt: skip
