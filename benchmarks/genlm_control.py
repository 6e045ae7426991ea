"""SMC with AWRS by guided and by genlm-control: the same model, problems, particles and seeds, turn by turn.

    python benchmarks/genlm_control.py --data DIR --genlm-python VENV/bin/python [--tasks sql patterns] [--problems 8]
                               [--seeds 4] [--particles 16] [--way native] [--way wrapped]

genlm-control (PyPI: genlm-control 0.4) needs packages that guided does not, so it may live in an environment of its
own, in which `genlm_side.py` runs.  Both use the packaged model in float32 and one thread each, with the prompt's keys
and values computed once a run.  ``--rejection`` makes guided test single tokens, as the other side does; without it
`AWRS()` may take masks all along, and the report says which it was.  Questions are about
``text2sql/concert_singer.sqlite``, expressions of ``awrs/patterns.csv``.

The condition of both sides is one text: a Lark grammar of SELECT statements over the database's names, and a regular
expression that both read alike (see `alike`).  ``native``: each side compiles it itself (genlm-control: `BoolCFG`,
`BoolFSA`); ``wrapped``: genlm-control asks guided's constraint, so that the times differ by the samplers alone.  Each
side has its own defaults: systematic resampling here, multinomial there; effective sample size below half in both.
Compiling is timed apart.  Texts of genlm-control outside of guided's condition are counted.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import guided
from guided.errors import GuidedError
from guided.eval.awrs.patterns import EXAMPLES
from guided.eval.awrs.problems import ending_with_lines
from guided.eval.awrs.text_to_sql import same_answer
from guided.eval.requests import sql_request
from guided.grammar.sql import reflect
from guided.hf import load
from guided.hf.language_model import TransformersModel
from guided.infer import AWRS, Population, smc

LIMIT = 120.0
"""Seconds for one run."""

ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"),
    **dict.fromkeys(("NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
}
"""Both sides' environment.  Libraries read it when they are imported, so that this side starts itself anew with it."""

SELECT = r"""
start: query
query: "SELECT " items " FROM " source [where] [group] [order]
items: ["DISTINCT "] item (", " item)*
item: column | FUNCTION "(" ["DISTINCT "] column ")" | "COUNT(*)"
column: COLUMN | TABLE "." COLUMN
source: TABLE (" JOIN " TABLE " ON " TABLE "." COLUMN " = " TABLE "." COLUMN)*
where: " WHERE " test ((" AND " | " OR ") test)*
test: column OPERATOR value | column " LIKE " STRING | column " IN (" query ")" | column " NOT IN (" query ")"
value: NUMBER | STRING | "(" query ")"
group: " GROUP BY " column [" HAVING " item OPERATOR NUMBER]
order: " ORDER BY " item [DIRECTION] [" LIMIT " NUMBER]
FUNCTION: "SUM" | "AVG" | "MIN" | "MAX" | "COUNT"
OPERATOR: " = " | " > " | " < " | " >= " | " <= " | " != "
DIRECTION: " ASC" | " DESC"
NUMBER: /[0-9]+/
STRING: /'[A-Za-z0-9 %-]*'/
TABLE: {tables}
COLUMN: {columns}
"""


@dataclass(frozen=True)
class Case:
    """A problem for both sides."""

    id: str
    kind: str
    grammar: str
    prompt: list[int]
    eos_ids: list[int]
    max_tokens: int
    correct: Callable[[str], bool]
    vocabulary: guided.Vocabulary

    def request(self) -> dict[str, Any]:
        """What the other side needs."""
        names = ("kind", "grammar", "prompt", "eos_ids", "max_tokens")
        return {name: getattr(self, name) for name in names}


def sql_cases(data: Path, loaded: Any) -> list[Case]:
    """The questions about concerts and singers."""
    path = data / "text2sql" / "concert_singer.sqlite"
    database = reflect(str(path))
    names = [table.name for table in database.tables]
    columns = dict.fromkeys(column.name for table in database.tables for column in table.columns)
    grammar = SELECT.format(
        tables=" | ".join(f'"{name}"' for name in names), columns=" | ".join(f'"{name}"' for name in columns)
    )
    rows = json.loads((data / "text2sql" / "spider" / "dev.json").read_text("utf-8"))
    return [
        Case(
            id=f"spider/{number}",
            kind="lark",
            grammar=grammar,
            prompt=list(loaded.tokenizer(sql_request(loaded.name, database, row["question"]))["input_ids"]),
            eos_ids=list(loaded.vocabulary.eos_ids),
            max_tokens=60,
            correct=same_answer(str(path), row["query"]),
            vocabulary=loaded.vocabulary,
        )
        for number, row in enumerate(rows)
        if row["db_id"] == "concert_singer"
    ]


def pattern_cases(data: Path, loaded: Any) -> list[Case]:
    """Expressions that both sides read, and read alike."""
    import regex

    vocabulary = ending_with_lines(loaded)
    shown = "".join(f"Pattern: {pattern}\nMatch: {text}\n\n" for pattern, text in EXAMPLES)
    cases = []
    with (data / "awrs" / "patterns.csv").open(encoding="utf-8", newline="") as file:
        patterns = list(dict.fromkeys(row["regex"] for row in csv.DictReader(file)))
    for number, pattern in enumerate(patterns):
        written = alike(pattern)
        if written is None:
            continue
        try:
            guided.regex(written)
        except GuidedError:
            continue
        text = f"Write a string that each pattern matches.\n\n{shown}Pattern: {pattern}\nMatch: "
        judge = regex.compile(pattern)
        cases.append(
            Case(
                id=f"pattern/{number}",
                kind="regex",
                grammar=written,
                prompt=list(loaded.tokenizer(text)["input_ids"]),
                eos_ids=list(vocabulary.eos_ids),
                max_tokens=40,
                correct=lambda text, judge=judge: judge.fullmatch(text) is not None,  # type: ignore[misc]
                vocabulary=vocabulary,
            )
        )
    return cases


def alike(pattern: str) -> str | None:
    """The expression with classes written out in ASCII, for the whole text; None for what the two may read differently.

    >>> alike(r"^\\d{2}[\\w.]$"), alike("a|b$"), alike("[^a]")
    ('[0-9]{2}[A-Za-z0-9_.]', None, None)
    """
    body = pattern.removeprefix("^").removesuffix("$")
    if "(?" in body or body.endswith("\\"):
        return None
    out: list[str] = []
    inside = False
    at = 0
    while at < len(body):
        here, two = body[at], body[at : at + 2]
        classes = {r"\d": "0-9", r"\w": "A-Za-z0-9_", r"\s": " "}
        if two in classes:
            out.append(classes[two] if inside else f"[{classes[two]}]")
            at += 2
            continue
        if here == "\\":
            if two[1].isalnum():
                return None
            out.append(two)
            at += 2
            continue
        follows = body[at + 1 : at + 2]
        if inside:
            inside = here != "]"
        elif here == "[":
            if follows == "^":
                return None
            inside = True
        elif here in ".^$" or (here == "|" and "(" not in body) or (here in "*+?}" and follows in ("?", "+")):
            return None
        out.append(here)
        at += 1
    return "".join(out)


class Other:
    """genlm-control in its own process."""

    def __init__(self, python: str, model: Path, particles: int) -> None:
        script = Path(__file__).with_name("genlm_side.py")
        self.process = subprocess.Popen(
            [python, str(script), str(model), str(particles)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )
        self.read()

    def read(self) -> dict[str, Any]:
        """The next answer; what else a library prints is not one."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise SystemExit("the side of genlm-control has ended")

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One question."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.read()


def ours(seed: int, model: Any, case: Case, constraint: Any, particles: int, sampler: AWRS) -> dict[str, Any]:
    """One run of guided, in the other side's words."""
    begin = time.perf_counter()
    found: Population = smc(
        seed,
        model,
        case.prompt,
        constraint,
        n=particles,
        max_tokens=case.max_tokens,
        sampler=sampler,
        ess_threshold=0.5,
    )
    seconds = time.perf_counter() - begin
    texts: dict[str, float] = defaultdict(float)
    for particle, weight in zip(found, found.weights, strict=True):
        if particle.finished and weight > 0:
            texts[particle.data.decode("utf-8", "replace")] += float(weight)
    return {
        "log_ml": found.log_ml if found.log_ml > -math.inf else None,
        "texts": dict(texts),
        "seconds": seconds,
        "log_ml_error": found.log_ml_error if found.log_ml_error < math.inf else None,
        "calls": found.cost.constraint_calls,
        "tested": found.cost.tested,
        "tokens": found.cost.tokens,
    }


def judged(answer: dict[str, Any], case: Case) -> dict[str, Any]:
    """An answer with its accuracy; a run that failed is wrong."""
    texts: dict[str, float] = answer.get("texts", {})
    right = {text for text in texts if case.correct(text)}
    best = max(texts, key=lambda text: texts[text], default=None)
    return {**answer, "accuracy": sum(texts[text] for text in right), "best": float(best in right)}


def figures(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of one task and way: each side's means, and their differences with standard errors over problems."""
    sides: dict[str, Any] = {}
    for side in ("guided", "genlm"):
        answers = [run[side] for run in runs]
        good = [answer for answer in answers if "error" not in answer]
        sides[side] = {
            "runs": len(answers),
            "errors": len(answers) - len(good),
            "dead": sum(answer["log_ml"] is None for answer in good),
            "log_ml": _mean([answer["log_ml"] for answer in good if answer["log_ml"] is not None]),
            "accuracy": _mean([answer["accuracy"] for answer in answers]),
            "best": _mean([answer["best"] for answer in answers]),
            "seconds": _mean([answer["seconds"] for answer in good]),
            "calls a token": _mean([answer["calls"] / max(answer["tokens"], 1) for answer in good]),
        }
    problems: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        if "error" not in run["genlm"]:
            problems[run["id"]].append(run)

    def difference(name: str) -> list[float]:
        pairs = [
            statistics.fmean(a) - statistics.fmean(b)
            for each in problems.values()
            if (a := [run["guided"][name] for run in each if run["guided"][name] is not None])
            and (b := [run["genlm"][name] for run in each if run["genlm"][name] is not None])
        ]
        if not pairs:
            return []
        error = statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.inf
        return [statistics.fmean(pairs), error]

    both = [run for each in problems.values() for run in each]
    return {
        "guided draws tokens by": "AWRS" if any(run["guided"]["tested"] for run in runs) else "masks",
        **sides,
        "problems": len({run["id"] for run in runs}),
        "difference of log_ml, standard error": difference("log_ml"),
        "difference of accuracy, standard error": difference("accuracy"),
        "difference of best, standard error": difference("best"),
        "time of guided / genlm-control, sums": (
            sum(run["guided"]["seconds"] for run in both) / sum(run["genlm"]["seconds"] for run in both)
            if both
            else None
        ),
        "the same, median over runs": (
            statistics.median(run["guided"]["seconds"] / run["genlm"]["seconds"] for run in both) if both else None
        ),
        "texts the other side would refuse": sum(run["refused"] for run in runs),
    }


def _mean(values: list[float]) -> float | None:
    return statistics.fmean(values) if values else None


def spelled(constraint: Any, text: str) -> bool:
    """Is the text in the constraint's language?"""
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--genlm-python", default=sys.executable, help="an interpreter with genlm-control")
    parser.add_argument("--tasks", nargs="+", default=["sql", "patterns"], choices=["sql", "patterns"])
    parser.add_argument("--way", action="append", choices=["native", "wrapped"])
    parser.add_argument("--problems", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument(
        "--rejection", action="store_true", help="guided tests tokens one by one, too, where masks would cost less"
    )
    parser.add_argument("--out", type=Path, help="also keep every run, a line of JSON each")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    sampler = AWRS(masks=False) if options.rejection else AWRS()
    loaded = load("nano", dtype=torch.float32)
    model = TransformersModel(loaded)
    weights = Path(guided.__file__).parent / "nano" / "weights"
    other = Other(options.genlm_python, weights, options.particles)
    report: dict[str, Any] = {}
    for task in options.tasks:
        cases = sql_cases(options.data, loaded) if task == "sql" else pattern_cases(options.data, loaded)
        random.Random(0).shuffle(cases)
        for way in options.way or ["native", "wrapped"]:
            runs: list[dict[str, Any]] = []
            setups: list[tuple[float, float]] = []
            for case in cases:
                if len(setups) == options.problems:
                    break
                make = guided.regex if case.kind == "regex" else guided.lark
                begin = time.perf_counter()
                constraint = guided.Constraint(make(case.grammar), case.vocabulary)
                setup = time.perf_counter() - begin
                ready = other.ask({"problem": case.request(), "native": way == "native"})
                if "error" in ready:
                    print(f"{case.id}: {ready['error']}", file=sys.stderr)
                    continue
                setups.append((setup, ready["seconds"]))
                # The first run of each side at a problem fills its memories, and is not counted.
                for seed in range(options.seeds + 1):
                    ask = {"seed": seed, "limit": LIMIT}
                    if seed % 2:
                        theirs, own = other.ask(ask), ours(seed, model, case, constraint, options.particles, sampler)
                    else:
                        own, theirs = ours(seed, model, case, constraint, options.particles, sampler), other.ask(ask)
                    run = {
                        "id": case.id,
                        "seed": seed,
                        "task": task,
                        "way": way,
                        "guided": judged(own, case),
                        "genlm": judged(theirs, case),
                        "refused": sum(not spelled(constraint, text) for text in theirs.get("texts", {})),
                    }
                    if seed:
                        runs.append(run)
                    if options.out:
                        with options.out.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(run) + "\n")
            report[f"{task}, {way}"] = {
                **figures(runs),
                "seconds to compile: guided, genlm-control": [_mean([s[i] for s in setups]) for i in (0, 1)],
            }
            print(json.dumps({f"{task}, {way}": report[f"{task}, {way}"]}, indent=2), flush=True)


if __name__ == "__main__":
    main()
