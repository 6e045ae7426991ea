"""First use: compiling the kernels on a new machine, a later process's way to its first mask, and importing."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from figures import turns
from results import Bar, Progress, Result, Setting, Table, rounded

TITLE = "First use: compiling kernels, a later process's first mask, import time"
ABOUT = "what a new machine and a new process wait for"
NEEDS_DATA = False

_SCHEMA = (
    '{"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}, "required": ["name"]}'
)

_GUIDED = """
import time; began = time.perf_counter()
import guided
imported = time.perf_counter()
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file({file!r})
read = time.perf_counter()
vocabulary = guided.Vocabulary.from_tokenizer(tokenizer, eos_ids=[{end}])
known = time.perf_counter()
constraint = guided.compile(guided.json_schema({schema}), vocabulary)
import numpy
row = numpy.zeros(vocabulary.n_words, numpy.uint32)
constraint.fill_mask(constraint.start, row)
done = time.perf_counter()
import json, sys
assert "torch" not in sys.modules and "transformers" not in sys.modules
print(json.dumps([imported - began, read - imported, known - read, done - known, done - began]))
"""

_LLGUIDANCE = """
import time; began = time.perf_counter()
import llguidance, llguidance.numpy
imported = time.perf_counter()
text = open({file!r}, encoding="utf-8").read()
read = time.perf_counter()
vocabulary = llguidance.LLTokenizer(text, eos_token={end})
known = time.perf_counter()
matcher = llguidance.LLMatcher(vocabulary, llguidance.LLMatcher.grammar_from_json_schema({text!r}))
row = llguidance.numpy.allocate_token_bitmask(1, vocabulary.vocab_size)
llguidance.numpy.fill_next_token_bitmask(matcher, row, 0)
done = time.perf_counter()
import json
print(json.dumps([imported - began, read - imported, known - read, done - known, done - began]))
"""

_XGRAMMAR = """
import time; began = time.perf_counter()
import xgrammar
imported = time.perf_counter()
from transformers import PreTrainedTokenizerFast
tokenizer = PreTrainedTokenizerFast(tokenizer_file={file!r})
read = time.perf_counter()
info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer), stop_token_ids=[{end}])
known = time.perf_counter()
compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_json_schema({text!r})
row = xgrammar.allocate_token_bitmask(1, info.vocab_size)
xgrammar.GrammarMatcher(compiled).fill_next_token_bitmask(row)
done = time.perf_counter()
import json
print(json.dumps([imported - began, read - imported, known - read, done - known, done - began]))
"""

PROGRAMS = {"guided": _GUIDED, "llguidance": _LLGUIDANCE, "xgrammar": _XGRAMMAR}
STAGES = ["import", "read the tokenizer's file", "vocabulary", "schema to first mask", "all"]


def fresh(program: str, **environment: str) -> Any:
    """What a new interpreter prints last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, **environment}, cwd=Path(__file__).resolve().parent.parent,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"a fresh process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compile_kernels() -> dict[str, float]:
    """Seconds of `guided warmup` with an empty cache, elapsed and of the processor, and with the cache that it left."""
    import resource

    found = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("empty cache", "again"):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, "-m", "guided", "warmup", "--json"], capture_output=True, text=True, check=True,
                env={**os.environ, "NUMBA_CACHE_DIR": cache}, cwd=Path(__file__).resolve().parent.parent,
            )  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[name] = json.loads(done.stdout)["seconds"]
            found[f"{name}, of all processors"] = round(spent, 2)
    return found


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite: medians over fresh processes of each engine in turns, after one that is not counted."""
    from maskbench_rows import load_tokenizer

    file = setting.tokenizer / "tokenizer.json" if setting.tokenizer.is_dir() else setting.tokenizer
    end = load_tokenizer(setting.tokenizer).eos_token_id
    names = [name for name in PROGRAMS if name in setting.engines]
    programs = {name: PROGRAMS[name].format(file=str(file), end=end, schema=_SCHEMA, text=_SCHEMA) for name in names}
    times: dict[str, list[list[float]]] = {name: [] for name in names}
    repeats = 2 if setting.quick else 9
    with progress.steps("processes", (repeats + 1) * len(names) + 1) as step:
        step("guided warmup")
        kernels = compile_kernels() if "guided" in names else {}
        for number in range(repeats + 1):
            for name in turns(names, number):
                step(name)
                found = fresh(programs[name])
                if number:
                    times[name].append(found)
        imports = [1000 * fresh(_IMPORT)[0] for _ in range(repeats)] if "guided" in names else []
    rows = [
        [name, *(rounded(1000 * statistics.median(column)) for column in zip(*found, strict=True))]
        for name, found in times.items()
    ]
    tables = [
        Table(
            "a later process, ms to its first mask", ["engine", *STAGES], rows,
            "The interpreter's own start is not counted. guided and xgrammar read the file through tokenizers and "
            "transformers, llguidance by itself; guided's vocabulary and kernels come from their caches on disk.",
        )
    ]  # fmt: skip
    bars = []
    if "guided" in names:
        tables.append(Table("guided warmup, seconds", list(kernels), [list(kernels.values())]))
        tables.append(Table("import guided, ms", ["median"], [[rounded(statistics.median(imports))]]))
        bars.append(Bar("all kernels compiled, empty cache", kernels["empty cache"], 25, "s"))
        bars.append(Bar("a later process to its first mask", rows[names.index("guided")][-1], 1500, "ms"))
    return Result(tables, [], bars, {"seconds": times, "warmup": kernels})


_IMPORT = """
import time; began = time.perf_counter()
import guided
import json; print(json.dumps([time.perf_counter() - began]))
"""
