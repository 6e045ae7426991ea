"""`guided extract`: a text and a JSON Schema to JSON that validates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.batch import BatchItem, BatchOutput, read_batch
from guided.cli.inputs import STDIN, located, parse_json, read_text
from guided.cli.methods.options import (
    AsJson,
    Decoding,
    MaxNewTokens,
    ModelOptions,
    SamplingOptions,
    Spelled,
    Strict,
    decoding,
    runs_a_model,
    searches,
)
from guided.cli.methods.steered import Steered
from guided.cli.output import print_json, print_note, print_text
from guided.cli.progress import counting
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.cli.methods.sampling import Answer
    from guided.constraint.constraint import Constraint
    from guided.draft import Statistics

__all__ = ["extract"]

_SPACE = " \t\n\r"
"""JSON's white space."""

WHITESPACE = {"line": " ?", "compact": "compact", "any": "any"}
"""Names for --whitespace; everything else is a pattern."""


@runs_a_model
def extract(
    schema: Annotated[str, typer.Option("--schema", "-s", metavar="FILE", help="The JSON Schema; - reads a pipe.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The text; - or nothing reads standard input.")] = STDIN,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help='FILE is JSON Lines (strings, or {"id": .., "text": ".."}); so is the output, in order and as it '
            "comes. What is wrong with a line is that line's error.",
        ),
    ] = False,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where a batch's lines go, to be gone on with.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the lines that --out FILE has already.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, metavar="N", help="Texts of a batch at a time.")] = 8,
    whitespace: Annotated[
        str | None,
        typer.Option(
            metavar="line|compact|any|PATTERN",
            help="White space between JSON tokens: at most one space, none, anything, or what a regex matches; by "
            "default as --spelling has it.",
        ),
    ] = None,
    spelling: Spelled = "plain",
    strict: Strict = False,
    order: Annotated[
        str, typer.Option(metavar="schema|any", help="Members in the schema's order, or as the model likes.")
    ] = "schema",
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
    from guided.cli.methods.drafting import drafts_in_words
    from guided.cli.methods.sampling import check_sampling
    from guided.cli.models import compile_for, load_model, seed_draws

    check_sampling(sampling, running)
    if batch and sampling.replay is not None:
        raise GuidedError("a replay shows one run", where="--replay", remedy="Leave out --batch.")
    if not batch and (out is not None or resume):
        raise GuidedError("only a batch is gone on with", where="--out", remedy="Add --batch.")
    if schema == STDIN and file == STDIN:
        raise GuidedError("both the schema and the text are to be read from standard input", remedy="Name a file.")
    how = decoding(max_new_tokens, running)
    written = read_text(schema, "schema")
    with located(schema):
        source = parse_json(written, "schema")
    options = {"order": order, "spelling": spelling, "strict": strict or None}
    grammar = _grammar(source, schema, whitespace, options)
    items = _begun(read_batch(file)) if batch else iter(())
    text = "" if batch else read_text(file, "text")
    if not batch and not text.strip():
        raise GuidedError("the text is empty", where=None if file == STDIN else file, remedy="Give some text.")
    loaded = load_model(running.model, device=running.device, offline=running.offline, quiet=as_json)
    with located(schema):
        constraint = compile_for(grammar, loaded, quiet=as_json)
    seed_draws(how)
    ready = Steered(loaded, sampling, running, as_json)
    extraction = _Extraction(ready, running.model, constraint, source, how, sampling)
    if batch:
        with BatchOutput(out, resume) as output:
            n_items = extraction.all(items, output, batch_size, quiet=as_json)
        if output.n_failed:
            if not as_json:
                print_note(f"{output.n_failed} of {n_items} texts failed; their lines hold an error")
            raise typer.Exit(1)
        return
    started = time.perf_counter()
    (result,) = extraction.some([text], quiet=as_json)
    if isinstance(result, GuidedError):
        raise result
    if as_json:
        seconds = round(time.perf_counter() - started, 3)
        facts = {"model": running.model, "tokens": result.tokens, "seconds": seconds, **result.facts}
        print_json(facts, value=result.text)
    else:
        print_text(result.text)
        if result.drafts is not None:
            print_note(drafts_in_words(result.drafts))


def _grammar(source: Any, path: str, whitespace: str | None, options: dict[str, Any]) -> Any:
    import guided

    if options["order"] not in ("schema", "any"):
        raise GuidedError(f"there is no order {options['order']!r}", where="--order", remedy="Use schema or any.")
    if options["spelling"] not in ("plain", "any"):
        remedy = "Use plain or any."
        raise GuidedError(f"there is no spelling {options['spelling']!r}", where="--spelling", remedy=remedy)
    space = None if whitespace is None else WHITESPACE.get(whitespace, whitespace)
    if whitespace not in WHITESPACE:
        # A fault of the pattern is told apart from one of the schema.
        with located("--whitespace"):
            guided.json_schema(True, whitespace=space)
    with located(path):
        return guided.json_schema(source, whitespace=space, **options)


def _begun(items: Iterator[BatchItem]) -> Iterator[BatchItem]:
    """The items, of which the first is read now: a file that is missing or empty is an error before all else."""
    return chain([next(items)], items)


class _Written:
    """One valid JSON text and how many tokens it took."""

    def __init__(
        self, text: str, tokens: int, facts: dict[str, Any] | None = None, drafts: Statistics | None = None
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.facts = facts or {}
        """What a sampler, a search or a draft says of all the texts that it found."""
        self.drafts = drafts


class _Extraction:
    """A model, a compiled schema and how to decode, applied to texts."""

    def __init__(
        self,
        ready: Steered,
        name: str,
        constraint: Constraint,
        schema: Any,
        how: Decoding,
        sampling: SamplingOptions,
    ) -> None:
        self.ready, self.loaded, self.name, self.constraint = ready, ready.loaded, name, constraint
        self.schema, self.how, self.sampling = schema, how, sampling

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

    def some(self, texts: list[str], *, quiet: bool) -> list[_Written | GuidedError]:
        """The results for a few texts, generated together; a text that cannot be done has its error instead."""
        from guided.cli.models import budget_for, generate_batch, worded
        from guided.eval.requests import extraction_request

        results: list[_Written | GuidedError] = []
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
        if self.sampling.sampler is not None or searches(self.sampling):
            for index, prompt, budget in zip(ready, prompts, budgets, strict=True):
                results[index] = self._sampled(prompt, budget, quiet)
            return results
        # Each text has its own room; those that have the same are generated together.
        for budget in dict.fromkeys(budgets):
            alike = [n for n, other in enumerate(budgets) if other == budget]
            made = generate_batch(
                self.loaded,
                [prompts[n] for n in alike],
                self.constraint,
                max_new_tokens=budget,
                how=self.how,
                draft=self.ready.drafting,
                steer=self.ready.stack if self.sampling.steer else None,
                quiet=quiet,
            )
            for n, one in zip(alike, made, strict=True):
                fault = invalid(one.text, self.schema)
                drafts = one.drafts
                facts = {} if drafts is None else {"drafts": drafts.record()}
                results[ready[n]] = fault or _Written(one.text.strip(_SPACE), len(one.token_ids), facts, drafts)
        return results

    def _sampled(self, prompt: Any, budget: int, quiet: bool) -> _Written | GuidedError:
        from guided.cli.methods.sampling import sample_text
        from guided.cli.methods.searching import FoundTexts, search_text

        answer: Answer | FoundTexts
        try:
            if searches(self.sampling):
                answer = search_text(
                    self.ready, prompt, self.constraint, self.sampling, max_new_tokens=budget, quiet=quiet
                )
            else:
                answer = sample_text(
                    self.ready,
                    prompt,
                    self.constraint,
                    self.sampling,
                    max_new_tokens=budget,
                    how=self.how,
                    replay=self.sampling.replay,
                    quiet=quiet,
                )
        except GuidedError as error:
            return error
        fault = invalid(answer.text, self.schema)
        return fault or _Written(answer.text.strip(_SPACE), answer.tokens, answer.record())


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
