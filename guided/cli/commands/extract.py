"""`guided extract`: a text and a JSON Schema to JSON that validates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

import typer

from guided.cli.batches.answering import answer_here, end_batch
from guided.cli.batches.lines import BatchItem, BatchOutput, read_batch
from guided.cli.batches.place import RayOptions, check_ray
from guided.cli.batches.table_output import TableOutput, TablePlan
from guided.cli.batches.tables import table_format
from guided.cli.extraction import Extraction, ExtractionJob, ReadingOptions
from guided.cli.inputs import STDIN, read_text
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import (
    AsJson,
    MaxNewTokens,
    ModelOptions,
    SamplingOptions,
    decoding,
)
from guided.cli.methods.writing import compares_texts
from guided.cli.output import print_json, print_note, print_text
from guided.errors import GuidedError

__all__ = ["extract"]

_BATCH = "Batches"

TEXT = "text"
"""The default of --column."""


@dataclass(frozen=True)
class BatchOptions:
    """Whether the file is a batch, and where its lines go, as the command line says it."""

    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help='FILE is JSON Lines (strings, or {"id": .., "text": ".."}) or a table (.csv, .tsv, .arrow, .parquet). '
            "The output is JSON Lines, in order and as it comes. What is wrong with a line is that line's error.",
            rich_help_panel=_BATCH,
        ),
    ] = False
    column: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The column, or member of lines, that holds the texts.", rich_help_panel=_BATCH
        ),
    ] = TEXT
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where a batch's lines go, to be gone on with; a table where FILE ends as one: the columns of a table"
            " that was read, and one for each member of the schema.",
            rich_help_panel=_BATCH,
        ),
    ] = None
    into: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Write the JSON to one column of this name (and NAME_error), instead of a column for each member.",
            rich_help_panel=_BATCH,
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what --out FILE has already.", rich_help_panel=_BATCH)
    ] = False
    batch_size: Annotated[
        int, typer.Option(min=1, metavar="N", help="Texts of a batch at a time.", rich_help_panel=_BATCH)
    ] = 8


@with_option_blocks
def extract(
    schema: Annotated[
        str,
        typer.Option(
            "--schema",
            "-s",
            metavar="FILE",
            help="The JSON Schema, a .proto or .ts file or an OpenAPI document (.yaml); - reads a pipe.",
        ),
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The text; - or nothing reads standard input.")] = STDIN,
    lines: BatchOptions = BatchOptions(),
    place: RayOptions = RayOptions(),  # noqa: B008 - frozen
    reading: ReadingOptions = ReadingOptions(),  # noqa: B008 - frozen
    max_new_tokens: MaxNewTokens = None,
    running: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    sampling: SamplingOptions = SamplingOptions(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Extract a record from a text as JSON that is valid against a schema.

    The model can write nothing else: every token that the schema forbids is masked, and the output ends in time.

    **Examples:**

        guided extract --schema person.json letter.txt
        echo "Ada Lovelace, born 1815" | guided extract --schema person.json
        guided extract -s person.json --batch letters.jsonl > people.jsonl
        guided extract -s person.json --batch letters.jsonl --out people.jsonl --resume
        guided extract -s person.json --batch letters.csv --column letter --out people.csv
        guided extract -s person.json --batch letters.jsonl --out people.parquet --into person
        guided extract -s person.json --batch letters.jsonl --out people.jsonl --ray --workers 8
        guided extract -s person.json --model Qwen/Qwen2.5-0.5B-Instruct --draft auto letter.txt
        guided extract -s person.json --sampler smc --particles 16 --json letter.txt
        guided extract -s person.json --must-include "Oslo|Bergen" letter.txt
    """
    from guided.cli.methods.sampling import check_sampling

    check_sampling(sampling, running, may_fill=True)
    _check_batch(lines, sampling)
    check_ray(place, is_batch=lines.batch)
    if schema == STDIN and file == STDIN:
        raise GuidedError("both the schema and the text are to be read from standard input", remedy="Name a file.")
    how = decoding(max_new_tokens, running)
    job = ExtractionJob(read_text(schema, "schema"), schema, reading, how, running, sampling)
    job.grammar()
    plan = _plan(job, lines, file) if lines.batch else None
    items = _begun(read_batch(file, name=lines.column)) if lines.batch else iter(())
    text = "" if lines.batch else read_text(file, "text")
    if not lines.batch and not text.strip():
        raise GuidedError("the text is empty", where=None if file == STDIN else file, remedy="Give some text.")
    if lines.batch:
        _extract_batch(job, items, lines, place, plan, as_json)
    else:
        _extract_one(job.begin(quiet=as_json), text, as_json)


def _check_batch(lines: BatchOptions, sampling: SamplingOptions) -> None:
    """Raise `GuidedError` for options of a batch without one, and for a batch where there may be none."""
    if lines.batch and sampling.replay is not None:
        raise GuidedError("a replay shows one run", where="--replay", remedy="Leave out --batch.")
    if not lines.batch and (lines.out is not None or lines.resume):
        raise GuidedError("only a batch is gone on with", where="--out", remedy="Add --batch.")
    if not lines.batch and lines.column != TEXT:
        raise GuidedError("only a batch has columns", where="--column", remedy="Add --batch.")
    if lines.into is not None and table_format(lines.out) is None:
        raise GuidedError(
            "only a table has columns", where="--into", remedy="Write one: --out people.csv, or .tsv, .arrow, .parquet."
        )


def _plan(job: ExtractionJob, lines: BatchOptions, file: str) -> TablePlan | None:
    """The table that the answers become; None where they are JSON Lines."""
    if lines.out is None or table_format(lines.out) is None:
        return None
    source, _ = job.grammar()
    has_facts = compares_texts(job.sampling) or job.sampling.draft is not None
    return TablePlan.of(lines.out, file, source, into=lines.into, strict=job.reading.strict, has_facts=has_facts)


def _extract_batch(
    job: ExtractionJob,
    items: Iterator[BatchItem],
    lines: BatchOptions,
    place: RayOptions,
    plan: TablePlan | None,
    as_json: bool,
) -> None:
    from guided.cli.batches.on_ray import answer_on_ray

    # A model that cannot be loaded leaves no file behind.
    work = None if place.ray else job.begin(quiet=as_json)
    with BatchOutput(lines.out, lines.resume) if plan is None else TableOutput(plan, lines.resume) as output:
        if work is None:
            n_items = answer_on_ray(
                job, items, output, workers=place.workers, size=lines.batch_size, what="extracting", quiet=as_json
            )
        else:
            n_items = answer_here(work, items, output, size=lines.batch_size, what="extracting", quiet=as_json)
    end_batch(output, n_items, "texts", quiet=as_json)


def _extract_one(extraction: Extraction, text: str, as_json: bool) -> None:
    from guided.cli.methods.drafting import drafts_in_words

    started = time.perf_counter()
    (result,) = extraction.some([text], quiet=as_json)
    if isinstance(result, GuidedError):
        raise result
    if as_json:
        seconds = round(time.perf_counter() - started, 3)
        facts = {"model": extraction.name, "tokens": result.tokens, "seconds": seconds, **result.facts}
        print_json(facts, value=result.text)
    else:
        print_text(result.text)
        if result.drafts is not None:
            print_note(drafts_in_words(result.drafts))


def _begun(items: Iterator[BatchItem]) -> Iterator[BatchItem]:
    """The items, of which the first is read now: a file that is missing or empty is an error before all else."""
    return chain([next(items)], items)
