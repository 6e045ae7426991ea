"""All methods on the prompts of their tasks, in batches, resumable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from guided.eval.steering.methods import METHODS
from guided.eval.steering.names import MethodName
from guided.eval.steering.prompts import SteeringPrompt, prompts_for
from guided.eval.steering.results import SteeringLog, SteeringRecord, SteeringSettings, key_of

__all__ = ["BATCH", "Batch", "batches_for", "records_of", "run_here", "tasks_left"]

BATCH = 25
"""Prompts that a model writes on together."""


@dataclass(frozen=True)
class Batch:
    """Prompts of one task, for one method."""

    method: MethodName
    prompts: tuple[SteeringPrompt, ...]


def batches_for(methods: Sequence[MethodName], limit: int | None, settings: SteeringSettings) -> list[Batch]:
    """Every method on the first ``limit`` prompts of its task; which prompts share a batch does not depend on it."""
    found: list[Batch] = []
    for method in methods:
        prompts = prompts_for(METHODS[method].task, limit, settings.split)
        found += [Batch(method, tuple(prompts[start : start + BATCH])) for start in range(0, len(prompts), BATCH)]
    return found


def tasks_left(batches: Sequence[Batch], settings: SteeringSettings, log: SteeringLog) -> list[Batch]:
    """The batches without the prompts whose results are in the file; empty ones left out."""
    found: list[Batch] = []
    for batch in batches:
        prompts = tuple(one for one in batch.prompts if key_of(one, batch.method, settings) not in log.records)
        if prompts:
            found.append(Batch(batch.method, prompts))
    return found


def records_of(batches: Sequence[Batch], settings: SteeringSettings, log: SteeringLog) -> list[SteeringRecord]:
    """The results of exactly these prompts and methods, as far as they are there."""
    found = (log.records.get(key_of(one, batch.method, settings)) for batch in batches for one in batch.prompts)
    return [record for record in found if record is not None]


def run_here(
    batches: Sequence[Batch],
    settings: SteeringSettings,
    log: SteeringLog,
    *,
    on_stage: Callable[[str], None] | None = None,
    on_record: Callable[[SteeringRecord], None] | None = None,
) -> None:
    """Run what is left, batch by batch; the results of a batch are on the disk before the next one begins."""
    left = tasks_left(batches, settings, log)
    if not left:
        return
    from guided.eval.steering.evaluator import SteeringEvaluator

    evaluator = SteeringEvaluator(settings, on_stage=on_stage)
    for batch in left:
        for record in evaluator.evaluate(batch.prompts, batch.method):
            log.append(record)
            if on_record is not None:
                on_record(record)
