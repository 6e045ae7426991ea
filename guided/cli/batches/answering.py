"""The lines of a batch answered: a few at a time in this process, each line written when it is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import typer

from guided.cli.batches.lines import BatchItem, BatchOutput
from guided.cli.output import print_note
from guided.cli.progress import counting
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.cli.methods.options import Decoding, ModelOptions

__all__ = ["Answer", "Answers", "Job", "answer_here", "end_batch", "write_answer"]


@dataclass(frozen=True)
class Answer:
    """What a line says of its item."""

    record: dict[str, Any]
    raw: dict[str, str] = field(default_factory=dict)
    """Members that are JSON texts already, written as they are."""


class Answers(Protocol):
    """A loaded model that answers texts."""

    def answers(self, texts: Sequence[str]) -> list[Answer | GuidedError]:
        """An answer to each text, or what is wrong with it."""
        ...


class Job(Protocol):
    """What the command line asks for; can be pickled, so that it can begin on another machine."""

    @property
    def running(self) -> ModelOptions:
        """The model, and where it runs."""
        ...

    @property
    def how(self) -> Decoding:
        """How it chooses tokens."""
        ...

    def begin(self, *, quiet: bool) -> Answers:
        """Load the model and compile; raises `GuidedError` where that fails."""
        ...


def answer_here(
    work: Answers, items: Iterator[BatchItem], output: BatchOutput, *, size: int, what: str, quiet: bool
) -> int:
    """Write a line for each item that has none, in order, ``size`` at a time; how many items there are."""
    n_items = 0
    with counting(what, quiet=quiet) as advance:
        while chunk := list(islice(items, size)):
            new = [item for number, item in enumerate(chunk, n_items) if not output.has(number, item)]
            made = iter(work.answers([item.text for item in new if item.fault is None]))
            for item in new:
                write_answer(output, item, next(made) if item.fault is None else item.fault)
            n_items += len(chunk)
            advance(len(chunk))
    return n_items


def write_answer(output: BatchOutput, item: BatchItem, answer: Answer | GuidedError) -> None:
    """The line of an item."""
    from guided.cli.exits import describe

    if isinstance(answer, GuidedError):
        output.write({"id": item.id, "error": describe(answer)})
    else:
        output.write({"id": item.id, **answer.record}, **answer.raw)


def end_batch(output: BatchOutput, n_items: int, what: str, *, quiet: bool) -> None:
    """End with exit code 1 where lines hold errors."""
    if output.n_failed:
        if not quiet:
            print_note(f"{output.n_failed} of {n_items} {what} failed; their lines hold an error")
        raise typer.Exit(1)
