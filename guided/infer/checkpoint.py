"""A running population as plain data, from which a sampler goes on as if it had never stopped.

States of potentials and caches of models are not kept: they are made again from the tokens.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from guided.errors import GuidedError
from guided.infer.chance import Chance, Drawn
from guided.infer.result import Cost

__all__ = ["Checkpoint"]

_FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """A population between two steps, with the state of the generator that draws the next ones."""

    problem: dict[str, Any]
    """What was asked for: a resumed run must ask for the same."""
    step: int
    """Steps done."""
    tokens: tuple[tuple[int, ...], ...]
    logw: tuple[float, ...]
    twists: tuple[float, ...]
    status: tuple[str, ...]
    increments: tuple[tuple[float, ...], ...]
    resampled: tuple[int, ...]
    cost: Cost
    rng: dict[str, Any]
    """The bit generator's state."""

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all."""
        target = Path(path)
        draft = target.with_name(f"{target.name}.{os.getpid()}.part")
        draft.write_text(json.dumps({"format": _FORMAT, **asdict(self)}), encoding="utf-8")
        os.replace(draft, target)

    @classmethod
    def load(cls, path: str | Path) -> Checkpoint:
        """Read what `save` wrote; raises `GuidedError` for anything else."""
        try:
            kept = json.loads(Path(path).read_text(encoding="utf-8"))
            if kept.pop("format") != _FORMAT:
                raise ValueError("another format")
            return cls(
                problem=kept["problem"],
                step=int(kept["step"]),
                tokens=tuple(map(tuple, kept["tokens"])),
                logw=tuple(kept["logw"]),
                twists=tuple(kept["twists"]),
                status=tuple(kept["status"]),
                increments=tuple(map(tuple, kept["increments"])),
                resampled=tuple(kept["resampled"]),
                cost=Cost(**kept["cost"]),
                rng=kept["rng"],
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise GuidedError(
                f"this is not a checkpoint of a population: {error}",
                where=str(path),
                remedy="Pass a file that save= has written.",
            ) from error

    def check(self, problem: dict[str, Any]) -> None:
        """Raise `GuidedError` when a run asks for something else than the one that was saved."""
        for name, value in problem.items():
            if self.problem.get(name) != value:
                raise GuidedError(
                    f"the checkpoint was made with {name}={self.problem.get(name)!r}, not {value!r}",
                    remedy="Resume with the arguments of the run that was saved.",
                )

    def chance(self) -> Chance:
        """The choices that come next."""
        try:
            bits = getattr(np.random, self.rng["bit_generator"])()
            bits.state = _as_arrays(self.rng)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise GuidedError(f"the checkpoint's generator cannot be restored: {error}") from error
        return Drawn(np.random.Generator(bits))


def state_of(chance: Chance) -> dict[str, Any]:
    """The state of the generator behind ``chance``, as plain data; raises `GuidedError` if there is none."""
    if not isinstance(chance, Drawn):
        raise GuidedError("only runs that draw from a NumPy generator can be saved")
    plain: dict[str, Any] = json.loads(json.dumps(chance.rng.bit_generator.state, default=_as_lists))
    return plain


def _as_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{type(value).__name__} in the state of a bit generator")


def _as_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array", "dtype"}:
            return np.array(value["array"], value["dtype"])
        return {key: _as_arrays(part) for key, part in value.items()}
    return value
