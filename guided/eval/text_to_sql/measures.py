"""The measures of a run: coverage of gold queries and speed, executable answers and right ones."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from guided.eval.text_to_sql.results import SqlMethod, SqlOutcome, SqlRecord

__all__ = ["SqlMeasures", "measure"]


@dataclass(frozen=True)
class SqlMeasures:
    """One method over all questions that were not refused; shares are None where nothing was counted."""

    method: str
    questions: int
    refused: int
    failed: int
    gold_runs: float | None = None
    covered: float | None = None
    """Of the gold queries that run, those in the language."""
    covered_any: float | None = None
    """The same, where any accepted query counts."""
    executable: float | None = None
    judged: int = 0
    """Questions whose database holds rows."""
    match: float | None = None
    """Of those."""
    holds: float | None = None
    seconds: float | None = None
    """Of an answer, the median."""
    compile_s: float | None = None
    """The median over databases."""
    first_mask_ms: float | None = None
    """The median."""
    mask_p50_us: float | None = None
    mask_p99_us: float | None = None

    def as_record(self) -> dict[str, Any]:
        """The measures as JSON data."""
        return asdict(self)


def measure(records: Sequence[SqlRecord]) -> list[SqlMeasures]:
    """The measures of every method, in the methods' order."""
    groups: dict[str, list[SqlRecord]] = defaultdict(list)
    for record in records:
        groups[record.method].append(record)
    return [_measures(method.value, groups[method.value]) for method in SqlMethod if groups[method.value]]


def _measures(method: str, records: list[SqlRecord]) -> SqlMeasures:
    done = [record for record in records if record.outcome is SqlOutcome.DONE]
    asked = [record for record in records if record.outcome is not SqlOutcome.REFUSED]
    common: dict[str, Any] = {
        "method": method,
        "questions": len(asked),
        "refused": len(records) - len(asked),
        "failed": len(asked) - len(done),
    }
    if method == SqlMethod.GOLD.value:
        running = [record for record in done if record.gold_runs]
        masks = sorted(us for record in done for us in record.mask_us)
        return SqlMeasures(
            **common,
            gold_runs=_share(done, lambda record: record.gold_runs),
            covered=_share(running, lambda record: record.gold_covered),
            covered_any=_share(running, lambda record: record.gold_covered_any),
            compile_s=_median([record.compile_s for record in done]),
            first_mask_ms=_median([record.first_mask_ms for record in done]),
            mask_p50_us=_quantile(masks, 0.5),
            mask_p99_us=_quantile(masks, 0.99),
        )
    judged = [record for record in asked if record.match is not None or record.outcome is SqlOutcome.FAILED]
    return SqlMeasures(
        **common,
        executable=_share(asked, lambda record: record.executable),
        judged=len(judged),
        match=_share(judged, lambda record: record.match),
        holds=_share(judged, lambda record: record.holds),
        seconds=_median([record.seconds for record in done]),
    )


def _share(records: Sequence[SqlRecord], holds: Callable[[SqlRecord], bool | None]) -> float | None:
    return sum(bool(holds(record)) for record in records) / len(records) if records else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _quantile(ordered: Sequence[int], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else None
