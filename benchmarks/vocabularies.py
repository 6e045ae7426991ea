"""Growth with the vocabulary: 32,000 to 256,000 tokens, those beyond what is at hand made of joined words."""

from __future__ import annotations

import gc
import json
import statistics
import time
from typing import Any

from engines import Engine, open_engines
from figures import turns
from growth import once
from long_texts import RECORDS
from maskbench_rows import load_tokenizer, resized_tokenizer
from masks import DEFAULT
from results import Curves, Progress, Result, Setting, Table, rounded

TITLE = "Growth with the vocabulary: 32,000 to 256,000 tokens"
ABOUT = "loading a vocabulary, time to first mask and per mask, by its size"
NEEDS_DATA = False

VALUE = [
    {"id": 20 + i, "name": "a name of some words", "tags": ["one", "another one"], "position": {"x": 0.25, "y": 17 * i},
     "state": "open"}
    for i in range(8)
]  # fmt: skip


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite: medians; each repetition has a schema that no engine has seen."""
    source = load_tokenizer(setting.tokenizer)
    thousands = [32, 256] if setting.quick else [32, 64, 96, 128, 192, 256]
    repeats = 2 if setting.quick else 7
    names = [name for name in DEFAULT if name in setting.engines]
    rows: list[list[Any]] = []
    lines: dict[str, dict[str, list[list[float]]]] = {"load": {}, "first": {}, "mask": {}}
    with progress.steps("sizes", len(thousands)) as step:
        for size in (1000 * n for n in thousands):
            step(f"{size} tokens")
            tokenizer = resized_tokenizer(source, size)
            load: dict[str, float] = {}
            engines: list[Engine] = []
            for name in names:
                gc.collect()
                began = time.perf_counter()
                engines += open_engines([name], tokenizer)
                load[name] = 1e6 * (time.perf_counter() - began)
            found: dict[str, list[tuple[float, float]]] = {engine.name: [] for engine in engines}
            tokens = tokenizer.encode(json.dumps(VALUE), add_special_tokens=False)
            for number in range(repeats + 1):
                for engine in turns(engines, number):
                    gc.collect()
                    found[engine.name].append(once(engine, {**RECORDS, "title": f"number {number}"}, tokens))
            for engine in engines:
                name = engine.name
                cold = found[name][0]
                first, each = (statistics.median(column) for column in zip(*found[name][1:], strict=True))
                cells = (load[name], cold[0], cold[1], first, each)
                rows.append([size, name, *(rounded(value) for value in cells)])
                for kind, value in (("load", load[name]), ("first", first), ("mask", each)):
                    lines[kind].setdefault(name, []).append([size, value])
    columns = ["tokens", "engine", "load", "very first mask", "very first text, per mask", "first mask", "per mask"]
    note = (
        "The very first mask and text of a process pay for what an engine then shares between schemas. Loading is from "
        "a tokenizer of transformers; guided's first time builds what its disk cache holds later."
    )
    curves = [
        Curves("Loading a vocabulary", "tokens", "us", lines["load"]),
        Curves("Time to first mask by vocabulary", "tokens", "us", lines["first"]),
        Curves("Time per mask and step by vocabulary", "tokens", "us", lines["mask"]),
    ]
    return Result([Table("vocabulary sizes: us", columns, rows, note)], curves)
