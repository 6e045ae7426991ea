"""Masks and steps of SQL along queries, in microseconds of processor time; with ``--budget`` as surfaces fill them.

With ``--judged`` a query's tokens are judged in place of masks, as `generate` asks about a token that it has drawn; a
mask is made where that tells nothing.

    python benchmarks/sql_masks.py --tokenizer tokenizers/llama3 --spider text2sql/spider --every 5
    python benchmarks/sql_masks.py --tokenizer ... --database postgresql+psycopg://... --queries queries --budget 512

``--queries`` has one query a line.  Each database has one constraint, which reads its queries in turn, so the first
masks are those of a new language.  A query that leaves the language is counted, and read as far as it goes.  To
compare two commits, run both with small parts of the queries (``--skip``, ``--first``) in turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from figures import percentiles
from maskbench_rows import load_tokenizer

import guided

COLUMNS = ("n", "mean", "p50", "p90", "p99", "max")


def spider(folder: Path, every: int) -> Iterator[tuple[str, list[str]]]:
    """Databases of Spider that are here, each with every so many-th of its questions' gold queries."""
    rows = json.loads((folder / "dev.json").read_text(encoding="utf-8"))[::every]
    for path in sorted((folder / "db").glob("*.sqlite")):
        queries = [row["query"] for row in rows if row["db_id"] == path.stem]
        if queries:
            yield f"sqlite:///{path}", queries


def along(
    constraint: Any, tokens: Sequence[int], budget: int | None, judged: bool
) -> tuple[list[float], list[float], bool, int]:
    """Microseconds of each mask, or of judging the token, and of each step.

    Also whether all tokens are in the language, and how many were forbidden.
    """
    masks: list[float] = []
    steps: list[float] = []
    row = np.empty(constraint.vocabulary.n_words, np.uint32)
    state, clock, forbidden = constraint.start, time.thread_time, 0
    for number, token in enumerate(tokens):
        left = None if budget is None else budget - number
        began = clock()
        takes = constraint.takes(state, token, left) if judged else None
        if takes is None and left is None:
            constraint.fill_mask(state, row)
        elif takes is None:
            constraint.fill_budget_mask(state, row, left)
        masks.append(1e6 * (clock() - began))
        forbidden += takes is None and left is not None and not row[token >> 5] >> (token & 31) & 1
        began = clock()
        state = constraint.advance(state, token)
        steps.append(1e6 * (clock() - began))
        if not state:
            return masks, steps, False, forbidden
    return masks, steps, True, forbidden


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="a tokenizer's folder")
    parser.add_argument("--spider", type=Path, help="a folder with dev.json and db/")
    parser.add_argument("--every", type=int, default=5, help="which of Spider's questions (every fifth)")
    parser.add_argument("--database", help="a SQLAlchemy URL")
    parser.add_argument("--queries", type=Path, help="queries over it, one a line")
    parser.add_argument("--skip", type=int, default=0, help="queries of a database to leave out at first")
    parser.add_argument("--first", type=int, help="queries of a database to read at most")
    parser.add_argument("--budget", type=int, help="tokens that a query and its end may have: masks under a budget")
    parser.add_argument("--judged", action="store_true", help="judge the query's tokens, and make masks in doubt only")
    parser.add_argument("--out", type=Path, help="each mask's and step's time as JSON")
    options = parser.parse_args()
    if (options.database is None) != (options.queries is None) or (options.spider is None) == (options.queries is None):
        parser.error("name --spider, or --database with --queries")
    parts = (
        spider(options.spider, options.every)
        if options.spider is not None
        else [(options.database, options.queries.read_text(encoding="utf-8").splitlines())]
    )
    tokenizer = load_tokenizer(options.tokenizer)
    masks: list[float] = []
    steps: list[float] = []
    left: list[str] = []
    forbidden = queries_read = 0
    for url, queries in parts:
        constraint = guided.compile(guided.sql(url), tokenizer)
        last = None if options.first is None else options.skip + options.first
        for text in filter(None, queries[options.skip : last]):
            gc.collect()
            tokens = tokenizer.encode(text, add_special_tokens=False)
            of_masks, of_steps, whole, missed = along(constraint, tokens, options.budget, options.judged)
            masks += of_masks
            steps += of_steps
            queries_read += 1
            forbidden += missed > 0
            if not whole:
                left.append(text)
    for name, times in (("mask", masks), ("step", steps)):
        found = percentiles(times)
        print(f"{name:5}", "  ".join(f"{column} {found[column]:,.1f}" for column in COLUMNS if found))
    print(f"{queries_read} queries, {len(left)} leave the language, {forbidden} have a token that the budget forbids")
    if options.out is not None:
        options.out.write_text(json.dumps({"masks_us": masks, "steps_us": steps, "left": left}), encoding="utf-8")


if __name__ == "__main__":
    main()
