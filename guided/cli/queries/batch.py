"""Many questions about one database: a line of answers for each, in order; a run that was stopped goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from guided.cli.batch import BatchItem, BatchOutput
from guided.cli.output import print_note
from guided.cli.progress import counting
from guided.cli.queries.answers import plan_of, rows_of, run_statement
from guided.cli.queries.asking import Asking
from guided.errors import GuidedError

__all__ = ["answer_batch"]


def answer_batch(asking: Asking, items: Iterator[BatchItem], *, quiet: bool) -> None:
    """Write one line for each question that has none; ends with exit code 1 where lines hold errors."""
    from guided.cli.exits import describe

    output_path = None if asking.answer.output is None else str(asking.answer.output)
    n_items = 0
    with (
        BatchOutput(output_path, asking.many.resume, option="--output") as output,
        counting("answering", quiet=quiet) as advance,
    ):
        for item in items:
            if not output.has(n_items, item):
                try:
                    output.write({"id": item.id, **_answered(asking, item)})
                except GuidedError as error:
                    output.write({"id": item.id, "error": describe(error)})
            n_items += 1
            advance(1)
    if output.n_failed:
        if not quiet:
            print_note(f"{output.n_failed} of {n_items} questions failed; their lines hold an error")
        raise typer.Exit(1)


def _answered(asking: Asking, item: BatchItem) -> dict[str, Any]:
    from guided.cli.exits import describe

    if item.fault is not None:
        raise item.fault
    asking = asking.about(item.text)
    made = asking.write(*asking.prompt(item.text), quiet=True)
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
