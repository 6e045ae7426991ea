"""Laws and policies by name: without the grammar, with it and as published, in 1 to 32 steps and by confidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from guided.diffusion import Denoising, FixedBlocks, Law, LocalDeterminism, LowConfidence, Threshold
from guided.diffusion.baselines import Intersection, JointCommits, Lookahead

__all__ = ["METHODS", "Decoder", "DiffusionMethod"]

STEPS = (1, 2, 4, 8, 16, 32)


class Decoder(Enum):
    """What becomes of the grammar."""

    FREE = "free"
    SOLVED = "solved"
    INTERSECTION = "intersection"
    """Mündler et al. 2025, a text that was given up completed from the intersection."""
    GIVEN_UP = "intersection, not completed"
    JOINT = "joint commits"
    """EPIC."""
    LOOKAHEAD = "lookahead"
    """LAVE."""

    @property
    def law(self) -> Callable[..., Law] | None:
        """What makes the published decoders' law of a constraint and a padding id."""
        return _LAWS.get(self)


def _given_up(constraint: Any, pad_id: int | None) -> Law:
    return Intersection(constraint, pad_id, completes=False)


_LAWS: dict[Decoder, Callable[..., Law]] = {
    Decoder.INTERSECTION: Intersection,
    Decoder.GIVEN_UP: _given_up,
    Decoder.JOINT: JointCommits,
    Decoder.LOOKAHEAD: Lookahead,
}


@dataclass(frozen=True)
class DiffusionMethod:
    """One way to decode."""

    name: str
    decoder: Decoder
    how: Denoising
    steps: int | None = None
    """Where the number of steps is what was asked for."""

    @property
    def way(self) -> str:
        """The name without the decoder's."""
        return self.name.removeprefix(f"{self.decoder.value}, ")


def _methods() -> dict[str, DiffusionMethod]:
    ways: list[tuple[str, Denoising, int | None]] = [
        *((f"{steps} steps", Denoising(LowConfidence(steps)), steps) for steps in STEPS),
        ("threshold 0.9", Denoising(Threshold(0.9)), None),
        ("threshold 0.9, blocks of 16", Denoising(Threshold(0.9), FixedBlocks(16)), None),
        ("threshold 0.9, 3 drafts", Denoising(Threshold(0.9), drafts=3), None),
        ("local determinism", Denoising(LocalDeterminism()), None),
    ]
    made = [
        DiffusionMethod(f"{decoder.value}, {name}", decoder, how, steps)
        for decoder in (Decoder.FREE, Decoder.SOLVED)
        for name, how, steps in ways
    ]
    for decoder, at in ((Decoder.INTERSECTION, STEPS), (Decoder.GIVEN_UP, (32,)), (Decoder.JOINT, STEPS)):
        made += [
            DiffusionMethod(f"{decoder.value}, {steps} steps", decoder, Denoising(LowConfidence(steps)), steps)
            for steps in at
        ]
    made += [
        # Published with blocks of 32: four of them in a canvas of 128.
        DiffusionMethod(
            f"{Decoder.LOOKAHEAD.value}, {steps} steps",
            Decoder.LOOKAHEAD,
            Denoising(LowConfidence(steps // 4), FixedBlocks(32)),
            steps,
        )
        for steps in STEPS
        if steps >= 4
    ]
    return {method.name: method for method in made}


METHODS = _methods()
"""All of them, by name."""
