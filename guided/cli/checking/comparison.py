"""`guided check --compare`: which engine enforces, ignores or refuses which keyword of a schema, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guided.cli.checking.grammars import read_schema
from guided.cli.inputs import located, parse_json, read_text, shown_name
from guided.cli.notations import Format
from guided.cli.output import print_json, print_note, stdout_console
from guided.cli.progress import counted_stages, kernel_compilation
from guided.errors import GrammarError, GuidedError
from guided.eval.engines.names import EngineName

if TYPE_CHECKING:
    from guided.eval.compare import Comparison, Finding
    from guided.eval.occurrences import Occurrence

__all__ = ["show_comparison", "wanted_engines"]

_STYLES = {
    "enforced": "green",
    "partly": "yellow",
    "ignored": "bold red",
    "refused": "magenta",
    "too strict": "yellow",
    "unclear": "dim",
    "unknown": "dim",
}


def wanted_engines(names: str) -> list[EngineName]:
    """Our engine and those of a comma-separated list; raises `GuidedError` for a name that is none."""
    known = {name.value: name for name in EngineName if name is not EngineName.NONE}
    found = [EngineName.GUIDED]
    for name in (part.strip() for part in names.split(",")):
        if name not in known:
            raise GuidedError(
                f"there is no engine {name!r}", where="--compare", remedy=f"The engines are: {', '.join(known)}."
            )
        if known[name] not in found:
            found.append(known[name])
    return found


def show_comparison(
    path: str,
    format: Format | None,
    names: str,
    instances: list[str],
    *,
    start: str | None,
    tokenizer: str,
    seed: int,
    as_json: bool,
) -> None:
    """Compare the engines on a schema and print the result; ``instances`` are files of one JSON value each.

    A schema that our own engine refuses is compared like any other: that is one of the findings.
    """
    from guided.cli.checking.tokenizer_files import load_tokenizer
    from guided.eval.compare import compare
    from guided.eval.engines.protocol import TokenSpace
    from guided.eval.validation import schema_fault
    from guided.vocab import Vocabulary

    engines = wanted_engines(names)
    schema = read_schema(path, format, "--compare", start)
    with located(path):
        fault = schema_fault(schema)
        if fault is not None:
            raise GrammarError(f"jsonschema cannot judge instances by this: {fault}", remedy="Correct the schema.")
    given = []
    for name in instances:
        text = read_text(name, "instance")
        with located(name):
            parse_json(text, "instance")
        given.append((shown_name(name), text.strip()))
    loaded = load_tokenizer(tokenizer)
    vocabulary = Vocabulary.from_tokenizer(loaded)
    tokens = TokenSpace(loaded, vocabulary, vocabulary.size)
    with kernel_compilation(quiet=as_json), counted_stages("engines", len(engines), quiet=as_json) as (stage, _):
        result = compare(schema, tokens, engines, given, seed=seed, on_stage=stage)
    if as_json:
        print_json(_record(result, shown_name(path), tokenizer))
    else:
        _show(result)


def _record(result: Comparison, name: str, tokenizer: str) -> dict[str, Any]:
    from guided.eval.engines.names import engine_version

    return {
        "schema": name,
        "tokenizer": tokenizer,
        "engines": [
            {
                "engine": one.name.value,
                "version": engine_version(one.name),
                "compiles": not one.message,
                "message": one.message or None,
                "refused": [occurrence.pointer for occurrence in one.refused],
                "notes": list(one.notes),
                "valid": one.valid,
                "valid_accepted": one.valid_accepted,
            }
            for one in result.engines
        ],
        "keywords": [
            {
                "pointer": occurrence.pointer,
                "keyword": occurrence.keyword,
                "breaking": result.probes.mutants.get(occurrence, []),
                "engines": {
                    name.value: {"verdict": one.verdict.value, "detail": one.detail} for name, one in row.items()
                },
            }
            for occurrence, row in result.keywords.items()
        ],
        "valid": result.probes.valid,
        "not_probed": [occurrence.pointer for occurrence in result.probes.unprobed],
        "instances": [
            {
                "name": one.name,
                "valid": one.fault is None,
                "fault": one.fault,
                "engines": {name.value: accepted for name, accepted in one.accepted.items()},
            }
            for one in result.given
        ],
    }


def _show(result: Comparison) -> None:
    from rich.table import Table
    from rich.text import Text

    out = stdout_console()
    table = Table(title="keywords", title_justify="left")
    table.add_column("keyword", overflow="fold")
    for engine in result.engines:
        table.add_column(engine.name.value, no_wrap=True)
    for occurrence, row in result.keywords.items():
        cells = (Text(_word(one), style=_STYLES[one.verdict.value]) for one in row.values())
        table.add_row(Text(occurrence.pointer), *cells)
    cells = (Text(_valid(engine.valid_accepted, engine.valid)) for engine in result.engines)
    table.add_section()
    table.add_row(Text("valid instances accepted"), *cells)
    out.print(table)
    details = Table.grid(padding=(0, 2))
    for occurrence, name, one in _worth_saying(result):
        line = Text.assemble((one.verdict.value, _STYLES[one.verdict.value]), f" {one.detail}")
        details.add_row(Text(name.value), Text(occurrence.pointer, overflow="fold"), line)
    for engine in result.engines:
        if engine.message and not engine.refused:
            details.add_row(engine.name.value, Text("#"), Text(f"does not compile: {engine.message}"))
        for note in engine.notes:
            details.add_row(engine.name.value, "", Text(f"notes: {note}", style="dim"))
    out.print(details)
    if result.probes.unprobed:
        pointers = ", ".join(one.pointer for one in result.probes.unprobed)
        print_note(f"no instance was found that breaks these alone: {pointers}")
    if result.given:
        _show_given(result)


def _show_given(result: Comparison) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="instances", title_justify="left")
    table.add_column("instance", overflow="fold")
    table.add_column("jsonschema", overflow="fold")
    for engine in result.engines:
        table.add_column(engine.name.value, no_wrap=True)
    for one in result.given:
        verdict = Text("valid", style="green") if one.fault is None else Text(one.fault)
        cells = (_accepted(accepted, one.fault is None) for accepted in one.accepted.values())
        table.add_row(Text(one.name), verdict, *cells)
    stdout_console().print(table)


def _accepted(accepted: bool | None, valid: bool) -> Any:
    from rich.text import Text

    if accepted is None:
        return Text("-", style="dim")
    return Text("accepts" if accepted else "rejects", style="green" if accepted == valid else "bold red")


def _worth_saying(result: Comparison) -> list[tuple[Occurrence, EngineName, Finding]]:
    """What the table's words leave open, a line for each finding that is not enforced, engine by engine."""
    silent = ("enforced", "unknown")
    return [
        (occurrence, engine.name, row[engine.name])
        for engine in result.engines
        for occurrence, row in result.keywords.items()
        if row[engine.name].verdict.value not in silent
    ]


def _word(one: Finding) -> str:
    return "-" if one.verdict.value == "unknown" else one.verdict.value


def _valid(accepted: int, valid: int) -> str:
    return f"{accepted} of {valid}"
