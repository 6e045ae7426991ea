"""`guided extract`: a text and a JSON Schema to JSON that validates."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.inputs import STDIN, BatchItem, located, parse_json, read_batch, read_text
from guided.cli.options import (
    AsJson,
    Decoding,
    MaxNewTokens,
    ModelOptions,
    decoding,
    runs_a_model,
)
from guided.cli.output import print_json, print_note, print_text
from guided.cli.progress import counting
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.constraint.constraint import Constraint
    from guided.hf import LoadedModel

__all__ = ["extract"]

WHITESPACE = {"any": None, "compact": "compact", "line": " ?"}
"""Names for --whitespace; everything else is a pattern."""


@runs_a_model
def extract(
    schema: Annotated[str, typer.Option("--schema", "-s", metavar="FILE", help="The JSON Schema; - reads a pipe.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The text; - or nothing reads standard input.")] = STDIN,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch", help='FILE is JSON Lines (strings, or {"id": .., "text": ".."}); so is the output, in order.'
        ),
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, metavar="N", help="Texts of a batch at a time.")] = 8,
    whitespace: Annotated[
        str,
        typer.Option(
            metavar="line|compact|any|PATTERN",
            help="White space between JSON tokens: at most one space, none, anything, or what a regex matches.",
        ),
    ] = "line",
    order: Annotated[
        str, typer.Option(metavar="schema|any", help="Members in the schema's order, or as the model likes.")
    ] = "schema",
    max_new_tokens: MaxNewTokens = None,
    running: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Extract a record from a text as JSON that is valid against a schema.

    The model can write nothing else: every token that the schema forbids is masked, and the output ends in time.

    **Examples:**

        guided extract --schema person.json letter.txt
        echo "Ada Lovelace, born 1815" | guided extract --schema person.json
        guided extract -s person.json --batch letters.jsonl > people.jsonl
        guided extract -s person.json --model Qwen/Qwen2.5-0.5B-Instruct letter.txt
    """
    from guided.cli.models import compile_for, load_model, seed_draws

    if schema == STDIN and file == STDIN:
        raise GuidedError("both the schema and the text are to be read from standard input", remedy="Name a file.")
    how = decoding(max_new_tokens, running)
    written = read_text(schema, "schema")
    with located(schema):
        source = parse_json(written, "schema")
    grammar = _grammar(source, schema, order, whitespace)
    text = read_text(file, "text")
    items = read_batch(text, file) if batch else [BatchItem(0, text)]
    if not batch and not text.strip():
        raise GuidedError("the text is empty", where=None if file == STDIN else file, remedy="Give some text.")
    loaded = load_model(running.model, device=running.device, offline=running.offline, quiet=as_json)
    with located(schema):
        constraint = compile_for(grammar, loaded, quiet=as_json)
    seed_draws(how)
    extraction = _Extraction(loaded, running.model, constraint, source, how)
    if batch:
        failed = extraction.all(items, batch_size, quiet=as_json)
        if failed:
            if not as_json:
                print_note(f"{failed} of {len(items)} texts failed; their lines hold an error")
            raise typer.Exit(1)
        return
    started = time.perf_counter()
    (result,) = extraction.some([text], quiet=as_json)
    if isinstance(result, GuidedError):
        raise result
    if as_json:
        facts = {"model": running.model, "tokens": result.tokens, "seconds": round(time.perf_counter() - started, 3)}
        print_json(facts, value=result.text)
    else:
        print_text(result.text)


def _grammar(source: Any, path: str, order: str, whitespace: str) -> Any:
    import guided

    if order not in ("schema", "any"):
        raise GuidedError(f"there is no order {order!r}", where="--order", remedy="Use schema or any.")
    space = WHITESPACE.get(whitespace, whitespace)
    if whitespace not in WHITESPACE:
        # A fault of the pattern is told apart from one of the schema.
        with located("--whitespace"):
            guided.json_schema(True, whitespace=space)
    with located(path):
        return guided.json_schema(source, order=order, whitespace=space)


class _Written:
    """One valid JSON text and how many tokens it took."""

    def __init__(self, text: str, tokens: int) -> None:
        self.text = text
        self.tokens = tokens


class _Extraction:
    """A model, a compiled schema and how to decode, applied to texts."""

    def __init__(self, loaded: LoadedModel, name: str, constraint: Constraint, schema: Any, how: Decoding) -> None:
        self.loaded, self.name, self.constraint, self.schema, self.how = loaded, name, constraint, schema, how

    def all(self, items: list[BatchItem], size: int, *, quiet: bool) -> int:
        """Write one line for each item, in order; returns how many failed."""
        from guided.cli.exits import describe

        failed = 0
        with counting("extracting", len(items), quiet=quiet) as advance:
            for first in range(0, len(items), size):
                chunk = items[first : first + size]
                for item, result in zip(chunk, self.some([item.text for item in chunk], quiet=True), strict=True):
                    if isinstance(result, GuidedError):
                        failed += 1
                        print_json({"id": item.id, "error": describe(result)})
                    else:
                        print_json({"id": item.id}, value=result.text)
                advance(len(chunk))
        return failed

    def some(self, texts: list[str], *, quiet: bool) -> list[_Written | GuidedError]:
        """The results for a few texts, generated together; a text that cannot be done has its error instead."""
        from guided.cli.models import budget_for, generate_batch, worded
        from guided.cli.prompts import extraction_request

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
        if prompts:
            made = generate_batch(
                self.loaded, prompts, self.constraint, max_new_tokens=min(budgets), how=self.how, quiet=quiet
            )
            for index, one in zip(ready, made, strict=True):
                fault = invalid(one.text, self.schema)
                results[index] = fault or _Written(one.text.strip(" \t\n\r"), len(one.token_ids))
        return results


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
