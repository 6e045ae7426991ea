"""Measure guided beside its peers and write a report: `python benchmarks/run.py --quick`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from engines import ENGINES
from report import as_text, write_report
from results import Result, Setting
from suite import PARTS, about, kept, module_of, run_part

EPILOGUE = """
**Examples**

    python benchmarks/run.py --quick                        # everything, in minutes
    python benchmarks/run.py                                # everything, about an hour; may be stopped and gone on with
    python benchmarks/run.py --only batch --only generate   # two parts, added to the report of the others
    python benchmarks/run.py --engine guided --engine llguidance
    python benchmarks/run.py --list                         # the parts

Every part runs in a process of its own and leaves a file in the output folder. A part that was measured with the same
commit and options is not measured again; `--fresh` does. The report is made of all parts that are there.
"""


def main(
    only: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Measure this part only; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer schemas, sizes and repetitions: minutes.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what an earlier run left.")] = False,
    out: Annotated[Path, typer.Option(help="Where parts and report go.")] = Path("build/benchmarks"),
    data: Annotated[Path | None, typer.Option(help="MaskBench's rows; maskbench-dev.jsonl.gz in $GUIDED_DATA.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A tokenizer's folder; tokenizers/llama3 in $GUIDED_DATA.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A small model for generate; models/stories260K in $GUIDED_DATA.")
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An engine to measure; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which of the schemas are drawn.")] = 0,
    show_parts: Annotated[bool, typer.Option("--list", help="List the parts and end.")] = False,
) -> None:
    """Measure guided beside its peers, and write figures, plots and which bars hold to one report.

    All engines of a part get the same schemas and tokens in one process and take turns, so that their ratios mean
    something on a machine that does other work as well; absolute times do not.
    """
    if show_parts:
        for part, line in about().items():
            typer.echo(f"{part:12} {line}")
        return
    chosen = list(dict.fromkeys(only or PARTS))
    # outlines-core's indices take a minute and more each, in native code that no time limit stops.
    usual = [name for name in ENGINES if not (quick and name == "outlines-core")]
    engines = tuple(dict.fromkeys(engine or usual))
    for given, known, what in ((chosen, PARTS, "--only"), (engines, ENGINES, "--engine")):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise typer.BadParameter(f"{', '.join(unknown)} is none of {', '.join(known)}", param_hint=what)
    setting = _setting(data, tokenizer, model, engines, quick, seed)
    folder = out / "quick" if quick else out
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    measured: dict[str, dict[str, Any]] = {}
    for number, part in enumerate(chosen, 1):
        module = module_of(part)
        place = f"[{number}/{len(chosen)}] {part}"
        if module.NEEDS_DATA and setting.data is None:
            typer.echo(f"{place}: left out, it needs MaskBench's rows (--data or $GUIDED_DATA)", err=True)
            continue
        record = None if fresh else kept(folder, part, setting)
        if record is not None:
            typer.echo(f"{place}: measured before ({record['seconds']:.0f} s); --fresh measures it again", err=True)
            continue
        typer.echo(f"{place}: {module.ABOUT}", err=True)
        began = time.monotonic()
        try:
            record = run_part(folder, part, setting)
        except RuntimeError as error:
            failed.append(part)
            typer.echo(f"{place}: {error}", err=True)
            continue
        measured[part] = record
        bars = Result.from_json(record["result"]).bars
        typer.echo(
            f"{place}: {time.monotonic() - began:.0f} s, {sum(bar.holds for bar in bars)} of {len(bars)} bars hold",
            err=True,
        )
        for bar in bars:
            if not bar.holds:
                typer.echo(
                    f"    {bar.what}: {as_text(bar.measured)} {bar.unit}, at most {as_text(bar.allowed)}", err=True
                )
    records = [
        record for part in PARTS if (record := measured.get(part) or kept(folder, part, setting, any_commit=True))
    ]
    if records:
        typer.echo(str(write_report(folder, records)))
    if failed or not records:
        raise typer.Exit(1)


def _setting(
    data: Path | None, tokenizer: Path | None, model: Path | None, engines: tuple[str, ...], quick: bool, seed: int
) -> Setting:
    """The paths given, or those of the data folder."""
    root = Path(__file__).resolve().parent.parent
    home = Path(os.environ.get("GUIDED_DATA") or root.parent / "shared" / "data")
    for given in (data, tokenizer, model):
        if given is not None and not given.exists():
            raise typer.BadParameter(f"{given} does not exist")
    found = {
        "data": data or home / "maskbench-dev.jsonl.gz",
        "tokenizer": tokenizer or home / "tokenizers" / "llama3",
        "model": model or home / "models" / "stories260K",
    }
    there = {name: path.resolve() if path.exists() else None for name, path in found.items()}
    if there["tokenizer"] is None:
        raise typer.BadParameter("there is no tokenizer: pass a folder, or set GUIDED_DATA", param_hint="--tokenizer")
    return Setting(there["tokenizer"], there["data"], there["model"], engines, quick, seed)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    app.command(epilog=EPILOGUE)(main)
    app(prog_name=os.path.relpath(sys.argv[0]))
