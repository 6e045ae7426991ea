"""Growth with the schema: time to first mask and time per mask as properties or depth multiply."""

from __future__ import annotations

import gc
import json
import statistics
import time
from typing import Any

from engines import Engine, open_engines
from figures import ratio, time_limit, turns
from maskbench_rows import load_tokenizer, nested_schema, nested_value, wide_schema, wide_value
from masks import warm_up
from results import Bar, Curves, Progress, Result, Setting, Table, rounded

TITLE = "Growth with the schema: 10 to 10,000 properties, 10 to 300 levels"
ABOUT = "time to first mask and per mask of schemas that grow"
NEEDS_DATA = False

WIDTHS = [10, 30, 100, 300, 1000, 3000, 10_000]
DEPTHS = [10, 30, 100, 300]

READ = 400
"""Tokens of each instance that are read."""


def once(engine: Engine, schema: Any, tokens: list[int]) -> tuple[float, float]:
    """Microseconds of this thread to the first mask, and the mean per mask and step over the tokens.

    Processor time, not elapsed: a schema is read once, so there is no least of many to take on a busy machine.
    """
    clock = time.thread_time
    began = clock()
    compiled = engine.compile(schema)
    compiled.start().mask()
    first = clock() - began
    matcher = compiled.start()
    began = clock()
    for token in tokens:
        matcher.mask()
        if not matcher.allows(token):
            raise ValueError("a token of a valid instance is not allowed")
        matcher.step(token)
    return 1e6 * first, 1e6 * (clock() - began) / len(tokens)


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite: medians over a few schemas of each size, which differ in a title so that none was seen."""
    tokenizer = load_tokenizer(setting.tokenizer)
    engines = open_engines(setting.engines, tokenizer)
    for engine in engines:
        warm_up(engine, tokenizer)
    subjects = {
        "properties": (wide_schema, wide_value, WIDTHS[:5:2] if setting.quick else WIDTHS),
        "depth": (nested_schema, nested_value, DEPTHS[::2] if setting.quick else DEPTHS),
    }
    limit, repeats = (5, 2) if setting.quick else (60, 3)
    tables, curves, bars = [], [], []
    for subject, (schema_of, value_of, sizes) in subjects.items():
        rows: list[list[Any]] = []
        lines: dict[str, dict[str, list[list[float]]]] = {"first": {}, "mask": {}}
        out: set[str] = set()
        with progress.steps(subject, repeats * len(sizes)) as step:
            for size in sizes:
                tokens = tokenizer.encode(json.dumps(value_of(size)), add_special_tokens=False)[:READ]
                found: dict[str, list[tuple[float, float]]] = {engine.name: [] for engine in engines}
                for number in range(repeats):
                    step(f"{size}")
                    schema = {**schema_of(size), "title": f"number {number}"}
                    for engine in turns(engines, number):
                        # Who was too slow, or refused, gets no larger schema; outlines cannot be stopped from here.
                        if engine.name in out or (engine.name == "outlines-core" and size > 10):
                            continue
                        gc.collect()
                        try:
                            with time_limit(limit):
                                found[engine.name].append(once(engine, schema, tokens))
                        except Exception:  # refused, each in its own way, or too slow
                            out.add(engine.name)
                for name, times in found.items():
                    if not times:
                        rows.append([size, name, None, None])
                        continue
                    first, each = (statistics.median(column) for column in zip(*times, strict=True))
                    rows.append([size, name, rounded(first), rounded(each)])
                    lines["first"].setdefault(name, []).append([size, first])
                    lines["mask"].setdefault(name, []).append([size, each])
        note = f"-: refused, or not done within {limit} s; per mask and step: the mean of {READ} tokens, read once."
        tables.append(
            Table(f"{subject}: us", [subject, "engine", "to the first mask", "per mask and step"], rows, note)
        )
        curves.append(Curves(f"Time to first mask by {subject}", subject, "us", lines["first"]))
        curves.append(Curves(f"Time per mask and step by {subject}", subject, "us", lines["mask"]))
        ours = dict(map(tuple, lines["first"].get("guided", [])))
        theirs = dict(map(tuple, lines["first"].get("llguidance", [])))
        both = sorted(ours.keys() & theirs.keys())
        if both:
            share = ratio(ours[both[-1]], theirs[both[-1]])
            bars.append(Bar(f"time to first mask, {subject} {both[-1]}, of llguidance's", share, 1, "x"))
    return Result(tables, curves, bars)
