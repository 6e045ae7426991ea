"""`Lane`: the rows of one model's batch, and one step of all of them.  It decides nothing about who may enter.

A step draws the next token of every row whose mask is ready, hands the tokens to the model in one pass, and has the
next masks filled meanwhile.  Rows enter and leave between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from guided import tokenset
from guided.errors import GuidedError, LimitError
from guided.lm import LanguageModel, Sequences
from guided.server.scheduling.drawing import Chosen, Refused
from guided.server.scheduling.growing import Growing
from guided.server.scheduling.laws import choose
from guided.server.scheduling.masking import MaskFiller, Pending, all_allowed

__all__ = ["Lane"]

PATIENCE = 0.01
"""Seconds to wait for masks that are not ready when the model is: some hundred times what a mask takes."""

NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
"""What errors of torch say that has no class of its own on processors."""


@dataclass(eq=False)
class _Row:
    """A row of the batch."""

    growing: Growing
    unread: tuple[int, ...]
    """What is left of the prompt."""
    mask: Pending | None = None
    number: int = 0
    """By which steerers know the row; 0 where there are none."""


class Lane:
    """Rows that share the passes of one model."""

    def __init__(self, model: LanguageModel, filler: MaskFiller, steered: dict[int, Pending] | None = None) -> None:
        """``steered``: the masks that steerers see (`PendingMasks`), which this lane keeps; None without any."""
        self._model = model
        self._filler = filler
        self._steered = steered
        self._n_joined = 0
        """Rows that the sequences have had, each by its number."""
        self._words = tokenset.n_words(model.width)
        self._sequences: Sequences | None = None
        self._rows: list[_Row] = []
        self._logits: torch.Tensor | None = None
        """``[rows, width]``: after the last token of each row."""
        self.short_of_memory = 0
        """How often a pass found too little memory."""
        self._drawn: dict[int, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def growing(self) -> list[Growing]:
        """The jobs of the rows."""
        return [row.growing for row in self._rows]

    def enter(self, jobs: Sequence[Growing], most: int) -> None:
        """New rows, with up to ``most`` tokens of each prompt read; what is left is read in the next steps."""
        before = self._model.calls.positions
        pieces = [growing.job.prompt[:most] for growing in jobs]
        if self._sequences is None:
            self._n_joined = 0
        new = [_Row(growing, growing.job.prompt[most:], number=n) for n, growing in enumerate(jobs, self._n_joined)]
        self._ask([row for row in new if not row.unread])
        if not self._in_memory(lambda: self._join(new, pieces)):
            if len(jobs) == 1:
                jobs[0].fail(_no_memory("the prompt"))
                return
            for part in (jobs[: len(jobs) // 2], jobs[len(jobs) // 2 :]):
                self.enter(part, most)
            return
        read = self._model.calls.positions - before
        known = [row.growing.job.prompt for row in self._rows]
        for growing, cached in zip(jobs, _shared(pieces, known, read), strict=True):
            growing.cached_tokens = cached
        self._rows += new
        self._logits = None

    def read_on(self, most: int) -> None:
        """Read more of the first prompt that is not read yet."""
        for row in self._rows:
            if row.unread:
                piece, row.unread = row.unread[:most], row.unread[most:]
                if not row.unread:
                    self._ask([row])
                self._extend({id(row): piece})
                break
        self._leave()

    def draw(self) -> int:
        """Draw the next token of every row that is ready; how many were drawn."""
        waiting = [row.mask for row in self._rows if row.mask is not None and not row.unread]
        self._filler.wait(waiting, PATIENCE)
        ready: list[int] = []
        for number, row in enumerate(self._rows):
            if row.unread or row.growing.over or (row.mask is not None and not row.mask.is_ready):
                continue
            if row.mask is not None and row.mask.error is not None:
                row.growing.fail(row.mask.error)
                continue
            ready.append(number)
        if not ready:
            return 0
        logits = self._last()
        if len(ready) < len(self._rows):
            logits = logits[torch.tensor(ready, device=logits.device)]
        rows = [self._rows[number] for number in ready]
        jobs = [row.growing.job for row in rows]
        chances = [row.growing.chance() for row in rows]
        everything = all_allowed(self._words)
        masks = [everything if row.mask is None or row.mask.kept is None else row.mask.kept for row in rows]
        masked = any(mask is not everything for mask in masks)
        shifts = [row.growing.shift() for row in rows]
        self._grow(rows, choose(logits, masks if masked else None, jobs, chances, shifts))
        return len(rows)

    def _grow(self, rows: Sequence[_Row], found: Sequence[Chosen | Refused]) -> None:
        """Let texts grow by what was drawn, which is most of what their next masks take."""
        chosen: list[tuple[_Row, Chosen]] = []
        for row, each in zip(rows, found, strict=True):
            if isinstance(each, Refused):
                row.growing.fail(GuidedError(str(each), remedy="Ask for another text; if it stays so, tell us."))
            else:
                chosen.append((row, each))
        bound = [(row, matcher, each.id) for row, each in chosen if (matcher := row.growing.matcher) is not None]
        masks = self._filler.step([matcher for _, matcher, _ in bound], [token for _, _, token in bound])
        for (row, _, _), mask in zip(bound, masks, strict=True):
            row.mask = mask
        for row, each in chosen:
            row.growing.grow(each, accepted=row.mask is not None)
            self._drawn[id(row)] = (each.id,)

    def advance(self) -> None:
        """Take out the rows that have ended, and run the model on what the others drew."""
        self._leave()
        drawn = [row for row in self._rows if id(row) in self._drawn]
        self._ask(drawn)
        self._extend({id(row): self._drawn[id(row)] for row in drawn})
        self._drawn = {}
        self._leave()

    def _ask(self, rows: Sequence[_Row]) -> None:
        """Have the next masks of rows that have none filled, beside the pass that follows."""
        for row in rows:
            if row.growing.matcher is None:
                continue
            if row.mask is None:
                row.mask = self._filler.ask(row.growing.matcher)
            if self._steered is not None:
                self._steered[row.number] = row.mask

    def _join(self, rows: Sequence[_Row], prompts: Sequence[Sequence[int]]) -> None:
        try:
            if self._sequences is None:
                self._sequences = self._model.start(prompts)
            else:
                self._sequences.join(prompts)
        except BaseException:
            self._forget(rows)
            raise
        self._n_joined += len(rows)

    def _forget(self, rows: Iterable[_Row]) -> None:
        """Drop what steerers know of rows."""
        if self._steered is not None:
            for row in rows:
                self._steered.pop(row.number, None)

    def _last(self) -> torch.Tensor:
        if self._logits is None:
            assert self._sequences is not None
            self._logits = self._sequences.last.logits
        return self._logits

    def _extend(self, tokens: dict[int, tuple[int, ...]]) -> None:
        """Append tokens to rows by one pass, or by several where there is too little memory for one."""
        if not tokens:
            return
        sequences = self._sequences
        assert sequences is not None
        self._logits = None
        added = [tokens.get(id(row), ()) for row in self._rows]
        if self._in_memory(lambda: sequences.extend(added)):
            return
        here = [row for row in self._rows if id(row) in tokens]
        if len(here) == 1:
            here[0].growing.fail(_no_memory("the text"))
            return
        for part in (here[: len(here) // 2], here[len(here) // 2 :]):
            self._extend({id(row): tokens[id(row)] for row in part})

    def _in_memory(self, work: Callable[[], object]) -> bool:
        """Was there memory enough for a pass?"""
        try:
            work()
        except (MemoryError, RuntimeError) as error:
            exhausted = isinstance(error, (MemoryError, torch.OutOfMemoryError))
            if not exhausted and not any(words in str(error).lower() for words in NO_MEMORY):
                raise
            self.short_of_memory += 1
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            return False
        return True

    def _leave(self) -> None:
        """Take the rows of jobs that are over out of the batch."""
        staying = [number for number, row in enumerate(self._rows) if not row.growing.over]
        if len(staying) == len(self._rows):
            return
        self._forget(row for row in self._rows if row.growing.over)
        self._rows = [self._rows[number] for number in staying]
        if not staying:
            # Nothing is kept of texts that are over: neither their keys nor their tokens.
            self._sequences = self._logits = None
            return
        assert self._sequences is not None
        self._sequences.select(staying)
        if self._logits is not None:
            self._logits = self._logits[torch.tensor(staying, device=self._logits.device)]


def _no_memory(what: str) -> LimitError:
    return LimitError(
        f"the model has too little memory for {what}, even alone", remedy="Shorten the prompt, or ask for fewer tokens."
    )


def _shared(pieces: Sequence[Sequence[int]], known: Sequence[Sequence[int]], read: int) -> list[int]:
    """How many tokens of each prompt were computed before.

    Of one prompt that is what was not read.  Of several it is what each has in common with a prompt before it: what is
    left of rows that are gone may have given more.
    """
    if len(pieces) == 1:
        # A steered model counts the positions of all models in it.
        return [max(len(pieces[0]) - read, 0)]
    found: list[int] = []
    before = list(known)
    for piece in pieces:
        found.append(max((_common(piece, other) for other in before), default=0))
        before.append(piece)
    return found


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of tokens that both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
