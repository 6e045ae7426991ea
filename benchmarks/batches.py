"""Batches: masks of every row and their application to the logits, 1 to 256 rows on one thread and on two."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

from engines import open_engines
from figures import time_limit, turns
from maskbench_rows import choose, load_rows, load_tokenizer
from masks import DEFAULT
from results import Bar, Curves, Progress, Result, Setting, Table, rounded

TITLE = "Batches: fill all masks, apply them to the logits"
ABOUT = "1 to 256 rows of different schemas, 1 and 2 threads: the step of a serving loop"
NEEDS_DATA = True

STEPS = 12
"""Tokens of each row that a pass reads."""


def different_rows(
    setting: Setting, tokenizer: Any, engines: list[Any], wanted: int, progress: Progress
) -> dict[str, list[tuple[Any, list[int]]]]:
    """For each engine schemas that it compiles and whose instance it reads for `STEPS` tokens: (compiled, tokens).

    The schemas are the same for all but xgrammar, which takes a second and more for one: it gets the first of them.
    """
    assert setting.data is not None
    rows = choose(load_rows(setting.data), 0, setting.seed)
    rows = [rows[(i * 7919) % len(rows)] for i in range(len(rows))]  # from all over the file: it is ordered by source
    slow = [engine for engine in engines if engine.name == "xgrammar"]
    quick = [engine for engine in engines if engine.name != "xgrammar"]
    found: dict[str, list[tuple[Any, list[int]]]] = {engine.name: [] for engine in engines}
    few = 6 if setting.quick else wanted // 2
    count = 0
    with progress.steps("schemas that all engines serve", wanted) as step:
        for row in rows:
            if count == wanted:
                break
            tests = [test for test in row["tests"] if test["valid"]]
            if not tests:
                continue
            tokens = tokenizer.encode(json.dumps(tests[0]["data"], ensure_ascii=False), add_special_tokens=False)
            if len(tokens) <= STEPS or len(json.dumps(row["schema"])) > 4000:
                continue
            tokens = tokens[:STEPS]
            compiled = serve(quick, row["schema"], tokens, 2)
            if compiled is None:
                continue
            step(row["id"])
            count += 1
            for engine, one in zip(quick, compiled, strict=True):
                found[engine.name].append((one, tokens))
            for engine in slow:
                own = serve([engine], row["schema"], tokens, 3) if len(found[engine.name]) < few else None
                if own is not None:
                    found[engine.name].append((own[0], tokens))
    return found


def serve(engines: list[Any], schema: Any, tokens: list[int], limit: int) -> list[Any] | None:
    """The schema compiled by each engine; None where one refuses it or the tokens, or is too slow."""
    try:
        with time_limit(limit):
            compiled = [engine.compile(schema) for engine in engines]
            for one in compiled:
                matcher = one.start()
                for token in tokens:
                    matcher.mask()
                    if not matcher.allows(token):
                        return None
                    matcher.step(token)
    except Exception:  # refused, each in its own way, or too slow
        return None
    return compiled


def walk(batch: Any, compiled: Sequence[Any], texts: Sequence[list[int]]) -> tuple[list[float], list[float]]:
    """One pass over all rows' texts: microseconds of each step's filling, and of its applying."""
    clock = time.perf_counter
    matchers = [one.start() for one in compiled]
    filling, applying = [], []
    for position in range(STEPS):
        began = clock()
        batch.fill(matchers)
        filled = clock()
        batch.apply()
        applied = clock()
        filling.append(1e6 * (filled - began))
        applying.append(1e6 * (applied - filled))
        for matcher, tokens in zip(matchers, texts, strict=True):
            matcher.step(tokens[position])
    return filling, applying


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite: each size and engine in turn, again and again, and the least of each step's times.

    The least, since with two threads on a shared machine every other figure says more about its other work.
    """
    import torch

    torch.set_num_threads(1)
    tokenizer = load_tokenizer(setting.tokenizer)
    sizes = [1, 8, 64, 256] if setting.quick else [1, 2, 4, 8, 16, 32, 64, 128, 256]
    engines = open_engines([name for name in DEFAULT if name in setting.engines], tokenizer)
    served = different_rows(setting, tokenizer, engines, 64 if setting.quick else 128, progress)
    engines = [engine for engine in engines if served[engine.name]]
    passes = 5 if setting.quick else 15
    least: dict[tuple[str, int, int], tuple[float, float]] = {}
    median: dict[tuple[str, int, int], float] = {}
    first: dict[tuple[str, int, int], float] = {}
    with progress.steps("sizes", 2 * len(sizes)) as step:
        for threads in (1, 2):
            for size in sizes:
                step(f"{size} rows, {threads} threads")
                batches = {engine.name: engine.batch(size, threads) for engine in engines}
                taken = {name: [rows[i % len(rows)] for i in range(size)] for name, rows in served.items()}
                times: dict[str, list[tuple[list[float], list[float]]]] = {name: [] for name in batches}
                for turn in range(passes + 1):
                    for name in turns(list(batches), turn):
                        compiled, texts = zip(*taken[name], strict=True)
                        times[name].append(walk(batches[name], compiled, texts))
                for name in batches:
                    key = name, size, threads
                    first[key] = statistics.mean(a + b for a, b in zip(*times[name][0], strict=True))
                    warm = times[name][1:]
                    filling = statistics.mean(min(one[0][i] for one in warm) for i in range(STEPS))
                    applying = statistics.mean(min(one[1][i] for one in warm) for i in range(STEPS))
                    least[key] = filling, applying
                    median[key] = statistics.median(a + b for one in warm for a, b in zip(*one, strict=True))
    names = [engine.name for engine in engines]
    rows: list[list[Any]] = []
    for size in sizes:
        for threads in (1, 2):
            for name in names:
                key = name, size, threads
                cells = (*least[key], sum(least[key]), median[key], first[key])
                rows.append([size, threads, name, *(rounded(value) for value in cells)])
    table = Table(
        "us for one step of a batch; different schemas: "
        + ", ".join(f"{name} {len(rows)}" for name, rows in served.items()),
        ["rows", "threads", "engine", "masks", "apply", "both", "both, median", "both, first pass"],
        rows,
        f"{STEPS} tokens of each row. Masks, apply and both: the least of several passes for each step, then the mean "
        "over the steps. The engines take turns. llguidance's masks are applied by xgrammar's CPU kernel, which is "
        "single-threaded.",
    )
    curves = Curves(
        "One step of a batch: masks and apply", "rows", "us",
        {f"{name}, {threads} threads": [[size, sum(least[name, size, threads])] for size in sizes]
         for name in names for threads in (1, 2)},
    )  # fmt: skip
    measured = sum(least["guided", 64, 2]) if ("guided", 64, 2) in least else None
    bar = Bar("64 rows of different schemas, masks and apply, warm, 2 threads", rounded(measured), 1000, "us")
    return Result([table], [curves], [bar])
