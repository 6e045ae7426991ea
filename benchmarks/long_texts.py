"""Long texts: does a mask at token 10,000 cost what it cost at the first?"""

from __future__ import annotations

import json
import random
import time
from typing import Any

import numpy as np
from engines import Engine, open_engines
from figures import ratio, turns
from maskbench_rows import load_tokenizer
from masks import DEFAULT, warm_up
from results import Bar, Curves, Progress, Result, Setting, Table, rounded

TITLE = "Long outputs: time per mask by position"
ABOUT = "texts of 10,000 tokens: an array of records, and one string"
NEEDS_DATA = False

WINDOW = 500

WORDS = ["the", "quick", "measure", "of", "what", "is", "long", "and", "never", "twice", "same,", "or", "nearly", "so"]

RECORDS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string", "maxLength": 60},
            "tags": {"type": "array", "items": {"type": "string"}},
            "position": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
            "state": {"enum": ["new", "open", "closed"]},
        },
        "required": ["id", "name", "tags", "position", "state"],
    },
}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def texts(tokenizer: Any, n_tokens: int, seed: int) -> dict[str, tuple[Any, list[int]]]:
    """Schemas with the first ``n_tokens`` of an instance."""
    rnd = random.Random(seed)

    def phrase(n: int) -> str:
        return " ".join(rnd.choice(WORDS) for _ in range(n))

    records = []
    while len(records) < n_tokens // 40 + 1:
        position = {"x": rnd.random(), "y": rnd.randrange(1000)}
        record = {"id": rnd.randrange(10**6), "name": phrase(4), "tags": [phrase(1) for _ in range(rnd.randrange(4))]}
        records.append({**record, "position": position, "state": rnd.choice(["new", "open", "closed"])})
    found = {}
    for name, schema, value in (
        ("array of records", RECORDS, records), ("one string", TEXT, {"text": phrase(2 * n_tokens)}),
    ):  # fmt: skip
        tokens = tokenizer.encode(json.dumps(value), add_special_tokens=False)
        found[name] = (schema, tokens[:n_tokens])
    return found


def by_position(engine: Engine, schema: Any, tokens: list[int]) -> list[float]:
    """Microseconds of mask and step at each token."""
    matcher = engine.compile(schema).start()
    clock = time.perf_counter
    times = []
    for token in tokens:
        began = clock()
        matcher.mask()
        matcher.step(token)
        times.append(1e6 * (clock() - began))
    return times


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite: medians over windows of `WINDOW` tokens, the least of three passes."""
    tokenizer = load_tokenizer(setting.tokenizer)
    n_tokens = 4000 if setting.quick else 10_000
    engines = open_engines([name for name in DEFAULT if name in setting.engines], tokenizer)
    for engine in engines:
        warm_up(engine, tokenizer)
    passes = 2 if setting.quick else 3
    tables, curves, bars = [], [], []
    subjects = texts(tokenizer, n_tokens, setting.seed)
    with progress.steps("passes", passes * len(subjects) * len(engines)) as step:
        for subject, (schema, tokens) in subjects.items():
            found: dict[str, list[list[float]]] = {engine.name: [] for engine in engines}
            for number in range(passes):
                for engine in turns(engines, number):
                    step(f"{subject}, {engine.name}")
                    found[engine.name].append(by_position(engine, schema, tokens))
            least = {name: np.minimum.reduce([np.asarray(one) for one in times]) for name, times in found.items()}
            starts = range(0, len(tokens) - WINDOW + 1, WINDOW)
            lines = {
                name: [[start + WINDOW / 2, float(np.median(times[start : start + WINDOW]))] for start in starts]
                for name, times in least.items()
            }
            rows = [
                [name, *(rounded(value) for value in (
                    lines[name][0][1], lines[name][-1][1], float(times.mean()),
                    float(np.percentile(found[name][0], 99)), max(found[name][0]))),
                 ratio(lines[name][-1][1], lines[name][0][1])]
                for name, times in least.items()
            ]  # fmt: skip
            columns = ["engine", f"first {WINDOW}", f"last {WINDOW}", "mean", "first pass, p99", "first pass, max"]
            tables.append(
                Table(f"{subject}, {len(tokens)} tokens: us per mask and step", [*columns, "last / first"], rows)
            )
            curves.append(Curves(f"{subject}: median time per mask and step", "position", "us", lines, log_x=False))
            if "guided" in lines:
                grown = ratio(lines["guided"][-1][1], lines["guided"][0][1])
                bars.append(Bar(f"{subject}: the last {WINDOW} tokens' median, of the first's", grown, 1.5, "x"))
    return Result(tables, curves, bars)
