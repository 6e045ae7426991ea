"""Masks for JSON Schema, side by side: guided, llguidance and xgrammar on the same schema, instance and tokens.

One process, engines interleaved schema by schema and in an order that rotates, so that a slow minute of the machine
hits all alike.  What is timed: from the schema to the first mask; and per token, the mask and the step together.  What
is counted: instances accepted and refused rightly and wrongly, schemas refused when compiling.

    python benchmarks/masks.py --data maskbench-dev.jsonl.gz --tokenizer llama3/ --per-split 30 --out masks.json
"""

from __future__ import annotations

import gc
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from engines import Engine, GuidedEngine, open_engines, read
from figures import TooSlow, machine, percentiles, ratio, time_limit, turns
from maskbench_rows import choose, load_rows, load_tokenizer
from results import Bar, Progress, Result, Setting, Table, spread_row

TITLE = "Masks and time to first mask on MaskBench's schemas"
ABOUT = "time per mask and step, time to first mask, and what is answered, for each engine"
NEEDS_DATA = True

Clock = Callable[[], float]

DEFAULT = ("guided", "llguidance", "xgrammar")
COLUMNS = ("n", "mean", "p50", "p90", "p99", "p99.9", "max")
OUTCOMES = ("right", "false accept", "false reject", "other key order", "crashed")


@dataclass
class Score:
    """What one engine did: microseconds, and ids of rows by outcome."""

    first_mask_us: dict[str, float] = field(default_factory=dict)
    """By the id of the row."""
    mask_us: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    instances: Counter[str] = field(default_factory=Counter)
    rows: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    refusals: dict[str, str] = field(default_factory=dict)

    def note(self, outcome: str, row: str) -> None:
        """Count an instance."""
        self.instances[outcome] += 1
        self.rows[outcome].append(row)


def measure_row(
    engine: Engine, score: Score, row: dict[str, Any], tests: list[tuple[bool, list[int]]], end: int, clock: Clock
) -> None:
    """One schema and its instances through one engine."""
    began = clock()
    try:
        compiled = engine.compile(row["schema"])
        compiled.start().mask()
    except TooSlow:
        raise
    except Exception as error:  # peers raise plain RuntimeError and ValueError for what they do not support
        score.rows["refused"].append(row["id"])
        score.refusals[row["id"]] = f"{type(error).__name__}: {error}"[:300]
        return
    score.first_mask_us[row["id"]] = (clock() - began) * 1e6
    for valid, tokens in tests:
        try:
            accepted = read(compiled.start(), tokens, end, score.mask_us[row["id"]], clock)
        except TooSlow:
            raise
        except Exception as error:
            score.note("crashed", row["id"])
            score.refusals[row["id"]] = f"{type(error).__name__}: {error}"[:300]
            continue
        if accepted == valid:
            score.note("right", row["id"])
        elif accepted:
            score.note("false accept", row["id"])
        elif isinstance(engine, GuidedEngine) and engine.reads_in_other_order(row["schema"], tokens):
            score.note("other key order", row["id"])
        else:
            score.note("false reject", row["id"])


def warm_up(engine: Engine, tokenizer: Any) -> None:
    """Whatever an engine does once per process, such as compiling its code, is not measured."""
    schema = {"type": "object", "properties": {"warm": {"type": "string", "maxLength": 9}, "up": {"type": "number"}}}
    tokens = tokenizer.encode('{"warm": "up", "up": 1, "x": [{}, null]}', add_special_tokens=False)
    read(engine.compile(schema).start(), tokens, 0, [])


def compare(
    rows: Sequence[dict[str, Any]],
    tokenizer: Any,
    engines: Sequence[Engine],
    limit: int,
    progress: Progress,
    clock: Clock = time.perf_counter,
) -> dict[str, Score]:
    """Every row through every engine, in turns."""
    end = tokenizer.eos_token_id
    if end is None:
        raise SystemExit("the tokenizer has no end-of-text id: pass a folder with its tokenizer_config.json")
    for engine in engines:
        warm_up(engine, tokenizer)
    scores = {engine.name: Score() for engine in engines}
    with progress.steps("schemas", len(rows)) as step:
        for number, row in enumerate(rows):
            step(row["id"])
            texts = [(test["valid"], json.dumps(test["data"], ensure_ascii=False)) for test in row["tests"]]
            tests = [(valid, tokenizer.encode(text, add_special_tokens=False)) for valid, text in texts]
            for engine in turns(engines, number):
                gc.collect()
                try:
                    with time_limit(limit):
                        measure_row(engine, scores[engine.name], row, tests, end, clock)
                except TooSlow:
                    scores[engine.name].rows["timed out"].append(row["id"])
    return scores


def times_of(score: Score, rows: Iterable[str]) -> dict[str, dict[str, float]]:
    """Percentiles over some of an engine's rows."""
    rows = [row for row in rows if row in score.first_mask_us]
    return {
        "first_mask_us": percentiles([score.first_mask_us[row] for row in rows]),
        "mask_us": percentiles([time for row in rows for time in score.mask_us.get(row, ())]),
    }


def summary(score: Score) -> dict[str, Any]:
    """An engine's score as JSON."""
    return {
        **times_of(score, score.first_mask_us),
        "instances": dict(score.instances),
        "rows": {outcome: sorted(set(ids)) for outcome, ids in score.rows.items() if outcome != "right"},
        "refusals": score.refusals,
    }


def tables(engines: dict[str, Any], n_schemas: int) -> list[Table]:
    """Outcomes, time to first mask, time per mask and step."""
    counts = [
        [name, *(one["instances"].get(outcome, 0) for outcome in OUTCOMES)]
        + [len(one["rows"].get(kind, ())) for kind in ("refused", "timed out")]
        for name, one in engines.items()
    ]
    found = [
        Table(
            f"{n_schemas} schemas, instances by outcome", ["engine", *OUTCOMES, "schemas refused", "timed out"], counts
        )
    ]
    for key, title in (("first_mask_us", "time to first mask, us"), ("mask_us", "time per mask and step, us")):
        found.append(
            Table(title, ["engine", *COLUMNS], [spread_row(n, one[key], COLUMNS) for n, one in engines.items()])
        )
    return found


ALLOWED = {
    "llguidance": {
        "mask_us": {"mean": 1 / 4, "p50": 1 / 3, "p99": 1 / 5, "p99.9": 1 / 5, "max": 1 / 2},
        "first_mask_us": {"p50": 1, "p90": 1, "p99": 1},
    },
    "xgrammar": {"mask_us": {"mean": 1 / 4}, "first_mask_us": {"p50": 1 / 100}},
}
"""What guided's time may be at most, as a share of the peer's."""


def compared(scores: dict[str, Score]) -> tuple[list[Bar], Table]:
    """Our figures as shares of each peer's, over the rows that both answer; and over how many that is."""
    found = []
    counts = []
    words = {"mask_us": "per mask and step", "first_mask_us": "to first mask"}
    for peer, kinds in ALLOWED.items():
        if peer not in scores or "guided" not in scores:
            continue
        both = scores["guided"].first_mask_us.keys() & scores[peer].first_mask_us.keys()
        both -= {*scores["guided"].rows["timed out"], *scores[peer].rows["timed out"]}
        ours, theirs = times_of(scores["guided"], both), times_of(scores[peer], both)
        only = scores[peer].first_mask_us.keys() - scores["guided"].first_mask_us.keys()
        counts.append([peer, len(both), len(scores["guided"].first_mask_us.keys() - both), len(only)])
        for kind, limits in kinds.items():
            for column, allowed in limits.items():
                share = ratio(ours[kind].get(column), theirs[kind].get(column))
                found.append(Bar(f"{column} time {words[kind]}, of {peer}'s", share, round(allowed, 3), "x"))
    return found, Table("schemas that are compared", ["peer", "both answer", "only guided", "only the peer"], counts)


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite."""
    assert setting.data is not None
    tokenizer = load_tokenizer(setting.tokenizer)
    # What any engine takes to compile one schema is limited, or a few of xgrammar's take the time of all.
    rows = choose(load_rows(setting.data), 2 if setting.quick else 30, setting.seed)
    engines = open_engines([name for name in DEFAULT if name in setting.engines], tokenizer)
    scores = compare(rows, tokenizer, engines, 6 if setting.quick else 30, progress, time.thread_time)
    found = {name: summary(score) for name, score in scores.items()}
    bars, counts = compared(scores)
    return Result([*tables(found, len(rows)), counts], [], bars, {"schemas": len(rows), "engines": found})


def show(found: Sequence[Table]) -> None:
    """Tables on the terminal."""
    from report import as_text
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console()
    for table in found:
        shown = RichTable(title=table.title, title_justify="left")
        for number, column in enumerate(table.columns):
            shown.add_column(column, justify="right" if number else "left")
        for row in table.rows:
            shown.add_row(*(as_text(cell) for cell in row))
        console.print(shown)


def main(
    data: Annotated[Path, typer.Option(exists=True, help="Rows {id, schema, tests: [{valid, data}]}, .jsonl[.gz].")],
    tokenizer: Annotated[Path, typer.Option(exists=True, help="A tokenizer's folder, or its tokenizer.json.")],
    engines: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(DEFAULT),
    per_split: Annotated[int, typer.Option(help="Schemas from each part of the data; 0: all.")] = 30,
    seed: Annotated[int, typer.Option(help="Which schemas are taken.")] = 0,
    limit: Annotated[int, typer.Option(help="Seconds for one schema in one engine.")] = 30,
    processor_time: Annotated[
        bool, typer.Option("--processor-time", help="Time of the thread, not elapsed: for machines that do other work.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write everything as JSON.")] = None,
) -> None:
    """Masks for JSON Schema, side by side, on the same schema, instance and tokens.

    Times compare within one run: engines take turns schema by schema. `benchmarks/run.py` runs this and all the rest.
    """
    names = engines.split(",")
    unknown = [name for name in names if name not in DEFAULT]
    if unknown:
        raise typer.BadParameter(f"no engine {', '.join(unknown)}; there are {', '.join(DEFAULT)}")
    facts = machine()
    loaded = load_tokenizer(tokenizer)
    rows = choose(load_rows(data), per_split, seed)
    typer.echo(f"{len(rows)} schemas, {len(loaded)} tokens, engines: {engines}")
    clock = time.thread_time if processor_time else time.perf_counter
    scores = compare(rows, loaded, open_engines(names, loaded), limit, Progress("masks"), clock)
    found = {name: summary(score) for name, score in scores.items()}
    show(tables(found, len(rows)))
    if out:
        chosen = {"data": data, "tokenizer": tokenizer, "engines": engines, "per_split": per_split, "seed": seed}
        chosen["processor_time"] = processor_time
        options = {name: str(value) for name, value in {**chosen, "limit": limit}.items()}
        record = {"machine": facts, "options": options, "schemas": len(rows), "engines": found}
        out.write_text(json.dumps(record, indent=1, ensure_ascii=False))
        typer.echo(f"written to {out}")


if __name__ == "__main__":
    typer.run(main)
