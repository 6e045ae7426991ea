"""The lines of a batch answered by the workers of a Ray cluster, and written in their order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from guided import errors
from guided.cli.batches.answering import Answer, Job, write_answer
from guided.cli.batches.lines import BatchItem, BatchOutput
from guided.cli.output import print_note
from guided.cli.progress import counting
from guided.errors import GuidedError
from guided.serving.ray.mapping import Worker, map_on_ray

__all__ = ["answer_on_ray"]


class _Worker(Worker):
    """Answers a few texts at a time; ``told`` is the job."""

    def load(self) -> Any:
        return self.told.begin(quiet=True)

    def answer(self, loaded: Any, task: dict[str, Any]) -> str:
        import torch

        job: Job = self.told
        # What is drawn for some items does not depend on the worker that has them.
        torch.manual_seed(job.how.seed + task["first"])
        return json.dumps({"first": task["first"], "answers": [_told(each) for each in loaded.answers(task["texts"])]})


def answer_on_ray(
    job: Job,
    items: Iterator[BatchItem],
    output: BatchOutput,
    *,
    workers: int,
    size: int,
    what: str,
    quiet: bool,
) -> int:
    """Write a line for each item that has none, in order, once those before it are known; how many items there are.

    ``size`` items at a time go to one of ``workers`` workers.  All items are read before the first is answered.
    Raises `GuidedError` as `guided.serving.ray.mapping.map_on_ray` does.
    """
    given = list(items)
    left = [item for number, item in enumerate(given) if not output.has(number, item)]
    chunks = {first: left[first : first + size] for first in range(0, len(left), size)}
    texts = {first: [item.text for item in chunk if item.fault is None] for first, chunk in chunks.items()}
    found: dict[int, list[Answer | GuidedError]] = {first: [] for first, some in texts.items() if not some}
    waiting = iter(chunks)
    following = next(waiting, None)
    with counting(what, len(left), quiet=quiet) as advance:

        def write_known() -> None:
            nonlocal following
            while following in found:
                made = iter(found.pop(following))
                for item in chunks[following]:
                    write_answer(output, item, next(made) if item.fault is None else item.fault)
                advance(len(chunks[following]))
                following = next(waiting, None)

        def keep(line: str) -> None:
            record = json.loads(line)
            found[record["first"]] = [_heard(each) for each in record["answers"]]
            write_known()

        write_known()
        map_on_ray(
            _Worker,
            job,
            [{"first": first, "texts": some} for first, some in texts.items() if some],
            workers=workers,
            model=job.running.model,
            device=job.running.device,
            on_line=keep,
            on_stage=None if quiet else print_note,
        )
    return len(given)


def _told(answer: Answer | GuidedError) -> dict[str, Any]:
    """An answer as JSON data; of an error, how it is made again."""
    if isinstance(answer, GuidedError):
        return {"error": type(answer).__name__, "what": answer.what, "where": answer.where, "remedy": answer.remedy}
    return {"record": answer.record, "raw": answer.raw}


def _heard(told: dict[str, Any]) -> Answer | GuidedError:
    if "error" in told:
        kind: type[GuidedError] = getattr(errors, told["error"], GuidedError)
        return kind(told["what"], where=told["where"], remedy=told["remedy"])
    return Answer(told["record"], told["raw"])
