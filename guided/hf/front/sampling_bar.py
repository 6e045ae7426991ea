"""A progress bar for a run of a sampler, on standard error and on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from guided.infer.runs.progress import Step
from guided.infer.runs.rounds import Round

__all__ = ["sampling_bar"]


@contextmanager
def sampling_bar(what: str) -> Iterator[Callable[[Step | Round], None] | None]:
    """Yields the ``progress`` of one run; None where nobody would see it.

    Samplers that take steps may end long before the limit of tokens, so for them the bar is of finished sequences.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as progress:
        task = progress.add_task(what, total=None, note="")

        def advance(event: Step | Round) -> None:
            if isinstance(event, Step):
                done, total = event.finished, len(event.tokens)
                note = f"token {event.number}, {done}/{total} finished, ess {event.ess:.1f}"
            else:
                done, total = event.kept, event.wanted
                note = f"round {event.number}, {done}/{total} kept"
            progress.update(task, completed=done, total=total, note=note)

        yield advance
