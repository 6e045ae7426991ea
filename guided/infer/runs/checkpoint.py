"""A running population as plain data, from which a sampler goes on as if it had never stopped.

States of potentials and caches of models are not kept: they are made again from the tokens.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from guided.errors import GuidedError
from guided.infer.chance import Chance, Drawn
from guided.infer.distribution import TokenDistribution
from guided.infer.potentials.potential import Potential
from guided.infer.result import Cost
from guided.infer.runs.content import content_of

__all__ = ["SHOWN", "Checkpoint", "answers", "said", "state_of"]

_FORMAT = 2

_NEVER = -math.inf

SHOWN = 16
"""Prefixes whose scores and answers are kept to know the model and potentials by."""

_LIKELIEST = 8
"""Tokens of each of them."""

_SAME = 1e-3
"""Log probabilities after a prompt, which is read in the same way each time, differ by less where the model is the
same: float32 on another device is off by 1e-5."""

_CLOSE = 0.05
"""Total variation of a model from itself where prefixes are read in batches of other shapes, in bfloat16 too: logits of
magnitude 16 are rounded to 0.125 there."""


@dataclass(frozen=True)
class Checkpoint:
    """A population between two steps, with the state of the generator that draws the next ones.

    >>> import tempfile, os
    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> path = os.path.join(tempfile.mkdtemp(), "run.json")
    >>> whole = infer.smc(0, model, [0], language, n=4, max_tokens=4, save=path)
    >>> kept = infer.Checkpoint.load(path)
    >>> kept.step, kept.tokens
    (3, ((0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1, 2)))
    >>> infer.smc(0, model, [0], language, n=4, max_tokens=4, resume=kept).particles == whole.particles
    True
    """

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
    seen: dict[str, Any] = field(default_factory=dict)
    """What the models and potentials said, by which they are known again: see `said` and `answers`."""
    founders: tuple[int, ...] = ()
    """Which particle of the first population each one comes from."""

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
                seen=kept["seen"],
                founders=tuple(kept["founders"]),
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

    def recognise(self, name: str, now: Sequence[Any]) -> None:
        """Raise `GuidedError` when a model (`said`) or potential (`answers`) says something else than it did."""
        then = self.seen.get(name, [])
        alike = len(then) == len(now)
        for number, (old, new) in enumerate(zip(then, now, strict=False)):
            if isinstance(old, dict):
                alike = alike and _same_scores(old, new, number == 0)
            else:
                alike = alike and all(a == b or abs(a - b) <= _SAME for a, b in zip(old, new, strict=True))
        if not alike:
            raise GuidedError(
                f"the checkpoint was made with another {name}: it said something else after the same tokens",
                remedy="Resume with the arguments of the run that was saved.",
            )

    def chance(self) -> Chance:
        """The choices that come next.  Raises `GuidedError` where the generator's state cannot be restored."""
        try:
            bits = getattr(np.random, self.rng["bit_generator"])()
            bits.state = _as_arrays(self.rng)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise GuidedError(f"the checkpoint's generator cannot be restored: {error}") from error
        return Drawn(np.random.Generator(bits))


def said(distributions: Sequence[TokenDistribution]) -> list[dict[str, list[Any]]]:
    """The likeliest tokens of distributions, the first of them that of the prompt, as plain data."""
    found = []
    for distribution in distributions:
        logprobs = distribution.logprobs
        k = min(_LIKELIEST, logprobs.size)
        ids = np.sort(np.argpartition(-logprobs, k - 1)[:k])
        found.append({"ids": ids.tolist(), "logprobs": logprobs[ids].tolist()})
    return found


def answers(potential: Potential[Any], states: Sequence[Any]) -> list[list[float]]:
    """What a potential weighs prefixes and texts, as plain data; nothing where its content is known."""
    if content_of(potential) is not None:
        return []
    prefixes, texts = potential.prefix_each(states), potential.complete_each(states)
    return [[float(prefix), float(text)] for prefix, text in zip(prefixes, texts, strict=True)]


def _same_scores(before: dict[str, list[Any]], now: dict[str, list[Any]], exactly: bool) -> bool:
    old = dict(zip(before["ids"], before["logprobs"], strict=True))
    new = dict(zip(now["ids"], now["logprobs"], strict=True))
    if not exactly:
        return sum(abs(math.exp(old.get(t, _NEVER)) - math.exp(new.get(t, _NEVER))) for t in {*old, *new}) / 2 <= _CLOSE
    both = [token for token in old if token in new]
    # Tokens that tie for the last place may take turns.
    return len(both) >= len(old) - 1 and all(old[t] == new[t] or abs(old[t] - new[t]) <= _SAME for t in both)


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
