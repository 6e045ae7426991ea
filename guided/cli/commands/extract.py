"""`guided extract`: a text and a JSON Schema to JSON that validates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.batch import BatchItem, BatchOutput, read_batch
from guided.cli.inputs import STDIN, located, parse_json, read_text
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import (
    AsJson,
    Decoding,
    MaxNewTokens,
    ModelOptions,
    SamplingOptions,
    Spelled,
    Strict,
    decoding,
)
from guided.cli.methods.steered import Steered
from guided.cli.output import print_json, print_note, print_text
from guided.cli.progress import counting
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.cli.methods.writing import Written
    from guided.constraint.constraint import Constraint

__all__ = ["extract"]

_SPACE = " \t\n\r"
"""JSON's white space."""

WHITESPACE = {"line": " ?", "compact": "compact", "any": "any"}
"""Names for --whitespace; everything else is a pattern."""


@dataclass(frozen=True)
class BatchOptions:
    """Whether the file is a batch, and where its lines go, as the command line says it."""

    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help='FILE is JSON Lines (strings, or {"id": .., "text": ".."}); so is the output, in order and as it '
            "comes. What is wrong with a line is that line's error.",
        ),
    ] = False
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Where a batch's lines go, to be gone on with.")] = (
        None
    )
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the lines that --out FILE has already.")] = False
    batch_size: Annotated[int, typer.Option(min=1, metavar="N", help="Texts of a batch at a time.")] = 8


@dataclass(frozen=True)
class ReadingOptions:
    """How the schema is read, as the command line says it."""

    whitespace: Annotated[
        str | None,
        typer.Option(
            metavar="line|compact|any|PATTERN",
            help="White space between JSON tokens: at most one space, none, anything, or what a regex matches; by "
            "default as --spelling has it.",
        ),
    ] = None
    spelling: Spelled = "plain"
    strict: Strict = False
    order: Annotated[
        str, typer.Option(metavar="schema|any", help="Members in the schema's order, or as the model likes.")
    ] = "schema"


@with_option_blocks
def extract(
    schema: Annotated[str, typer.Option("--schema", "-s", metavar="FILE", help="The JSON Schema; - reads a pipe.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The text; - or nothing reads standard input.")] = STDIN,
    lines: BatchOptions = BatchOptions(),
    reading: ReadingOptions = ReadingOptions(),
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
        guided extract -s person.json --model Qwen/Qwen2.5-0.5B-Instruct --draft auto letter.txt
        guided extract -s person.json --sampler smc --particles 16 --json letter.txt
        guided extract -s person.json --must-include "Oslo|Bergen" letter.txt
    """
    from guided.cli.methods.sampling import check_sampling
    from guided.cli.models import compile_for, load_model, seed_draws

    check_sampling(sampling, running)
    _check_batch(lines, sampling)
    if schema == STDIN and file == STDIN:
        raise GuidedError("both the schema and the text are to be read from standard input", remedy="Name a file.")
    how = decoding(max_new_tokens, running)
    written = read_text(schema, "schema")
    with located(schema):
        source = parse_json(written, "schema")
    grammar = _grammar(source, schema, reading)
    items = _begun(read_batch(file)) if lines.batch else iter(())
    text = "" if lines.batch else read_text(file, "text")
    if not lines.batch and not text.strip():
        raise GuidedError("the text is empty", where=None if file == STDIN else file, remedy="Give some text.")
    loaded = load_model(running.model, device=running.device, offline=running.offline, quiet=as_json)
    with located(schema):
        constraint = compile_for(grammar, loaded, quiet=as_json)
    seed_draws(how)
    extraction = _Extraction(Steered(loaded, sampling, running, as_json), constraint, source, how)
    if lines.batch:
        _extract_batch(extraction, items, lines, as_json)
    else:
        _extract_one(extraction, text, as_json)


def _check_batch(lines: BatchOptions, sampling: SamplingOptions) -> None:
    """Raise `GuidedError` for options of a batch without one, and for a batch where there may be none."""
    if lines.batch and sampling.replay is not None:
        raise GuidedError("a replay shows one run", where="--replay", remedy="Leave out --batch.")
    if not lines.batch and (lines.out is not None or lines.resume):
        raise GuidedError("only a batch is gone on with", where="--out", remedy="Add --batch.")


def _extract_batch(extraction: _Extraction, items: Iterator[BatchItem], lines: BatchOptions, as_json: bool) -> None:
    with BatchOutput(lines.out, lines.resume) as output:
        n_items = extraction.all(items, output, lines.batch_size, quiet=as_json)
    if output.n_failed:
        if not as_json:
            print_note(f"{output.n_failed} of {n_items} texts failed; their lines hold an error")
        raise typer.Exit(1)


def _extract_one(extraction: _Extraction, text: str, as_json: bool) -> None:
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


def _grammar(source: Any, path: str, reading: ReadingOptions) -> Any:
    import guided

    order, spelling, whitespace = reading.order, reading.spelling, reading.whitespace
    if order not in ("schema", "any"):
        raise GuidedError(f"there is no order {order!r}", where="--order", remedy="Use schema or any.")
    if spelling not in ("plain", "any"):
        raise GuidedError(f"there is no spelling {spelling!r}", where="--spelling", remedy="Use plain or any.")
    space = None if whitespace is None else WHITESPACE.get(whitespace, whitespace)
    if whitespace not in WHITESPACE:
        # A fault of the pattern is told apart from one of the schema.
        with located("--whitespace"):
            guided.json_schema(True, whitespace=space)
    options: dict[str, Any] = {"order": order, "spelling": spelling, "strict": reading.strict or None}
    with located(path):
        return guided.json_schema(source, whitespace=space, **options)


def _begun(items: Iterator[BatchItem]) -> Iterator[BatchItem]:
    """The items, of which the first is read now: a file that is missing or empty is an error before all else."""
    return chain([next(items)], items)


class _Extraction:
    """A model, a compiled schema and how to decode, applied to texts."""

    def __init__(self, ready: Steered, constraint: Constraint, schema: Any, how: Decoding) -> None:
        self.ready, self.loaded, self.name, self.constraint = ready, ready.loaded, ready.running.model, constraint
        self.schema, self.how = schema, how

    def all(self, items: Iterator[BatchItem], output: BatchOutput, size: int, *, quiet: bool) -> int:
        """Write one line for each item that has none, in order; returns how many items there are."""
        from guided.cli.exits import describe

        n_items = 0
        with counting("extracting", quiet=quiet) as advance:
            while chunk := list(islice(items, size)):
                new = [item for number, item in enumerate(chunk, n_items) if not output.has(number, item)]
                made = iter(self.some([item.text for item in new if item.fault is None], quiet=True))
                for item in new:
                    result = next(made) if item.fault is None else item.fault
                    if isinstance(result, GuidedError):
                        output.write({"id": item.id, "error": describe(result)})
                    else:
                        output.write({"id": item.id, **result.facts}, value=result.text)
                n_items += len(chunk)
                advance(len(chunk))
        return n_items

    def some(self, texts: list[str], *, quiet: bool) -> list[Written | GuidedError]:
        """The results for a few texts, generated together; a text that cannot be done has its error instead."""
        from guided.cli.methods.writing import compares_texts
        from guided.cli.models import budget_for, worded
        from guided.eval.requests import extraction_request

        results: list[Written | GuidedError] = []
        ready: list[int] = []
        prompts: list[Any] = []
        budgets: list[int] = []
        for index, text in enumerate(texts):
            prompt, n_tokens = worded(self.loaded, extraction_request(self.name, self.schema, text))
            try:
                budgets.append(budget_for(self.loaded, self.constraint, n_tokens, self.how.max_new_tokens))
            except GuidedError as error:
                results.append(error)
                continue
            results.append(GuidedError("not generated"))
            ready.append(index)
            prompts.append(prompt)
        if compares_texts(self.ready.sampling):
            for index, prompt, budget in zip(ready, prompts, budgets, strict=True):
                try:
                    (results[index],) = self._written([prompt], budget, quiet)
                except GuidedError as error:
                    results[index] = error
            return results
        # Each text has its own room; those that have the same are generated together.
        for budget in dict.fromkeys(budgets):
            alike = [n for n, other in enumerate(budgets) if other == budget]
            made = self._written([prompts[n] for n in alike], budget, quiet)
            for n, result in zip(alike, made, strict=True):
                results[ready[n]] = result
        return results

    def _written(self, prompts: list[Any], budget: int, quiet: bool) -> list[Written | GuidedError]:
        from guided.cli.methods.writing import write_texts

        made = write_texts(self.ready, prompts, self.constraint, self.how, max_new_tokens=budget, quiet=quiet)
        return [invalid(each.text, self.schema) or replace(each, text=each.text.strip(_SPACE)) for each in made]


def invalid(text: str, schema: Any) -> GuidedError | None:
    """What jsonschema, which knows nothing of the mask, has against a text; None when it validates.

    Formats are checked as far as jsonschema's optional packages are installed.
    """
    import json

    import jsonschema

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return GuidedError(f"the output is not JSON: {error}", remedy="This is a fault of guided; please report it.")
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    found = next(kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(value), None)
    if found is None:
        return None
    return GuidedError(
        f"the output does not validate: {found.message}",
        where=found.json_path,
        remedy="This is a fault of guided; please report it with the schema.",
    )
