"""The measures of the benchmark, from its records.

After Geng et al., *Generating Structured Outputs from Language Models: Benchmark and Studies*, 2025 (arXiv:2501.10868)

- **declared coverage**: the share of schemas that the engine takes without refusing them, raising, or running out of
  time to compile;
- **empirical coverage**: the share of schemas whose output ended and is valid against the schema;
- **compliance rate**: empirical coverage divided by declared coverage;
- **grammar compilation time** (GCT), **time to first token** (TTFT, compilation included, as in the authors' code) and
  **time per output token** (TPOT, the mean over the tokens after the first).

Times are compared on the schemas that every engine of the run answered validly, as the paper does, because an engine
that fails the hard schemas would look fast otherwise.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from guided.eval.engines.names import EngineName
from guided.eval.records import Outcome, Record

__all__ = ["ALL_SPLITS", "Measures", "Spread", "measure"]

ALL_SPLITS = "all"
_NOT_DECLARED = {Outcome.REFUSED, Outcome.COMPILE_TIME, Outcome.CRASHED}
_TIMES = ("gct_s", "ttft_s", "tpot_ms", "mask_ms")


@dataclass(frozen=True)
class Spread:
    """How values are spread: nearest-rank percentiles, and the mean."""

    n: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """The spread of some values, None of none.

        >>> Spread.of([1.0, 2.0, 3.0, 10.0])
        Spread(n=4, mean=4.0, p50=2.0, p90=10.0, p99=10.0, max=10.0)
        """
        if not values:
            return None
        ordered = sorted(values)
        p50, p90, p99 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.9, 0.99))
        return cls(len(ordered), sum(ordered) / len(ordered), p50, p90, p99, ordered[-1])


@dataclass(frozen=True)
class Measures:
    """One engine on one split."""

    engine: str
    split: str
    """A split's name, or `ALL_SPLITS`."""
    schemas: int
    """Those that count: all but the skipped."""
    skipped: int
    declared: float | None
    """None without an engine, which declares nothing."""
    empirical: float | None
    compliance: float | None
    outcomes: dict[str, int]
    times: dict[str, Spread | None]
    """``gct_s``, ``ttft_s``, ``tpot_ms`` and ``mask_ms``, on the schemas that all engines answered validly."""

    def as_record(self) -> dict[str, Any]:
        """The measures as JSON data."""
        times = {name: None if spread is None else vars(spread) for name, spread in self.times.items()}
        return {**vars(self), "times": times}


def measure(records: Iterable[Record]) -> list[Measures]:
    """The measures of every engine on every split and on all, engine by engine, splits sorted, all of them last."""
    records = list(records)
    comparable = _answered_by_all(records)
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.engine, record.split].append(record)
        groups[record.engine, ALL_SPLITS].append(record)
    order = [name.value for name in EngineName]
    keys = sorted(groups, key=lambda key: (order.index(key[0]), key[1] == ALL_SPLITS, key[1]))
    return [_measures(engine, split, groups[engine, split], comparable) for engine, split in keys]


def _answered_by_all(records: Sequence[Record]) -> set[tuple[str, str]]:
    """Schemas with a valid output of every engine; the model by itself is not asked for, but for being there alone."""
    engines = {record.engine for record in records}
    needed = engines - {EngineName.NONE.value} or engines
    valid: dict[tuple[str, str], set[str]] = defaultdict(set)
    for record in records:
        if record.outcome is Outcome.VALID:
            valid[record.split, record.id].add(record.engine)
    return {schema for schema, by in valid.items() if needed <= by}


def _measures(engine: str, split: str, records: Sequence[Record], comparable: set[tuple[str, str]]) -> Measures:
    outcomes = Counter(record.outcome for record in records)
    counted = len(records) - outcomes[Outcome.SKIPPED]
    n_declared = counted - sum(outcomes[outcome] for outcome in _NOT_DECLARED)
    declares = engine != EngineName.NONE.value
    times: dict[str, Spread | None] = {}
    for name in _TIMES:
        values = [getattr(record, name) for record in records if (record.split, record.id) in comparable]
        times[name] = Spread.of([value for value in values if value is not None])
    return Measures(
        engine=engine,
        split=split,
        schemas=counted,
        skipped=outcomes[Outcome.SKIPPED],
        declared=n_declared / counted if counted and declares else None,
        empirical=outcomes[Outcome.VALID] / counted if counted else None,
        compliance=outcomes[Outcome.VALID] / n_declared if n_declared and declares else None,
        outcomes={outcome.value: outcomes[outcome] for outcome in Outcome if outcomes[outcome]},
        times=times,
    )
