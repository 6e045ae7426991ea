"""What `guided extract` is made of: how its schema is read, and a model that turns texts into records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.batches.answering import Answer
from guided.cli.inputs import located
from guided.cli.methods.options import Decoding, ModelOptions, SamplingOptions, Spelled, Strict
from guided.cli.methods.steered import Steered
from guided.cli.notations import SCHEMAS, Format, format_of, schema_in
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.cli.methods.writing import Written
    from guided.constraint.constraint import Constraint

__all__ = ["WHITESPACE", "Extraction", "ExtractionJob", "ReadingOptions", "invalid"]

_SPACE = " \t\n\r"
"""JSON's white space."""

WHITESPACE = {"line": " ?", "compact": "compact", "any": "any"}
"""Names for --whitespace; everything else is a pattern."""


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
    start: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which message of a .proto file, type of a .ts file or operation of an OpenAPI document.",
        ),
    ] = None


@dataclass(frozen=True)
class ExtractionJob:
    """What the command line asks for: a schema, a model, and how it decodes."""

    written: str
    """The text of the schema."""
    path: str
    """Where it comes from."""
    reading: ReadingOptions
    how: Decoding
    running: ModelOptions
    sampling: SamplingOptions

    def grammar(self) -> tuple[Any, Any]:
        """The schema, and its grammar."""
        with located(self.path):
            kind = format_of(self.path)
            known = kind if kind in SCHEMAS else Format.JSON_SCHEMA
            source = schema_in(self.written, self.path, known, self.reading.start)
        return source, _grammar(source, self.path, self.reading)

    def begin(self, *, quiet: bool) -> Extraction:
        """Load the model and compile the schema for it."""
        from guided.cli.models import compile_for, load_model, seed_draws

        source, grammar = self.grammar()
        loaded = load_model(self.running.model, device=self.running.device, offline=self.running.offline, quiet=quiet)
        with located(self.path):
            constraint = compile_for(grammar, loaded, quiet=quiet)
        seed_draws(self.how)
        return Extraction(Steered(loaded, self.sampling, self.running, quiet), constraint, source, self.how)


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


class Extraction:
    """A model, a compiled schema and how to decode, applied to texts."""

    def __init__(self, ready: Steered, constraint: Constraint, schema: Any, how: Decoding) -> None:
        self.ready, self.loaded, self.name, self.constraint = ready, ready.loaded, ready.running.model, constraint
        self.schema, self.how = schema, how

    def answers(self, texts: Sequence[str]) -> list[Answer | GuidedError]:
        """The lines of a few texts of a batch."""
        return [
            made if isinstance(made, GuidedError) else Answer(made.facts, {"value": made.text})
            for made in self.some(texts, quiet=True)
        ]

    def some(self, texts: Sequence[str], *, quiet: bool) -> list[Written | GuidedError]:
        """The results for a few texts, generated together; a text that cannot be done has its error instead."""
        from guided.cli.methods.writing import compares_texts
        from guided.cli.models import budget_for
        from guided.hf.extraction import extraction_request
        from guided.hf.front.encoding import as_asked

        results: list[Written | GuidedError] = []
        ready: list[int] = []
        prompts: list[Any] = []
        budgets: list[int] = []
        for index, text in enumerate(texts):
            try:
                prompt, ids = as_asked(extraction_request(self.name, self.schema, text), self.loaded.tokenizer)
                budgets.append(budget_for(self.loaded, self.constraint, len(ids), self.how.max_new_tokens))
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
