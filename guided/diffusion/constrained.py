"""`Constrained`: the law of a step under a constraint, exact over whole texts.

What is proposed is always one whole text of the language, the likeliest or a drawn one, so whatever part of it a policy
commits, a text remains: also where all positions are committed in one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.denoiser import Canvas
from guided.diffusion.law import Proposal, Standing, check_temperature, log_softmax, pinned, tempered
from guided.diffusion.layers import Layers, Transitions
from guided.errors import GuidedError, UnsatisfiableError

__all__ = ["Constrained"]


@dataclass(frozen=True, eq=False)
class Constrained:
    """The product of the positions' laws given the constraint: its marginals, and its likeliest or a drawn text.

    With a ``temperature`` above 0 texts are drawn, from the laws at that temperature.  ``pad_id`` is what the model
    writes after an end of text where that is no end-of-text id: its probability counts as that of the end.
    """

    transitions: Transitions
    temperature: float = 0.0
    pad_id: int | None = None
    most_states: int = 512
    _states: dict[tuple[int, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if self.most_states < 1:
            raise GuidedError(f"most_states is {self.most_states}", remedy="It must be 1 or more.")

    def proposal(self, at: Standing, scores: NDArray[np.float32], chance: np.random.Generator) -> Proposal:
        """Marginals of whole texts, and one whole text."""
        logp = self._folded(tempered(log_softmax(scores), self.temperature))
        known = np.where(at.canvas.known, self._ended(at.canvas), -1)
        layers = Layers(
            self.transitions, self._state(at.written), logp, known, room=at.room, most_states=self.most_states
        )
        tokens = layers.draw(chance) if self.temperature > 0 else layers.best()[0]
        return pinned(at.canvas, layers.marginals(), tokens)

    def _state(self, written: tuple[int, ...]) -> int:
        """The state after the tokens before the canvas."""
        constraint = self.transitions.constraint
        if not written:
            return constraint.start
        if written not in self._states:
            state = constraint.start
            for token in written:
                state = constraint.advance(state, token)
            if not state:
                raise UnsatisfiableError(
                    "the tokens before the canvas are in no text of the grammar", remedy="Pass others, or none."
                )
            self._states[written] = state
        return self._states[written]

    def _folded(self, logp: NDArray[np.float64]) -> NDArray[np.float64]:
        ends = self.transitions.constraint.vocabulary.eos_ids
        if self.pad_id is None or self.pad_id in ends or not ends:
            return logp
        end = min(ends)
        logp[:, end] = np.logaddexp(logp[:, end], logp[:, self.pad_id])
        logp[:, self.pad_id] = -np.inf
        return logp

    def _ended(self, canvas: Canvas) -> NDArray[np.int64]:
        """The tokens, padding read as the end that it follows."""
        ends = self.transitions.constraint.vocabulary.eos_ids
        if self.pad_id is None or self.pad_id in ends or not ends:
            return canvas.tokens
        return np.where(canvas.tokens == self.pad_id, min(ends), canvas.tokens)
