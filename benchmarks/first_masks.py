"""Time to first mask, of a schema that is new and of one that was seen, and where guided's goes."""

from __future__ import annotations

import gc
import time
from typing import Any

from engines import Engine, open_engines
from figures import percentiles, ratio, time_limit, turns
from maskbench_rows import choose, load_rows, load_tokenizer
from masks import warm_up
from results import Bar, Progress, Result, Setting, Table, spread_row

TITLE = "Compiling: time to first mask of new schemas and of schemas seen before"
ABOUT = "from a schema as data to its first mask: new, and again in the same process; guided's stages"
NEEDS_DATA = True

COLUMNS = ("n", "mean", "p50", "p90", "p99", "max")


def first_mask(engine: Engine, schema: Any) -> float:
    """Microseconds of this thread from the schema to the mask of its first token; processor time, not elapsed."""
    began = time.thread_time()
    engine.compile(schema).start().mask()
    return (time.thread_time() - began) * 1e6


def stages(engine: Any, schema: Any) -> dict[str, float]:
    """Guided's way from the schema to the first mask, in microseconds."""
    clock, guided = time.thread_time, engine.guided
    began = clock()
    grammar = guided.json_schema(schema)
    parsed = clock()
    constraint = guided.compile(grammar, engine.vocabulary)
    compiled = clock()
    constraint.fill_mask(constraint.start, engine.row)
    filled = clock()
    times = {"schema to grammar": parsed - began, "compile": compiled - parsed, "first mask": filled - compiled}
    return {name: 1e6 * seconds for name, seconds in times.items()}


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite.

    A schema is measured new by each engine and at once again, so that it is among what engines remember; of schemas
    that only guided sees, each stage.
    """
    assert setting.data is not None
    tokenizer = load_tokenizer(setting.tokenizer)
    rows = choose(load_rows(setting.data), 2 if setting.quick else 20, setting.seed + 1)
    engines = open_engines([name for name in setting.engines if name != "outlines-core"], tokenizer, remembers=True)
    outlines = open_engines([name for name in setting.engines if name == "outlines-core"], tokenizer)
    for engine in engines:
        warm_up(engine, tokenizer)
    new: dict[str, list[float]] = {engine.name: [] for engine in (*engines, *outlines)}
    again: dict[str, list[float]] = {engine.name: [] for engine in (*engines, *outlines)}
    missing = dict.fromkeys(new, 0)
    # Outlines builds the index of a schema's whole regular expression first: seconds to minutes, so it gets few rows.
    few = 2 if setting.quick else 10
    with progress.steps("schemas", len(rows)) as step:
        for number, row in enumerate(rows):
            step(row["id"])
            taking = [*turns(engines, number), *(outlines if number % max(len(rows) // few, 1) == 0 else [])]
            for engine in taking:
                gc.collect()
                try:
                    with time_limit(6 if setting.quick else 30):
                        new[engine.name].append(first_mask(engine, row["schema"]))
                        again[engine.name].append(first_mask(engine, row["schema"]))
                except Exception:  # refused, each in its own way, or too slow
                    missing[engine.name] += 1
    others = choose(load_rows(setting.data), 5 if setting.quick else 40, setting.seed + 2)
    parts: dict[str, list[float]] = {}
    guided = next((engine for engine in engines if engine.name == "guided"), None)
    for row in others if guided is not None else ():
        try:
            found = stages(guided, row["schema"])
        except Exception:  # a schema that guided refuses has no first mask
            continue
        for name, microseconds in found.items():
            parts.setdefault(name, []).append(microseconds)
    spread = {name: percentiles(times) for name, times in new.items()}
    spread_again = {name: percentiles(times) for name, times in again.items()}
    rows_new = [[*spread_row(name, found, COLUMNS), missing[name]] for name, found in spread.items()]
    tables = [
        Table("new schema, us to the first mask", ["engine", *COLUMNS, "refused or too slow"], rows_new),
        Table(
            "the same schema again, us to the first mask",
            ["engine", *COLUMNS],
            [spread_row(name, found, COLUMNS) for name, found in spread_again.items()],
            "What each engine remembers by default: guided its last constraints, xgrammar its compiled grammars.",
        ),
        Table(
            "guided, new schema, us by stage", ["stage", *COLUMNS],
            [spread_row(name, percentiles(times), COLUMNS) for name, times in parts.items()],
        ),
    ]  # fmt: skip
    bars = []
    if "llguidance" in spread and "guided" in spread:
        for column in ("p50", "p90", "p99"):
            share = ratio(spread["guided"].get(column), spread["llguidance"].get(column))
            bars.append(Bar(f"{column} time to first mask of new schemas, of llguidance's", share, 1, "x"))
    return Result(tables, [], bars, {"new_us": spread, "again_us": spread_again})
