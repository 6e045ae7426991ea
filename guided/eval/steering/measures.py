"""Base against steered, method by method: paired differences over prompts with bootstrap intervals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.eval.steering.judges import JUDGES
from guided.eval.steering.methods import METHODS
from guided.eval.steering.names import MethodName
from guided.eval.steering.prompts import TaskName
from guided.eval.steering.results import Ending, SteeringRecord

__all__ = ["Estimate", "SteeringMeasures", "Verdict", "estimate", "measure"]

RESAMPLES = 4000
LEVEL = 0.95
SEED = 0


class Verdict:
    """What an interval says about a method on its measure."""

    MOVES = "moves"
    """The whole interval of the difference lies on the side that the method is for."""
    UNCLEAR = "unclear"
    """It contains 0."""
    WORSE = "worse"
    """It lies on the other side."""
    NONE = "not run"


@dataclass(frozen=True)
class Estimate:
    """A mean over prompts with a 95 % interval."""

    mean: float
    low: float
    high: float


def estimate(values: Sequence[float]) -> Estimate:
    """The mean and its percentile bootstrap interval (Efron 1979): 4,000 resamples of the prompts, always the same.

    >>> estimate([1.0, 1.0, 1.0])
    Estimate(mean=1.0, low=1.0, high=1.0)
    """
    found: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(SEED).integers(0, len(found), size=(RESAMPLES, len(found)))
    low, high = np.quantile(found[drawn].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(found.mean()), float(low), float(high))


@dataclass(frozen=True)
class SteeringMeasures:
    """One method on its task."""

    method: str
    task: str
    strength: str
    measure: str
    higher: bool
    """Whether more is what the method is for."""
    prompts: int
    not_written: int
    reason: str = ""
    """Why the first of those was not."""
    base: Estimate | None = None
    steered: Estimate | None = None
    difference: Estimate | None = None
    """Steered less base, prompt by prompt."""
    base_perplexity: float | None = None
    """Of the texts under the model as it is: e to the mean over prompts of the mean surprise of their tokens."""
    steered_perplexity: float | None = None
    aside: dict[str, list[float]] = field(default_factory=dict)
    """Means of other measures, base and steered."""
    verdict: str = Verdict.NONE

    def as_record(self) -> dict[str, Any]:
        """The measures as JSON data."""
        return asdict(self)


def measure(records: Sequence[SteeringRecord]) -> list[SteeringMeasures]:
    """The measures of every method of which there are results, in their order."""
    groups: dict[str, list[SteeringRecord]] = defaultdict(list)
    for record in records:
        groups[record.method].append(record)
    return [_measures(name, groups[name.value]) for name in MethodName if name.value in groups]


def _measures(name: MethodName, records: Sequence[SteeringRecord]) -> SteeringMeasures:
    how = METHODS[name]
    judge = JUDGES[TaskName(how.task)]
    written = [record for record in records if record.ending is Ending.WRITTEN]
    others = [record for record in records if record.ending is not Ending.WRITTEN]
    higher = judge.higher and not how.measure
    known: dict[str, Any] = {
        "method": name.value,
        "task": how.task.value,
        "strength": how.strength,
        "measure": how.measure or judge.name,
        "higher": higher,
        "prompts": len(written),
        "not_written": len(others),
        "reason": others[0].reason if others else "",
    }
    if not written:
        return SteeringMeasures(**known)
    base = [record.base or 0.0 for record in written]
    steered = [record.steered or 0.0 for record in written]
    difference = estimate([after - before for before, after in zip(base, steered, strict=True)])
    perplexities = [
        math.exp(sum(values) / len(values))
        for values in (
            [record.base_surprise or 0.0 for record in written],
            [record.steered_surprise or 0.0 for record in written],
        )
    ]
    aside = {
        key: [sum(record.aside[key][side] for record in written) / len(written) for side in (0, 1)]
        for key in written[0].aside
    }
    return SteeringMeasures(
        **known,
        base=estimate(base),
        steered=estimate(steered),
        difference=difference,
        base_perplexity=perplexities[0],
        steered_perplexity=perplexities[1],
        aside=aside,
        verdict=_verdict(difference, higher),
    )


def _verdict(difference: Estimate, higher: bool) -> str:
    low, high = (difference.low, difference.high) if higher else (-difference.high, -difference.low)
    return Verdict.MOVES if low > 0 else Verdict.WORSE if high < 0 else Verdict.UNCLEAR
