"""The solved grammar against each other decoder on the same texts, at equal steps and at equal passes.

Records of all notations are compared together, each of another text; statements apart, since what is counted is other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from guided.eval.diffusion.methods import METHODS, Decoder, DiffusionMethod
from guided.eval.diffusion.results import DiffusionRecord
from guided.eval.diffusion.tasks import FrontEnd
from guided.eval.steering.measures import Estimate, estimate

__all__ = ["Basis", "Comparison", "Counted", "compare"]


class Counted(Enum):
    """What is right or wrong."""

    FIELDS = "fields of records"
    STATEMENTS = "statements"

    @classmethod
    def of(cls, record: DiffusionRecord) -> Counted:
        """What is counted in a result."""
        return cls.STATEMENTS if record.front_end == FrontEnd.SQL.value else cls.FIELDS


class Basis(Enum):
    """What the two methods have alike."""

    STEPS = "equal steps"
    """The same policy."""
    PASSES = "equal passes"
    """The other has the fewest forward passes that are at least as many; if all have fewer, it is the one with most."""


@dataclass(frozen=True)
class Comparison:
    """A solved method and another over the texts that both have results of."""

    method: str
    other: str
    counted: Counted
    basis: Basis
    tasks: int
    passes: float
    other_passes: float
    difference: Estimate
    """The share that is right, less the other's, text by text: mean and 95 % bootstrap interval."""


def compare(records: Sequence[DiffusionRecord]) -> list[Comparison]:
    """Every solved method against every other decoder, as far as there are results."""
    return [
        one
        for counted in Counted
        for one in _compared_all(counted, [record for record in records if Counted.of(record) is counted])
    ]


def _compared_all(counted: Counted, records: Sequence[DiffusionRecord]) -> list[Comparison]:
    by_method: dict[str, dict[str, DiffusionRecord]] = defaultdict(dict)
    for record in records:
        by_method[record.method][record.id] = record
    ran = [method for method in METHODS.values() if method.name in by_method]
    passes = {method.name: _passes(by_method[method.name]) for method in ran}
    found: list[Comparison] = []
    for own in (method for method in ran if method.decoder is Decoder.SOLVED):
        for decoder in (decoder for decoder in Decoder if decoder is not Decoder.SOLVED):
            others = [method for method in ran if method.decoder is decoder]
            for basis in Basis:
                other = _alike(own, others, passes) if basis is Basis.PASSES else _same_policy(own, others)
                if other is not None:
                    found.append(_compared(own, other, counted, basis, by_method, passes))
    return found


def _passes(records: Mapping[str, DiffusionRecord]) -> float:
    """The mean over the texts that were written."""
    written = [record.passes for record in records.values() if not record.reason]
    return sum(written) / max(1, len(written))


def _same_policy(own: DiffusionMethod, others: Sequence[DiffusionMethod]) -> DiffusionMethod | None:
    alike = (method for method in others if (method.steps, method.way) == (own.steps, own.way))
    return next(alike, None)


def _alike(
    own: DiffusionMethod, others: Sequence[DiffusionMethod], passes: Mapping[str, float]
) -> DiffusionMethod | None:
    enough = [method for method in others if passes[method.name] >= passes[own.name]]
    if enough:
        return min(enough, key=lambda method: passes[method.name])
    return max(others, key=lambda method: passes[method.name], default=None)


def _compared(
    own: DiffusionMethod,
    other: DiffusionMethod,
    counted: Counted,
    basis: Basis,
    by_method: Mapping[str, Mapping[str, DiffusionRecord]],
    passes: Mapping[str, float],
) -> Comparison:
    first, second = by_method[own.name], by_method[other.name]
    both = [task for task in first if task in second]
    more = [first[task].right - second[task].right for task in both]
    return Comparison(
        own.name, other.name, counted, basis, len(both), passes[own.name], passes[other.name], estimate(more or [0.0])
    )
