"""`Constrained`: the law of a step under a constraint, exact over whole texts.

What is proposed is always one whole text of the language, the likeliest or a drawn one, so whatever part of it a policy
commits, a text remains: also where all positions are committed in one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.diffusion.denoiser import Canvas
from guided.diffusion.lattice import Lattice, LatticeLimits
from guided.diffusion.law import (
    Proposal,
    Standing,
    check_temperature,
    end_for_pad,
    folded,
    log_softmax,
    pinned,
    tempered,
)
from guided.errors import LimitError, UnsatisfiableError

__all__ = ["Constrained"]

_CUT = 0.1
"""Where the mass that was cut is bounded by more, in nats, marginals do not say how sure a token is: of seven questions
that are right in SQL without the grammar, in 16 steps, three were with them."""


@dataclass(frozen=True, eq=False)
class Constrained:
    """The product of the positions' laws given the constraint: its marginals, and its likeliest or a drawn text.

    With a ``temperature`` above 0 texts are drawn, from the laws at that temperature.  ``pad_id`` is what the model
    writes behind the end of a text where that is no end-of-text id: its probability counts as that of the end, since a
    position by itself does not know which of them is the first.  Raises `LimitError` where the canvas is too short
    for any text, and what `Lattice` does.

    >>> import numpy as np
    >>> import guided
    >>> from guided import diffusion
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> denoiser = diffusion.TableDenoiser(np.ones((3, 3, 3)), eos_ids=[2])  # knows nothing
    >>> law = diffusion.Constrained(guided.compile(guided.regex("ab?"), letters))
    >>> diffusion.denoise(denoiser, [diffusion.Job((), 3, law=law, fixed={1: 1})])[0].tokens
    (0, 1, 2)
    """

    constraint: Constrains
    temperature: float = 0.0
    pad_id: int | None = None
    limits: LatticeLimits = field(default_factory=LatticeLimits)
    _states: dict[tuple[int, ...], int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def proposal(self, at: Standing, scores: NDArray[np.float32], chance: np.random.Generator) -> Proposal:
        """Marginals of whole texts, or the model's own law where too much of them was cut; and one whole text."""
        own = folded(tempered(log_softmax(scores), self.temperature), self._end_for_pad, self.pad_id)
        lattice = self._lattice(at, own)
        tokens = (lattice.sample(chance)[0] if self.temperature > 0 else lattice.best()[0])[: len(at.canvas)]
        ends = np.flatnonzero(np.isin(tokens, list(self.constraint.vocabulary.eos_ids)))
        # Among the few texts that a cut has left everything is sure, whatever the model says.
        law = lattice.marginals()[: len(at.canvas)] if lattice.bound <= _CUT else np.exp(own)
        return replace(pinned(at.canvas, law, tokens), n_text=int(ends[0]) if ends.size else None)

    def _lattice(self, at: Standing, logp: NDArray[np.float64]) -> Lattice:
        state, keep = self._state(at.written), None if at.proposed is None else at.proposed.tolist()
        known, room = self._known(at.canvas), at.room
        if at.ahead:
            # As far as the last fixed token, where positions that the model has not seen may hold anything.
            n = 1 + max(at.ahead)
            logp, room, keep = np.concatenate([logp, np.zeros((n, logp.shape[1]))]), room - n, None
            known |= self._read({len(at.canvas) + place: token for place, token in at.ahead.items()})
        try:
            return Lattice(self.constraint, logp, known, start=state, room=room, limits=self.limits, keep=keep)
        except UnsatisfiableError:
            length, least = len(logp) + room, self.constraint.shortest_completion(state)
            if least <= length:
                raise
            raise LimitError(
                f"no text of the grammar has {length} tokens or fewer: the shortest has {least}",
                where="the canvas",
                remedy=f"Ask for {least} new tokens.",
            ) from None

    def _state(self, written: tuple[int, ...]) -> int:
        """The state after the tokens before the canvas."""
        found = self._states.get(written)
        if found is None:
            found = self.constraint.start
            for token in written:
                found = self.constraint.advance(found, token)
            if not found:
                raise UnsatisfiableError(
                    "the tokens before the canvas are in no text of the grammar", remedy="Pass others, or none."
                )
            self._states[written] = found
        return found

    @property
    def _end_for_pad(self) -> int | None:
        """The end-of-text id as which padding is read, None where nothing is to be read so."""
        return end_for_pad(self.constraint.vocabulary.eos_ids, self.pad_id)

    def _known(self, canvas: Canvas) -> dict[int, int]:
        """The tokens by position that are known."""
        places = np.flatnonzero(canvas.known)
        return self._read(dict(zip(places.tolist(), canvas.tokens[places].tolist(), strict=True)))

    def _read(self, known: Mapping[int, int]) -> dict[int, int]:
        """Tokens as the grammar reads them: padding as the end that it follows."""
        end = self._end_for_pad
        return {at: end if end is not None and token == self.pad_id else token for at, token in known.items()}
