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
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from guided import tokenset
from guided.errors import GuidedError, LimitError
from guided.lm import LanguageModel
from guided.serving.matcher import Matcher
from guided.steer import Declaration, Seen
from guided.steer.masking import only_allowed

__all__ = ["MaskFiller", "Pending", "PendingMasks", "stacked"]


@dataclass(eq=False)
class Pending:
    """A mask that is asked for."""

    matcher: Matcher
    row: NDArray[np.uint32]
    """Its own; whoever asked may read it once it is ready."""
    ready: threading.Event = field(default_factory=threading.Event)
    error: GuidedError | None = None
    """Why there is none."""

    def fill(self) -> None:
        """Fill the row."""
        try:
            self.matcher.fill(self.row)
        except GuidedError as error:
            self.error = error
        except Exception as error:  # A bug, or no memory: one row's matter, not that of the thread.
            self.error = LimitError(f"no mask could be made: {type(error).__name__}: {error}")
        self.ready.set()


class MaskFiller:
    """Threads that fill masks, in the order in which they are asked for; there are more while slow ones hold some."""

    def __init__(self, threads: int = 1, most: int = 16) -> None:
        self._asked: queue.SimpleQueue[Pending | None] = queue.SimpleQueue()
        self._most = most
        self._threads: list[threading.Thread] = []
        for _ in range(threads):
            self._start()

    def ask(self, matcher: Matcher, words: int) -> Pending:
        """Ask for the mask of the matcher's next token, ``uint32[words]``; the matcher must then not move."""
        pending = Pending(matcher, np.empty(words, np.uint32))
        self._asked.put(pending)
        return pending

    def wait(self, pending: Sequence[Pending], seconds: float) -> None:
        """Wait until all are ready, or for so long."""
        end = time.monotonic() + seconds
        for each in pending:
            if not each.ready.wait(max(end - time.monotonic(), 0.0)):
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
        while (pending := self._asked.get()) is not None:
            pending.fill()


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
        asked = [self.rows.get(number) for number in seen.rows]
        for each in asked:
            if each is not None:
                each.ready.wait()
        made = [None if each is None or each.error is not None else each for each in asked]
        masks = stacked(made, tokenset.n_words(logits.shape[1]))
        return logits if masks is None else only_allowed(logits, masks.numpy().view(np.uint32))


def stacked(rows: Sequence[Pending | None], words: int) -> torch.Tensor | None:
    """The masks as ``int32[n, words]``, everything allowed where there is none; None where there is none at all."""
    if all(each is None for each in rows):
        return None
    found = np.full((len(rows), words), ~np.uint32(0), np.uint32)
    for place, pending in zip(found, rows, strict=True):
        if pending is not None:
            place[:] = 0
            place[: pending.row.size] = pending.row
    return torch.from_numpy(found.view(np.int32))
