"""`Lookahead`: commit a token if some likely filling of the masks before it parses (LAVE).

arXiv 2602.00612; the order of trials, beams, scores (sums of probabilities), the stored filling and what happens after
five refusals are those of the public code (zhangyitonggg/CD4dLLM, ``generate_our.py``), where llguidance checks.
Differences: prefixes are checked by the constraint's states; what an end filled behind the block is taken back with
it; and the steps that are left are evened out by the policy, not by the decoder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.diffusion.baselines.ranking import Ranking, free_proposal
from guided.diffusion.denoiser import Canvas
from guided.diffusion.law import Commit, Proposal, Standing

__all__ = ["Lookahead"]

_MASK = -1


@dataclass(frozen=True)
class _Memory:
    """What a step leaves for the next."""

    written: int
    """Tokens of the text before the canvas."""
    begin: int
    end: int
    """The block."""
    filling: tuple[int, ...]
    """The canvas as the last accepted token's best beam filled it, `_MASK` where it did not."""
    forced: int = 0
    """Tokens to be written from left to right next."""


@dataclass(frozen=True, eq=False)
class _Beam:
    state: int
    tokens: tuple[int, ...]
    score: float


@dataclass(frozen=True, eq=False)
class Lookahead:
    """One token after the other, each accepted where a beam of fillings up to the last known token parses.

    A mask takes each beam's ``tokens`` likeliest continuations, of which the ``beams`` best and ``others`` drawn at
    random go on.  After ``retries`` refusals of one commit the block is filled from the last accepted beam, and the
    rest of the step's tokens are written from left to right under the grammar's mask.
    """

    constraint: Constrains
    pad_id: int | None = None
    tokens: int = 5
    beams: int = 3
    others: int = 3
    retries: int = 5

    def proposal(self, at: Standing, scores: NDArray[np.float32], chance: np.random.Generator) -> Proposal:
        """The model's own law."""
        return free_proposal(at, scores, self._ends, self.pad_id)

    def commit(self, at: Standing, proposal: Proposal, end: int, n: int, chance: np.random.Generator) -> Commit:
        """Commit ``n`` tokens, or fill the block from the last beam that parsed."""
        canvas = at.canvas
        row = _row(canvas)
        memory = self._memory(at, row, end)
        if memory.forced:
            return self._forced(at, row, proposal, replace(memory, forced=0), memory.forced)
        ranking = Ranking(proposal.probabilities)
        refused = 0
        while n and _MASK in row[:end] and not self._is_over(row):
            tried = ranking.surest(np.array([place for place in range(end) if row[place] == _MASK], np.int64))
            if tried is None or refused >= self.retries:
                return self._filled(at, row, memory, n)
            place, token = tried
            row[place] = token
            filling = list(memory.filling)
            if memory.filling[place] == token or (
                filling := self.looked_ahead(at.written, row, memory.begin, end, proposal.probabilities, chance)
            ):
                memory = replace(memory, filling=tuple(filling))
                if token in self._ends:
                    row[place:] = [token] * (len(row) - place)
                n, refused = n - 1, 0
                if self._stop(at.written, row):
                    break
            else:
                row[place] = _MASK
                refused += 1
                ranking.refuse(place)
        return Commit(_canvas(canvas, row), memory)

    def looked_ahead(
        self,
        written: tuple[int, ...],
        row: list[int],
        begin: int,
        end: int,
        probabilities: NDArray[np.float64],
        chance: np.random.Generator,
    ) -> list[int]:
        """The canvas filled by the best beam up to its last known token; empty where no beam parses.

        ``row`` are the canvas's tokens, -1 at masks; with an end-of-text id among those from ``begin`` to ``end``, the
        text must be completed before it, by its likeliest allowed tokens.
        """
        n_prefix, state = self._prefix(written, row)
        texts = [place for place in range(end) if row[place] != _MASK and row[place] not in self._ends]
        last = max([n_prefix - 1, *texts])
        stop = next((place for place in range(begin, end) if row[place] in self._ends), None)
        if stop is not None and stop < last:
            return []
        beams = [_Beam(state, (), 0.0)] if state else []
        for place in range(n_prefix, last + 1):
            if row[place] == _MASK:
                beams = self._extended(beams, probabilities[place], chance)
            else:
                moved = [replace(beam, state=self._advance(beam.state, row[place])) for beam in beams]
                beams = [replace(beam, tokens=(*beam.tokens, row[place])) for beam in moved if beam.state]
        if not beams:
            return []
        best = max(beams, key=lambda beam: beam.score)
        filling = [*row[:n_prefix], *best.tokens, *row[last + 1 :]]
        if stop is None:
            return filling
        filling[last + 1 :] = [row[stop]] * (len(row) - last - 1)
        state = best.state
        for place in range(last + 1, stop):
            if self.constraint.is_accepting(state):
                return filling
            token = self._likeliest(state, probabilities[place])
            filling[place], state = token, self._advance(state, token)
        return filling if self.constraint.is_accepting(state) else []

    def _extended(self, beams: list[_Beam], law: NDArray[np.float64], chance: np.random.Generator) -> list[_Beam]:
        """The beams with the likeliest tokens of a mask; dead ones too, until a known token is read, as published."""
        likeliest = np.argsort(-law, kind="stable")[: self.tokens].tolist()
        made = [
            _Beam(self._advance(beam.state, token), (*beam.tokens, token), beam.score + float(law[token]))
            for beam in beams
            for token in likeliest
        ]
        made.sort(key=lambda beam: -beam.score)
        rest = made[self.beams :]
        drawn = chance.choice(len(rest), min(self.others, len(rest)), replace=False).tolist() if rest else []
        return made[: self.beams] + [rest[number] for number in drawn]

    def _filled(self, at: Standing, row: list[int], memory: _Memory, n: int) -> Commit:
        """The block as the last accepted beam filled it, and a note of how many of ``n`` tokens are still to write."""
        known, _ = self._prefix(at.written, row)
        place = known
        while place < memory.end and memory.filling[place] not in (_MASK, *self._ends):
            place += 1
        fresh = sum(row[each] == _MASK for each in range(known, place))
        has_end = any(token in self._ends for token in row)
        behind = [_MASK] * (len(row) - memory.end) if has_end else row[memory.end :]
        filled = [*row[:known], *memory.filling[known:place], *[_MASK] * (memory.end - place), *behind]
        if not self._stop(at.written, filled):
            memory = replace(memory, forced=max(0, n - fresh))
        return Commit(_canvas(at.canvas, filled), replace(memory, filling=tuple(filled)))

    def _forced(self, at: Standing, row: list[int], proposal: Proposal, memory: _Memory, n: int) -> Commit:
        """The next ``n`` tokens from left to right, each the likeliest that is allowed."""
        place, state = self._prefix(at.written, row)
        for where in range(place, min(place + n, len(row))):
            token = self._likeliest(state, proposal.probabilities[where])
            if token in self._ends:
                row[where:] = [token] * (len(row) - where)
                break
            row[where], state = token, self._advance(state, token)
            if self._stop(at.written, row):
                break
        return Commit(_canvas(at.canvas, row), replace(memory, filling=tuple(row)))

    def _memory(self, at: Standing, row: list[int], end: int) -> _Memory:
        found: _Memory | None = at.left
        if found is None or found.written != len(at.written) or len(found.filling) != len(row):
            return _Memory(len(at.written), row.index(_MASK), end, tuple(row))
        return found if found.end == end else replace(found, begin=row.index(_MASK), end=end)

    def _stop(self, written: tuple[int, ...], row: list[int]) -> bool:
        """End the text where nothing but the end may follow what is known of it from its start."""
        place, state = self._prefix(written, row)
        if place < len(row) and row[place] == _MASK and self.constraint.is_accepting(state):
            allowed = self._allowed(state)
            if set(allowed.tolist()) <= self._ends:
                row[place:] = [int(allowed[0])] * (len(row) - place)
                return True
        return False

    def _prefix(self, written: tuple[int, ...], row: list[int]) -> tuple[int, int]:
        """How many tokens are known from the start on, those of the text, and the state after them."""
        state = self.constraint.start
        for token in written:
            state = self._advance(state, token)
        for place, token in enumerate(row):
            if token == _MASK or token in self._ends:
                return place, state
            state = self._advance(state, token)
        return len(row), state

    def _likeliest(self, state: int, law: NDArray[np.float64]) -> int:
        allowed = self._allowed(state)
        return int(allowed[law[allowed].argmax()])

    def _allowed(self, state: int) -> NDArray[np.int64]:
        row = np.empty(self.constraint.vocabulary.n_words, np.uint32)
        self.constraint.fill_mask(state, row)
        return tokenset.ids(row)

    def _advance(self, state: int, token: int) -> int:
        return self.constraint.advance(state, token) if state and token < self.constraint.vocabulary.size else 0

    def _is_over(self, row: list[int]) -> bool:
        ends = [place for place, token in enumerate(row) if token in self._ends]
        return bool(ends) and _MASK not in row[: ends[0]]

    @property
    def _ends(self) -> frozenset[int]:
        return frozenset(self.constraint.vocabulary.eos_ids)


def _row(canvas: Canvas) -> list[int]:
    row: list[int] = np.where(canvas.known, canvas.tokens, _MASK).tolist()
    return row


def _canvas(canvas: Canvas, row: list[int]) -> Canvas:
    """The canvas with these tokens; what stands at its masks is the loop's matter."""
    tokens = np.array(row, np.int64)
    return Canvas(np.where(tokens == _MASK, canvas.tokens, tokens), tokens != _MASK, canvas.prompt)
