"""`guided bench`: what a way of decoding is worth on your own model, prompts and grammar."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.batches.lines import read_batch
from guided.cli.checking.grammars import read_grammar
from guided.cli.exits import EXIT_HELP
from guided.cli.inputs import STDIN, located
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import AsJson, ModelOptions
from guided.cli.notations import Format
from guided.cli.output import print_json, print_note, stdout_console
from guided.cli.progress import counting
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.hf.draft_measurement import Line

__all__ = ["benchmarks", "speculation"]

benchmarks = typer.Typer(
    name="bench",
    help=(
        "Measurements on your own model, prompts and grammar."
        "\n\nTry this:"
        "\n\n    guided bench speculation person.json --texts letters.jsonl"
    ),
    epilog=EXIT_HELP,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@benchmarks.callback()
def _group() -> None:
    """Keeps the name of the measurement in the command even while there is but one."""


@benchmarks.command(epilog=EXIT_HELP)
@with_option_blocks
def speculation(
    grammar: Annotated[
        str, typer.Argument(metavar="GRAMMAR", help="A file, - for standard input, or the name of a ready grammar.")
    ],
    texts: Annotated[
        str,
        typer.Option(
            "--texts",
            metavar="FILE",
            help="JSON Lines: texts to extract from for a JSON Schema, prompts for any other grammar.",
        ),
    ],
    format: Annotated[
        Format | None, typer.Option("--format", "-f", help="The notation, where the file's suffix does not say it.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N texts.")] = 50,
    max_new_tokens: Annotated[int, typer.Option(min=1, metavar="N", help="Most tokens to write.")] = 256,
    small: Annotated[
        str | None,
        typer.Option(
            "--draft-model", metavar="NAME_OR_PATH", help="Also draft with this model, of the same tokenizer."
        ),
    ] = None,
    running: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Measure drafts beside plain constrained decoding and transformers' prompt lookup, in one interleaved run.

    All decode greedily and write the same tokens; the table says at how many passes of the model and how fast.
    Speeds are relative to plain decoding. **auto** is what needs no training and adapts by itself.

    **Examples:**

        guided bench speculation person.json --texts letters.jsonl
        guided bench speculation person.json --texts letters.jsonl --model Qwen/Qwen2.5-0.5B-Instruct
        guided bench speculation answer.gbnf --texts prompts.jsonl --model ./target --draft-model ./small
    """
    from guided.cli.models import budget_for, compile_for, load_model
    from guided.draft import Chain, Confidence, Drafting, Fixed, Model, PromptLookup, auto
    from guided.hf.draft_measurement import measure_drafts
    from guided.hf.extraction import extraction_request
    from guided.hf.front.encoding import as_asked
    from guided.hf.language_model import TransformersModel

    if running.sample or running.temperature:
        raise GuidedError("drafts are compared greedily", where="--sample", remedy="Leave it out.")
    read = read_grammar(grammar, format, start=None)
    items = list(islice(read_batch(texts), limit))
    for item in items:
        if item.fault is not None:
            raise item.fault
    loaded = load_model(running.model, device=running.device, offline=running.offline, quiet=as_json)
    with located(grammar if grammar != STDIN else "standard input"):
        constraint = compile_for(read.grammar, loaded, quiet=as_json)
    drafts = {"auto": auto(), "prompt lookup": Drafting(PromptLookup(), Fixed(10))}
    if small is not None:
        other = TransformersModel(load_model(small, device=running.device, offline=running.offline, quiet=as_json))
        target = TransformersModel(loaded)
        drafts["draft model"] = Drafting(Model(other, Chain(8, Confidence()), by_rule=True, target=target), Fixed(8))
    prompts: list[Any] = []
    budget = max_new_tokens
    for item in items:
        asked = item.text if read.schema is None else extraction_request(running.model, read.schema, item.text)
        _, ids = as_asked(asked, loaded.tokenizer)
        budget = min(budget, budget_for(loaded, constraint, len(ids), max_new_tokens))
        prompts.append(ids)
    with counting("measuring", len(prompts), quiet=as_json) as advance:
        lines = measure_drafts(
            loaded, prompts, [constraint] * len(prompts), drafts, max_tokens=budget, done=lambda _: advance(1)
        )
    if as_json:
        print_json({"model": running.model, "texts": len(prompts), "ways": [_record(line, lines[0]) for line in lines]})
    else:
        _show(lines)


def _record(line: Line, plain: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "tokens": line.tokens,
        "passes": line.passes,
        "passes_per_token": round(line.passes_per_token, 4),
        "acceptance": None if line.acceptance is None else round(line.acceptance, 4),
        "tokens_per_second": round(line.tokens_per_second, 1),
        "speed": round(line.tokens_per_second / plain.tokens_per_second, 3) if plain.tokens_per_second else None,
        "different_texts": line.different,
    }


def _show(lines: list[Line]) -> None:
    from rich.table import Table

    table = Table()
    table.add_column("decoding")
    for name in ("passes per token", "acceptance", "tokens per second", "speed"):
        table.add_column(name, justify="right")
    for line in lines:
        acceptance = "" if line.acceptance is None else f"{line.acceptance:.2f}"
        speed = f"{line.tokens_per_second / lines[0].tokens_per_second:.2f}" if lines[0].tokens_per_second else ""
        table.add_row(
            line.name, f"{line.passes_per_token:.3f}", acceptance, f"{line.tokens_per_second:.1f}", f"{speed} x"
        )
    stdout_console().print(table)
    for line in lines:
        if line.different:
            print_note(
                f"{line.name}: {line.different} of {line.texts} texts differ from plain decoding, which happens where "
                "two tokens score the same but for rounding"
            )
