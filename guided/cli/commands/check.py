"""`guided check`: what a grammar compiles to, an example of its texts, and whether it accepts a text."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.checking.grammars import read_grammar
from guided.cli.inputs import STDIN, located, read_text, shown_name
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import AsJson, Spelled, Strict
from guided.cli.notations import Format
from guided.cli.output import print_json, stdout_console
from guided.cli.progress import kernel_compilation
from guided.errors import GuidedError
from guided.eval.requests import PACKAGED

if TYPE_CHECKING:
    from guided.cli.checking.byte_texts import Verdict
    from guided.cli.checking.grammars import ReadGrammar
    from guided.constraint.constraint import Constraint

__all__ = ["check"]

SHOWN_RECURSIVE = 6


@dataclass(frozen=True)
class JudgedText:
    """The text that is judged, as the command line says it."""

    accepts: Annotated[
        str | None, typer.Option("--accepts", metavar="TEXT", help="Is this text accepted? Exit code 1 if not.")
    ] = None
    accepts_file: Annotated[
        str | None, typer.Option("--accepts-file", metavar="FILE", help="The same for the whole text of a file.")
    ] = None

    def read(self, grammar: str) -> str | None:
        """The text; None where there is none.  ``grammar`` is where the grammar came from.

        Raises `GuidedError` where grammar and text are both on standard input.
        """
        if self.accepts_file is None:
            return self.accepts
        if self.accepts_file == grammar == STDIN:
            raise GuidedError("both the grammar and the text are to be read from standard input", remedy="Name a file.")
        return read_text(self.accepts_file, "text")


@dataclass(frozen=True)
class ReportOptions:
    """What is said of the grammar, as the command line says it."""

    tokenizer: Annotated[
        str | None,
        typer.Option("--tokenizer", "-t", metavar="PATH", help="Also compile for a tokenizer: file, folder or name."),
    ] = None
    rules: Annotated[bool, typer.Option("--rules", help="Print the rules that it compiled to.")] = False
    report: Annotated[
        bool, typer.Option("--report", help="What becomes of each keyword of a JSON Schema: masked, checked, refused.")
    ] = False
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINES",
            help="Which engine enforces which keyword of the schema: llguidance,xgrammar,outlines beside ours.",
        ),
    ] = None


@with_option_blocks
def check(
    grammar: Annotated[
        str, typer.Argument(metavar="GRAMMAR", help="A file, - for standard input, or the name of a ready grammar.")
    ],
    instances: Annotated[
        list[str] | None, typer.Argument(metavar="[INSTANCE]...", help="Files of JSON values to judge, for --compare.")
    ] = None,
    judged: JudgedText = JudgedText(),
    format: Annotated[
        Format | None, typer.Option("--format", "-f", help="The notation, where the file's suffix does not say it.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Where texts begin, in Lark (start) and GBNF (root); the message of a .proto file, the type of a "
            ".ts file; the operation of an OpenAPI document, whose arguments are meant.",
        ),
    ] = None,
    order: Annotated[str, typer.Option(metavar="schema|any", help="Order of members, for a JSON Schema.")] = "schema",
    wanted: ReportOptions = ReportOptions(),
    spelling: Spelled = "plain",
    strict: Strict = False,
    seed: Annotated[int, typer.Option(help="Seed of what is sampled.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say what a grammar or schema compiles to, what is refused and where, and which texts it accepts.

    What cannot be enforced exactly is refused, with its place and a remedy (exit code 3).

    **Examples:**

        guided check person.json
        guided check person.json --accepts '{"name": "Ada"}'
        guided check calc.lark --start expression --rules
        echo '[0-9]+' | guided check - --format regex --accepts 12a
        guided check smiles --tokenizer nano
        guided check person.json --report
        guided check person.json --compare llguidance,xgrammar,outlines ada.json bob.json
    """
    if judged.accepts is not None and judged.accepts_file is not None:
        raise GuidedError("--accepts and --accepts-file are both given", remedy="Pass one of them.")
    if instances and wanted.compare is None:
        raise GuidedError("instances are given without --compare", remedy="Pass --accepts-file for a single one.")
    if wanted.report:
        from guided.cli.checking.enforcement import show_report

        show_report(grammar, format, start=start, order=order, as_json=as_json)
        return
    if wanted.compare is not None:
        from guided.cli.checking.comparison import show_comparison

        names = instances or []
        name = wanted.tokenizer or PACKAGED
        show_comparison(grammar, format, wanted.compare, names, start=start, tokenizer=name, seed=seed, as_json=as_json)
        return
    read = read_grammar(grammar, format, start=start, order=order, spelling=spelling, strict=strict or None)
    text = judged.read(grammar)
    with kernel_compilation(quiet=as_json), located(grammar):
        record = _facts(read)
        if wanted.rules:
            from guided.cli.checking.grammar_facts import rule_lines

            record["rule_lines"] = rule_lines(read.grammar)
        verdict = _examine(read, record, text, seed)
        if wanted.tokenizer is not None:
            record["tokenizer"] = _over_tokens(read, wanted.tokenizer)
    if as_json:
        print_json(record)
    else:
        _show(record)
    if verdict is not None and not verdict.accepted:
        raise typer.Exit(1)


def _facts(read: ReadGrammar) -> dict[str, Any]:
    from guided.cli.checking.grammar_facts import facts_of
    from guided.grammar.limited.unlimited import unlimited

    facts = facts_of(unlimited(read.grammar))
    return {
        "grammar": read.name,
        "format": read.format,
        "start": facts.start,
        "rules": facts.rules,
        "terminals": facts.terminals,
        "lexing": facts.lexing,
        "ignored": list(facts.ignored),
        "recursive": list(facts.recursive),
        "notes": list(facts.notes),
    }


def _examine(read: ReadGrammar, record: dict[str, Any], text: str | None, seed: int) -> Verdict | None:
    """Compile over bytes; adds the examples and the verdict on ``text``."""
    from guided.cli.checking.byte_texts import judge
    from guided.eval.byte_sampling import compile_bytes, sample_text, shortest_text

    constraint = compile_bytes(read.grammar)
    record["shortest"] = shortest_text(constraint)
    record["example"] = sample_text(constraint, seed)
    if text is None:
        return None
    verdict = judge(constraint, text)
    record["accepts"] = {"accepted": verdict.accepted}
    if not verdict.accepted:
        record["accepts"] |= {
            "offset": verdict.offset,
            "line": verdict.line,
            "column": verdict.column,
            "found": verdict.found or None,
            "expected": verdict.expected,
            "explanation": verdict.explanation or None,
            "hint": _hint(read, text),
        }
    return verdict


def _hint(read: ReadGrammar, text: str) -> str | None:
    """Where a JSON text is not accepted: what the schema itself has against it, or that only its form is at fault."""
    if read.format != "JSON Schema":
        return None
    from guided.cli.extraction import invalid

    fault = invalid(text, read.schema)
    if fault is None:
        return "the value is valid against the schema; the order of its members is not the schema's (see --order any)"
    if "is not JSON" in fault.what:
        return None
    return f"{fault.what.removeprefix('the output does not validate: ')} (at {fault.where})"


def _over_tokens(read: ReadGrammar, tokenizer: str) -> dict[str, Any]:
    """Compile for a tokenizer; the first mask's time includes everything that it has to explore."""
    import numpy as np

    import guided
    from guided import tokenset
    from guided.cli.checking.tokenizer_files import load_vocabulary

    vocabulary = load_vocabulary(tokenizer)
    row = np.zeros(vocabulary.n_words, np.uint32)
    began = time.perf_counter()
    constraint: Constraint = guided.compile(read.grammar, vocabulary)
    constraint.fill_mask(constraint.start, row)
    seconds = time.perf_counter() - began
    return {
        "name": tokenizer,
        "ids": vocabulary.size,
        "first_mask_ms": round(1000 * seconds, 2),
        "allowed_first": tokenset.count(row),
        "shortest_tokens": constraint.shortest_completion(constraint.start),
    }


def _show(record: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = stdout_console()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("grammar", Text(f"{shown_name(record['grammar'])} ({record['format']})"))
    table.add_row("rules", Text(f"{record['rules']}, starting with {record['start']}"))
    table.add_row("terminals", Text(str(record["terminals"]) + _ignored(record["ignored"])))
    table.add_row("lexing", Text(record["lexing"]))
    table.add_row("recursion", Text(_recursion(record["recursive"])))
    for note in record["notes"]:
        table.add_row("note", Text(note))
    table.add_row("shortest", Text(repr(record["shortest"])))
    table.add_row("example", Text(repr(record["example"])))
    tokens = record.get("tokenizer")
    if tokens:
        table.add_row("tokenizer", Text(f"{tokens['name']}: {tokens['ids']:,} ids"))
        table.add_row("first mask", Text(f"{tokens['allowed_first']:,} ids allowed, {tokens['first_mask_ms']} ms"))
        table.add_row("shortest", Text(f"{tokens['shortest_tokens']} tokens"))
    verdict = record.get("accepts")
    if verdict:
        table.add_row("accepted", _verdict(verdict))
        for row in ("explanation", "hint"):
            if verdict.get(row):
                table.add_row(row, Text(verdict[row]))
    out.print(table)
    for line in record.get("rule_lines", ()):
        out.print(Text(line), soft_wrap=True)


def _ignored(names: list[str]) -> str:
    return f" ({', '.join(names)} ignored)" if names else ""


def _recursion(names: list[str]) -> str:
    if not names:
        return "none: the language is regular"
    more = len(names) - SHOWN_RECURSIVE
    return ", ".join(names[:SHOWN_RECURSIVE]) + (f" and {more} more" if more > 0 else "")


def _verdict(verdict: dict[str, Any]) -> Any:
    from rich.text import Text

    if verdict["accepted"]:
        return Text("yes", style="green")
    place = f"line {verdict['line']}, column {verdict['column']}"
    if verdict["found"] is None:
        reason = f": the text ends at {place}, where {verdict['expected']} is expected"
    else:
        reason = f": {verdict['found']!r} at {place}, where {verdict['expected']} is expected"
    return Text.assemble(("no", "red"), reason)
