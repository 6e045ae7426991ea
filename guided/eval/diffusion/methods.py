"""Laws and policies by name: without the grammar and with it, in 1 to 32 steps and by confidence."""

from __future__ import annotations

from dataclasses import dataclass

from guided.diffusion import Denoising, FixedBlocks, LocalDeterminism, LowConfidence, Threshold

__all__ = ["METHODS", "DiffusionMethod"]

STEPS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class DiffusionMethod:
    """One way to decode."""

    name: str
    constrained: bool
    how: Denoising
    steps: int | None = None
    """Where the number of steps is what was asked for."""


def _methods() -> dict[str, DiffusionMethod]:
    ways: list[tuple[str, Denoising, int | None]] = [
        *((f"{steps} steps", Denoising(LowConfidence(steps)), steps) for steps in STEPS),
        ("threshold 0.9", Denoising(Threshold(0.9)), None),
        ("threshold 0.9, blocks of 16", Denoising(Threshold(0.9), FixedBlocks(16)), None),
        ("threshold 0.9, 3 drafts", Denoising(Threshold(0.9), drafts=3), None),
        ("local determinism", Denoising(LocalDeterminism()), None),
    ]
    made = [
        DiffusionMethod(f"{'solved' if constrained else 'free'}, {name}", constrained, how, steps)
        for constrained in (False, True)
        for name, how, steps in ways
    ]
    return {method.name: method for method in made}


METHODS = _methods()
"""All of them, by name."""
