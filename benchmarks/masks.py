"""Masks for JSON Schema, side by side: guided, llguidance and xgrammar on the same schema, instance and tokens.

One process, engines interleaved schema by schema and in an order that rotates, so that a slow minute of the machine
hits all alike.  What is timed: from the schema to the first mask; and per token, the mask and the step together.  What
is counted: instances accepted and refused rightly and wrongly, schemas refused when compiling.

    python benchmarks/masks.py --data maskbench-dev.jsonl.gz --tokenizer llama3/ --per-split 30 --out masks.json
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import platform
import random
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

PERCENTILES = (50, 90, 99, 99.9, 100)


class Engine(Protocol):
    """One schema at a time: ``load`` compiles it, ``begin`` starts an instance, then masks and steps alternate."""

    name: str

    def load(self, schema: Any) -> None: ...
    def begin(self) -> None: ...
    def mask(self) -> None: ...
    def allows(self, token: int) -> bool: ...
    def step(self, token: int) -> None: ...


class GuidedEngine:
    name = "guided"

    def __init__(self, tokenizer: Any) -> None:
        import guided

        self.guided = guided
        self.vocabulary = guided.Vocabulary.from_tokenizer(tokenizer)
        self.row = np.zeros(self.vocabulary.n_words, np.uint32)

    def load(self, schema: Any) -> None:
        self.constraint = self.guided.compile(self.guided.json_schema(schema), self.vocabulary)

    def begin(self) -> None:
        self.state = self.constraint.start

    def mask(self) -> None:
        self.constraint.fill_mask(self.state, self.row)

    def allows(self, token: int) -> bool:
        return bool(int(self.row[token >> 5]) >> (token & 31) & 1)

    def step(self, token: int) -> None:
        self.state = self.constraint.advance(self.state, token)
        if not self.state:
            raise AssertionError(f"the mask allows token {token}, advance does not")

    def reads_in_other_order(self, schema: Any, tokens: list[int]) -> bool:
        """Is the instance in the language once the declared members may come in any order?"""
        constraint = self.guided.compile(self.guided.json_schema(schema, order="any"), self.vocabulary)
        state = constraint.start
        for token in tokens:
            state = constraint.advance(state, token)
        return state != 0 and constraint.is_accepting(state)


class LlguidanceEngine:
    name = "llguidance"

    def __init__(self, tokenizer: Any) -> None:
        import llguidance.hf
        import llguidance.numpy

        self.matcher = llguidance.LLMatcher
        self.fill = llguidance.numpy.fill_next_token_bitmask
        self.vocabulary = llguidance.hf.from_tokenizer(tokenizer)
        self.row = llguidance.numpy.allocate_token_bitmask(1, self.vocabulary.vocab_size)

    def load(self, schema: Any) -> None:
        self.fresh = self.matcher(self.vocabulary, self.matcher.grammar_from_json_schema(json.dumps(schema)))
        if self.fresh.is_error():
            raise ValueError(self.fresh.get_error())

    def begin(self) -> None:
        self.current = self.fresh.deep_copy()

    def mask(self) -> None:
        self.fill(self.current, self.row, 0)

    def allows(self, token: int) -> bool:
        return bool(int(self.row[0, token >> 5]) >> (token & 31) & 1)

    def step(self, token: int) -> None:
        self.current.consume_token(token)


class XgrammarEngine:
    name = "xgrammar"

    def __init__(self, tokenizer: Any) -> None:
        import xgrammar

        self.xgrammar = xgrammar
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.row = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def load(self, schema: Any) -> None:
        self.grammar = self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)

    def begin(self) -> None:
        self.matcher = self.xgrammar.GrammarMatcher(self.grammar)

    def mask(self) -> None:
        self.matcher.fill_next_token_bitmask(self.row)

    def allows(self, token: int) -> bool:
        return bool(int(self.row[0, token >> 5]) >> (token & 31) & 1)

    def step(self, token: int) -> None:
        if not self.matcher.accept_token(token):
            raise AssertionError(f"the mask allows token {token}, accept_token does not")


ENGINES = {engine.name: engine for engine in (GuidedEngine, LlguidanceEngine, XgrammarEngine)}


@dataclass
class Score:
    """What one engine did: microseconds, and ids of rows by outcome."""

    first_mask_us: list[float] = field(default_factory=list)
    mask_us: list[float] = field(default_factory=list)
    instances: Counter[str] = field(default_factory=Counter)
    rows: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    refusals: dict[str, str] = field(default_factory=dict)

    def note(self, outcome: str, row: str) -> None:
        self.instances[outcome] += 1
        self.rows[outcome].append(row)


class _TooSlow(Exception):
    pass


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise `_TooSlow` in the block after ``seconds``; needs a Unix main thread."""

    def ring(*_: object) -> None:
        raise _TooSlow

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def measure(engine: Engine, score: Score, row: dict[str, Any], tests: list[tuple[bool, list[int]]], eos: int) -> None:
    """One schema and its instances through one engine."""
    began = time.perf_counter()
    try:
        engine.load(row["schema"])
        engine.begin()
        engine.mask()
    except _TooSlow:
        raise
    except Exception as error:  # peers raise plain RuntimeError and ValueError for what they do not support
        score.rows["refused"].append(row["id"])
        score.refusals[row["id"]] = f"{type(error).__name__}: {error}"[:300]
        return
    score.first_mask_us.append((time.perf_counter() - began) * 1e6)
    for valid, tokens in tests:
        try:
            accepted = read(engine, tokens, eos, score.mask_us)
        except _TooSlow:
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


def read(engine: Engine, tokens: list[int], eos: int, times: list[float]) -> bool:
    """Feed an instance; one time per token that was asked about."""
    engine.begin()
    clock = time.perf_counter
    for token in tokens:
        began = clock()
        engine.mask()
        allowed = engine.allows(token)
        if allowed:
            engine.step(token)
        times.append((clock() - began) * 1e6)
        if not allowed:
            return False
    engine.mask()
    return engine.allows(eos)


def split_of(row_id: str) -> str:
    """The part of MaskBench that a row comes from, by its id: ``Github_easy---o12``, ``BFCL_simple_7---0``."""
    name = row_id.split("---")[0]
    family = name.split("_")[0]
    return name if family == "Github" else family


def choose(rows: list[dict[str, Any]], per_split: int, seed: int) -> list[dict[str, Any]]:
    if not per_split:
        return rows
    splits: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        splits[split_of(row["id"])].append(row)
    rnd = random.Random(seed)
    return [row for name in sorted(splits) for row in rnd.sample(splits[name], min(per_split, len(splits[name])))]


def percentiles(times: list[float]) -> dict[str, float]:
    if not times:
        return {}
    found = {f"p{p:g}" if p < 100 else "max": round(float(np.percentile(times, p)), 2) for p in PERCENTILES}
    return {"n": len(times), "mean": round(float(np.mean(times)), 2), **found}


def machine() -> dict[str, str]:
    """Enough to tell two results apart: commit, processor, versions."""
    root = Path(__file__).resolve().parent.parent
    git = ["git", "-C", str(root)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False).stdout
    processor = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        processor = f"{len(lines)} x {lines[0]}" if lines else processor
    return {
        "commit": commit + (" with changes" if changed.strip() else ""),
        "processor": processor,
        "python": platform.python_version(),
        "system": platform.platform(),
        **{name: version_of(name) for name in ("numba", "numpy", "llguidance", "xgrammar", "transformers")},
    }


def version_of(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def load_tokenizer(path: Path) -> Any:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if path.is_dir():
        return AutoTokenizer.from_pretrained(str(path))
    return PreTrainedTokenizerFast(tokenizer_file=str(path))


def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    tokenizer = load_tokenizer(options.tokenizer)
    eos = tokenizer.eos_token_id
    if eos is None:
        raise SystemExit("the tokenizer has no end-of-text id: pass a folder with its tokenizer_config.json")
    opener = gzip.open if options.data.suffix == ".gz" else open
    with opener(options.data, "rt", encoding="utf-8") as lines:
        rows = choose([json.loads(line) for line in lines], options.per_split, options.seed)
    console.print(f"{len(rows)} schemas, {len(tokenizer)} tokens, engines: {', '.join(options.engines)}")
    engines = [ENGINES[name](tokenizer) for name in options.engines]
    for engine in engines:  # whatever an engine does once per process, such as compiling its code, is not measured
        warm_up(engine, tokenizer)
    scores = {engine.name: Score() for engine in engines}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for number, row in enumerate(progress.track(rows, description="schemas")):
            tests = []
            for test in row["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False)
                tests.append((test["valid"], tokenizer.encode(text, add_special_tokens=False)))
            turn = number % len(engines)
            for engine in engines[turn:] + engines[:turn]:
                gc.collect()
                try:
                    with time_limit(options.limit):
                        measure(engine, scores[engine.name], row, tests, eos)
                except _TooSlow:
                    scores[engine.name].rows["timed out"].append(row["id"])
    return {
        "machine": machine(),
        "options": {key: str(value) for key, value in vars(options).items()},
        "schemas": len(rows),
        "engines": {name: summary(score) for name, score in scores.items()},
    }


def warm_up(engine: Engine, tokenizer: Any) -> None:
    schema = {"type": "object", "properties": {"warm": {"type": "string", "maxLength": 9}, "up": {"type": "number"}}}
    engine.load(schema)
    read(engine, tokenizer.encode('{"warm": "up", "up": 1, "x": [{}, null]}', add_special_tokens=False), 0, [])


def summary(score: Score) -> dict[str, Any]:
    return {
        "first_mask_us": percentiles(score.first_mask_us),
        "mask_us": percentiles(score.mask_us),
        "instances": dict(score.instances),
        "rows": {outcome: sorted(set(ids)) for outcome, ids in score.rows.items() if outcome != "right"},
        "refusals": score.refusals,
    }


def show(result: dict[str, Any], console: Console) -> None:
    counts = Table(title=f"{result['schemas']} schemas, instances by outcome", title_justify="left")
    outcomes = ("right", "false accept", "false reject", "other key order", "crashed")
    for heading in ("engine", *outcomes, "schemas refused", "timed out"):
        counts.add_column(heading, justify="left" if heading == "engine" else "right")
    for name, engine in result["engines"].items():
        found = [str(engine["instances"].get(outcome, 0)) for outcome in outcomes]
        counts.add_row(name, *found, *(str(len(engine["rows"].get(kind, ()))) for kind in ("refused", "timed out")))
    console.print(counts)
    for key, title in (("first_mask_us", "time to first mask, us"), ("mask_us", "time per mask and step, us")):
        times = Table(title=title, title_justify="left")
        measured = ("n", "mean", "p50", "p90", "p99", "p99.9", "max")
        for heading in ("engine", *measured):
            times.add_column(heading, justify="left" if heading == "engine" else "right")
        for name, engine in result["engines"].items():
            found = engine[key]
            times.add_row(name, *(f"{found[column]:,.0f}" if column in found else "-" for column in measured))
        console.print(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, help="rows {id, schema, tests: [{valid, data}]}, .jsonl[.gz]"
    )
    parser.add_argument("--tokenizer", type=Path, required=True, help="a tokenizer's folder, or its tokenizer.json")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES), help="comma-separated")
    parser.add_argument("--per-split", type=int, default=30, help="schemas from each part of the data; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="which schemas are taken")
    parser.add_argument("--limit", type=int, default=30, help="seconds for one schema in one engine")
    parser.add_argument("--out", type=Path, help="write everything as JSON")
    options = parser.parse_args()
    unknown = [name for name in options.engines if name not in ENGINES]
    if unknown:
        parser.error(f"no engine {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    for path in (options.data, options.tokenizer):
        if not path.exists():
            parser.error(f"{path} does not exist")
    console = Console()
    result = run(options, console)
    show(result, console)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False))
        console.print(f"written to {options.out}")


if __name__ == "__main__":
    main()
