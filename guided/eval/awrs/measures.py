"""The measures of a run: accuracy, posterior-weighted accuracy, evidence and cost of each method on each task."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from guided.eval.awrs.methods import MethodName
from guided.eval.awrs.problems import TaskName
from guided.eval.awrs.results import AwrsRecord, Ending

__all__ = ["AwrsMeasures", "measure"]


@dataclass(frozen=True)
class AwrsMeasures:
    """One method on one task, over the problems that were refused for none."""

    task: str
    method: str
    problems: int
    refused: int
    failed: int
    """Out of time, or raised."""
    accuracy: float
    """The mean posterior-weighted accuracy."""
    standard_error: float
    """Of that mean over problems."""
    best: float
    """The share of problems whose likeliest text is right."""
    log_ml: float | None
    """The mean over problems where it is finite; see ``with_evidence``."""
    with_evidence: int
    calls_per_token: float | None
    """Constraint calls for each token, the median over problems."""
    seconds: float | None
    """For a problem, the median."""
    judge: str
    tested_per_token: float | None = None
    """Tokens tested one by one for each token, over all problems; 0 where only masks were filled."""

    @property
    def shown(self) -> str:
        """The method's name for people: weighted rejection is named only where something was tested and rejected."""
        if self.method == MethodName.AWRS.value and self.tested_per_token == 0:
            return "smc, masks"
        return self.method

    def as_record(self) -> dict[str, Any]:
        """The measures as JSON data."""
        return asdict(self)


def measure(records: Sequence[AwrsRecord]) -> list[AwrsMeasures]:
    """The measures of every method on every task, in the order of both."""
    groups: dict[tuple[str, str], list[AwrsRecord]] = defaultdict(list)
    for record in records:
        groups[record.task, record.method].append(record)
    tasks, methods = [task.value for task in TaskName], [method.value for method in MethodName]
    keys = sorted(groups, key=lambda key: (tasks.index(key[0]), methods.index(key[1])))
    return [_measures(task, method, groups[task, method]) for task, method in keys]


def _measures(task: str, method: str, records: Sequence[AwrsRecord]) -> AwrsMeasures:
    counted = [record for record in records if record.ending is not Ending.REFUSED]
    shares = [record.accuracy or 0.0 for record in counted]
    deviation = statistics.stdev(shares) / math.sqrt(len(shares)) if len(shares) > 1 else 0.0
    evidence = [record.log_ml for record in counted if record.log_ml is not None]
    calls = [
        record.constraint_calls / record.tokens
        for record in counted
        if record.constraint_calls is not None and record.tokens
    ]
    tested = [(record.tested, record.tokens) for record in counted if record.tested is not None and record.tokens]
    seconds = [record.seconds for record in counted if record.seconds is not None]
    return AwrsMeasures(
        task=task,
        method=method,
        problems=len(counted),
        refused=len(records) - len(counted),
        failed=sum(record.ending is not Ending.ANSWERED for record in counted),
        accuracy=statistics.fmean(shares) if shares else 0.0,
        standard_error=deviation,
        best=statistics.fmean([float(bool(record.best)) for record in counted]) if counted else 0.0,
        log_ml=statistics.fmean(evidence) if evidence else None,
        with_evidence=len(evidence),
        calls_per_token=statistics.median(calls) if calls else None,
        seconds=statistics.median(seconds) if seconds else None,
        judge=next((record.judge for record in records if record.judge), ""),
        tested_per_token=sum(some for some, _ in tested) / sum(tokens for _, tokens in tested) if tested else None,
    )
