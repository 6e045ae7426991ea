"""Quality and cost of each method on each task and mode, and its difference to greedy search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from guided.eval.decoding_methods.comparing import holm, sign_flip_test
from guided.eval.decoding_methods.methods import METHODS
from guided.eval.decoding_methods.names import MethodName, Mode, TaskName
from guided.eval.decoding_methods.results import DecodingRecord, Ending
from guided.eval.steering.measures import Estimate, estimate

__all__ = ["LEVEL", "DecodingMeasures", "measure"]

LEVEL = 0.05
"""Of all comparisons of a run together."""


@dataclass(frozen=True)
class DecodingMeasures:
    """One method on one task in one mode; means over items, with 95 % bootstrap intervals."""

    task: str
    mode: str
    method: str
    settings: str
    items: int
    not_written: int
    reason: str = ""
    """Why the first of those was not."""
    quality: Estimate | None = None
    difference: Estimate | None = None
    """To greedy search on the same items; None for greedy search itself, and where it was not run."""
    p: float | None = None
    """Of the difference, by `sign_flip_test`."""
    adjusted_p: float | None = None
    """By `holm`, over all differences of the run."""
    finished: float = 0.0
    tokens: float = 0.0
    """Of a text."""
    passes: Estimate | None = None
    """Of the model, a token."""
    small_passes: float = 0.0
    """Of the small model, a token."""
    positions: float = 0.0
    """Tokens that the model read for each that it wrote, the prompt included."""
    ms: Estimate | None = None
    """Milliseconds a token."""

    @property
    def differs(self) -> bool:
        """Whether the difference stands after the correction."""
        return self.adjusted_p is not None and self.adjusted_p < LEVEL

    def as_record(self) -> dict[str, Any]:
        """The measures as JSON data."""
        return asdict(self)


def measure(records: Sequence[DecodingRecord]) -> list[DecodingMeasures]:
    """The measures of every task, mode and method of which there are results, in their order."""
    groups: dict[tuple[str, str, str], list[DecodingRecord]] = defaultdict(list)
    for record in records:
        groups[record.task, record.mode, record.method].append(record)
    found = [
        _measures(groups[key], groups.get((*key[:2], MethodName.GREEDY.value), []))
        for task in TaskName
        for mode in Mode
        for name in MethodName
        if (key := (task.value, mode.value, name.value)) in groups
    ]
    tested = [place for place, one in enumerate(found) if one.p is not None]
    adjusted = holm([found[place].p or 0.0 for place in tested])
    for place, value in zip(tested, adjusted, strict=True):
        found[place] = replace(found[place], adjusted_p=value)
    return found


def _measures(records: Sequence[DecodingRecord], greedy: Sequence[DecodingRecord]) -> DecodingMeasures:
    first = records[0]
    counted = [record for record in records if record.ending is not Ending.REFUSED]
    others = [record for record in records if record.ending is not Ending.WRITTEN]
    known = DecodingMeasures(
        first.task, first.mode, first.method, METHODS[MethodName(first.method)].settings, len(counted), len(others),
        others[0].reason if others else "",
    )  # fmt: skip
    if not counted:
        return known
    written = [record for record in counted if record.tokens]

    def a_token(value: Callable[[DecodingRecord], float]) -> float:
        return sum(map(value, written)) / max(1, sum(record.tokens for record in written))

    made = replace(
        known,
        quality=estimate([record.quality for record in counted]),
        finished=sum(record.finished for record in counted) / len(counted),
        tokens=sum(record.tokens for record in written) / max(1, len(written)),
        passes=estimate([record.passes / record.tokens for record in written]) if written else None,
        small_passes=a_token(lambda record: record.small_passes),
        positions=a_token(lambda record: record.positions),
        ms=estimate([1000 * record.seconds / record.tokens for record in written]) if written else None,
    )
    base = {record.id: record.quality for record in greedy if record.ending is not Ending.REFUSED}
    differences = [record.quality - base[record.id] for record in counted if record.id in base]
    if first.method == MethodName.GREEDY.value or not differences:
        return made
    return replace(made, difference=estimate(differences), p=sign_flip_test(differences))
