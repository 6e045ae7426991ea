"""Many questions about one database: a line of answers for each, in order; a run that was stopped goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from guided.cli.batches.answering import Answer, answer_here, end_batch
from guided.cli.batches.lines import BatchItem, BatchOutput
from guided.cli.batches.place import RayOptions
from guided.cli.queries.answers import plan_of, rows_of, run_statement
from guided.cli.queries.asking import Asking, AskingJob
from guided.errors import GuidedError

__all__ = ["Answering", "AnsweringJob", "answer_batch"]

AT_A_TIME = 1
"""Questions: each may have a language and a budget of its own."""


class AnsweringJob(AskingJob):
    """As `AskingJob`, for the lines of a batch."""

    def begin(self, *, quiet: bool) -> Answering:
        """Reflect the database, load the model and compile the language for it."""
        return Answering(self.asking(quiet=quiet))


class Answering:
    """Writes statements and runs them, for the lines of a batch."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking

    def answers(self, texts: Sequence[str]) -> list[Answer | GuidedError]:
        """The lines of a few questions."""
        return [self._answer(text) for text in texts]

    def _answer(self, text: str) -> Answer | GuidedError:
        try:
            return Answer(_answered(self.asking, text))
        except GuidedError as error:
            return error


def answer_batch(
    job: AnsweringJob, begun: Asking | None, items: Iterator[BatchItem], place: RayOptions, *, quiet: bool
) -> None:
    """Write one line for each question that has none, here where the model is loaded (``begun``), else on Ray.

    Ends with exit code 1 where lines hold errors.
    """
    from guided.cli.batches.on_ray import answer_on_ray

    path = None if job.answer.output is None else str(job.answer.output)
    with BatchOutput(path, job.many.resume, option="--output") as output:
        if begun is None:
            n_items = answer_on_ray(
                job, items, output, workers=place.workers, size=AT_A_TIME, what="answering", quiet=quiet
            )
        else:
            n_items = answer_here(Answering(begun), items, output, size=AT_A_TIME, what="answering", quiet=quiet)
    end_batch(output, n_items, "questions", quiet=quiet)


def _answered(asking: Asking, text: str) -> dict[str, Any]:
    from guided.cli.exits import describe

    asking = asking.about(text)
    made = asking.write(*asking.prompt(text), quiet=True)
    record: dict[str, Any] = {"sql": made.text, **made.facts}
    try:
        if asking.answer.explain_plan:
            record["plan"] = plan_of(asking.query.db, made.text)
        if not asking.answer.no_run:
            record |= rows_of(run_statement(asking.query.db, made.text, asking.answer))
    except GuidedError as error:
        # The statement is kept beside what is wrong with it.
        record["error"] = describe(error)
    return record
