"""`MaskFiller`: the masks of a batch, filled beside the model's pass; a slow one holds up its own row alone.

A mask usually takes microseconds.  That of a hostile grammar may take as long as its limits let it, and by then
everybody else's next token is due: whoever waits here waits for a moment, and goes on without the rows that are not
ready.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from guided import tokenset
from guided.constraint.effects.shared_rows import KeptRow, with_address
from guided.errors import GuidedError, LimitError
from guided.hf.masking.apply import mask_scores
from guided.lm import LanguageModel
from guided.serving.matcher import Matcher, step
from guided.steer import Declaration, Seen

__all__ = ["MaskFiller", "Pending", "PendingMasks", "all_allowed"]


@dataclass(eq=False)
class Pending:
    """A mask that is asked for."""

    kept: KeptRow | None = None
    """Where it is, once it is ready; not to be written to."""
    error: GuidedError | None = None
    """Why there is none."""
    made: threading.Event | None = None
    """What a thread says when it has made it; None where it was at hand."""

    @property
    def is_ready(self) -> bool:
        """May it be read?"""
        return self.made is None or self.made.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is ready, or for so long; whether it is."""
        return self.made is None or self.made.wait(seconds)


class MaskFiller:
    """What is at hand or takes a moment is done at once, for all rows together.

    The rest is for threads, in the order in which it is asked for; there are more while slow masks hold some.
    """

    def __init__(self, threads: int = 1, most: int = 16) -> None:
        self._asked: queue.SimpleQueue[tuple[Matcher, Pending] | None] = queue.SimpleQueue()
        self._held: list[tuple[Matcher, Pending]] = []
        self._most = most
        self._threads: list[threading.Thread] = []
        for _ in range(threads):
            self._start()

    def ask(self, matcher: Matcher) -> Pending:
        """The mask of the matcher's next token, which must not move until then; threads see to it from `begin` on."""
        kept = matcher.remembered_row()
        if kept is not None:
            return Pending(kept)
        pending = Pending(made=threading.Event())
        self._held.append((matcher, pending))
        return pending

    def begin(self) -> None:
        """Hand the threads what was asked for."""
        held, self._held = self._held, []
        for each in held:
            self._asked.put(each)

    def step(self, matchers: Sequence[Matcher], tokens: Sequence[int]) -> list[Pending | None]:
        """Have matchers accept a token each, and their next masks; None for one that has not moved."""
        return [None if kept is None else Pending(kept) for kept in step(matchers, tokens)]

    def wait(self, pending: Sequence[Pending], seconds: float) -> None:
        """Wait until all are ready, or for so long."""
        self.begin()
        end = time.monotonic() + seconds
        for each in pending:
            if not each.is_ready and not each.wait(max(end - time.monotonic(), 0.0)):
                if not self._asked.empty() and len(self._threads) < self._most:
                    self._start()  # Those that work are held by slow masks.
                return

    def close(self) -> None:
        """End the threads after what they do now."""
        for _ in self._threads:
            self._asked.put(None)

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name=f"masks-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            matcher, pending = asked
            _fill(matcher, pending)
            assert pending.made is not None
            pending.made.set()


def _fill(matcher: Matcher, pending: Pending) -> None:
    row = np.empty(matcher.constraint.vocabulary.n_words, np.uint32)
    try:
        matcher.fill(row)
        pending.kept = with_address(row)
    except GuidedError as error:
        pending.error = error
    except Exception as error:  # A bug, or no memory: one row's matter, not that of the thread.
        pending.error = LimitError(f"no mask could be made: {type(error).__name__}: {error}")


@dataclass(frozen=True, eq=False)
class PendingMasks:
    """The masks that a batch draws by, as a steerer: what speaks after it chooses among allowed tokens.

    As `guided.draft.masks.MaskedRows`, but each mask is made once, by the filler, and waited for here.
    """

    rows: Mapping[int, Pending]
    """The mask of each row's next token, by `Seen.rows`; rows without one are free, or prompts not read yet."""

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, with which `Seen.rows` come."""
        return Declaration(text=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The logits with the forbidden tokens at ``-inf``; all stay where no mask could be made."""
        masks: list[KeptRow] = []
        everything = all_allowed(tokenset.n_words(logits.shape[1]))
        for number in seen.rows:
            pending = self.rows.get(number)
            if pending is not None:
                pending.wait()
            masks.append(everything if pending is None or pending.kept is None else pending.kept)
        return logits if all(mask is everything for mask in masks) else mask_scores(logits, masks)


@lru_cache(maxsize=8)
def all_allowed(words: int) -> KeptRow:
    """The mask of a row that has none, ``words`` wide."""
    return with_address(np.full(words, ~np.uint32(0), np.uint32))
