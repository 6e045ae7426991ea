"""Memory: the vocabulary, one constraint, many constraints at once; each figure from a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from engines import open_engines
from figures import time_limit
from maskbench_rows import choose, load_rows, load_tokenizer
from masks import DEFAULT
from results import Bar, Progress, Result, Setting, Table

TITLE = "Memory: vocabulary, one constraint, a thousand constraints"
ABOUT = "resident memory of fresh processes that hold them"
NEEDS_DATA = True

BYTES = 1e6


def resident() -> float:
    """Megabytes (10^6 bytes) that this process has in memory; 0 where the system does not say.

    Memory that was freed is given back first (glibc keeps it), or what is made next would seem to take none.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / BYTES


def hold(name: str, setting: Setting, count: int) -> dict[str, Any]:
    """What one engine takes, in this process: before, with its vocabulary, with one constraint, with ``count``.

    Each constraint has made its first mask and read a whole instance.  Before the vocabulary is counted, whatever the
    engine loads once (compiled code among it) has been loaded by way of a vocabulary of 257 tokens.
    """
    import guided

    tokenizer = load_tokenizer(setting.tokenizer)
    rows = choose(load_rows(setting.data), 0, setting.seed) if setting.data else []
    rows = [rows[(i * 7919) % len(rows)] for i in range(len(rows))]  # from all over the file: it is ordered by source
    taken = []
    for row in rows:
        tests = [test for test in row["tests"] if test["valid"]]
        if tests:
            text = json.dumps(tests[0]["data"], ensure_ascii=False)
            taken.append((row["schema"], tokenizer.encode(text, add_special_tokens=False)))
        if len(taken) >= 2 * count:
            break
    del rows
    if name == "guided":
        small = guided.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
        constraint = guided.compile(guided.json_schema({"type": "object"}), small)
        constraint.fill_mask(constraint.start, np.zeros(small.n_words, np.uint32))
        constraint.advance_bytes(constraint.start, b'{"a": [1, null]}')
    found = {"before": resident()}
    engine = open_engines([name], tokenizer)[0]
    if name == "guided":
        _ = engine.vocabulary.trie, engine.vocabulary.spelling  # type: ignore[attr-defined]
    found["vocabulary"] = resident() - found["before"]
    if name == "guided":
        # What reading the tokenizer had freed is taken again, so the process grows by less than the arrays are.
        found["vocabulary"] = max(found["vocabulary"], _array_bytes(engine.vocabulary) / BYTES)  # type: ignore[attr-defined]
    loaded = resident()
    held: list[Any] = []
    refused = 0
    for schema, tokens in taken:
        try:
            with time_limit(10):
                compiled = engine.compile(schema)
                matcher = compiled.start()
                for token in tokens:
                    matcher.mask()
                    if not matcher.allows(token):
                        break
                    matcher.step(token)
        except Exception:  # refused, each in its own way, or too slow
            refused += 1
            continue
        held.append((compiled, matcher))
        if len(held) == 1:
            found["one constraint"] = resident() - loaded
        if len(held) == count // 2:
            found["half of them"], found["half"] = resident() - loaded, len(held)
        if len(held) == count:
            break
    found["constraints"] = resident() - loaded
    if name == "guided":
        machines = {id(compiled.constraint): compiled.constraint._machine for compiled, _ in held}.values()
        found["of which tables"] = sum(machine.n_bytes for machine in machines) / BYTES
        rows_kept = sum(len(compiled.constraint._masks) - 2 for compiled, _ in held)
        found["of which remembered masks"] = rows_kept * 4 * engine.vocabulary.n_words / BYTES  # type: ignore[attr-defined]
    return {**found, "held": len(held), "refused": refused}


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite: one fresh process for each engine."""
    count = 100 if setting.quick else 1000
    names = [name for name in DEFAULT if name in setting.engines]
    found: dict[str, dict[str, Any]] = {}
    with progress.steps("engines", len(names)) as step:
        for name in names:
            step(name)
            # A compiled grammar of xgrammar takes a second: a tenth as many of them say as much.
            asked = count // 10 if name == "xgrammar" else count
            request = json.dumps([name, setting.as_json(), asked])
            done = subprocess.run(
                [sys.executable, __file__, request],
                capture_output=True,
                text=True,
                check=False,
                cwd=Path(__file__).parent,
            )
            if done.returncode:
                raise RuntimeError(f"the process that holds {name}'s constraints failed:\n{done.stderr[-2000:]}")
            found[name] = json.loads(done.stdout.splitlines()[-1])
    columns = ["vocabulary", "one constraint", "constraints", "held", "of which tables", "of which remembered masks"]
    rows = [[name, *(_round(one.get(column)) for column in columns)] for name, one in found.items()]
    for row, one in zip(rows, found.values(), strict=True):
        row.append(_round(_of_a_thousand(one)))
    table = Table(
        "MB of resident memory", ["engine", *columns, "per 1,000 constraints"], rows,
        "Every constraint has read a whole instance of its schema, masks included.",
    )  # fmt: skip
    bars = []
    if "guided" in found:
        ours = found["guided"]
        bars.append(Bar("vocabulary", _round(ours["vocabulary"]), 60, "MB"))
        if ours["held"]:
            many = _round(_of_a_thousand(ours))
            bars.append(Bar("1,000 MaskBench constraints that have read an instance each", many, 1000, "MB"))
    return Result([table], [], bars, {"engines": found})


def _of_a_thousand(found: dict[str, Any]) -> float | None:
    """What 1,000 take: those that were held and, for each one missing, the mean of the later half.

    What all share (tables, effects of common strings) comes with the first dozens, so their mean says too much.
    """
    later = found["held"] - found.get("half", found["held"])
    if not later:
        return None
    mean = (float(found["constraints"]) - float(found["half of them"])) / later
    return float(found["constraints"]) + (1000 - found["held"]) * mean


def _array_bytes(vocabulary: Any) -> int:
    """All arrays of our vocabulary, shared ones once."""
    trie = vocabulary.trie
    arrays = (vocabulary.data, vocabulary.offsets, *vocabulary.spelling, trie.byte, trie.end, trie.token_offset)
    return sum(array.nbytes for array in {id(one): one for one in (*arrays, trie.token_ids)}.values())


def _round(value: Any) -> Any:
    return round(value, 1) if isinstance(value, float) else value


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(hold(given[0], Setting.from_json(given[1]), given[2])))
