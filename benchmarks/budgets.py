"""Masks under a token budget beside plain masks and a peer's: the same schemas, instances and tokens, in turns.

Every surface of guided steers texts to an end within a number of tokens, so these are the masks that users get.  The
budget is less by one at each token of an instance; an instance ends here with the mask that forbids its next token or
cannot be made, and so do the plain masks that its times are compared with.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from engines import Engine, GuidedEngine, open_engines
from figures import TooSlow, percentiles, ratio, time_limit, turns
from maskbench_rows import choose, load_rows, load_tokenizer
from masks import warm_up
from results import Bar, Progress, Result, Setting, Table, spread_row

TITLE = "Masks under token budgets, beside plain ones"
ABOUT = "time per mask and step, and to the first mask, with budgets of 64, 512 and 4,096 tokens and without"
NEEDS_DATA = True

BUDGETS = (64, 512, 4096)
COLUMNS = ("n", "mean", "p50", "p90", "p99", "max")
ALLOWED = 1.3
"""What a mask under a budget may take, as a share of a plain one."""

Clock = Callable[[], float]


class BudgetMatcher:
    """A text in progress with so many tokens left, None for any number."""

    def __init__(self, engine: GuidedEngine, constraint: Any, budget: int | None) -> None:
        self.constraint, self.row, self.left = constraint, engine.row, budget
        self.state = constraint.start

    def mask(self) -> None:
        """Fill the row; raises `guided.LimitError` where no text fits."""
        if self.left is None:
            self.constraint.fill_mask(self.state, self.row)
        else:
            self.constraint.fill_budget_mask(self.state, self.row, self.left)

    def allows(self, token: int) -> bool:
        """Is the token in the mask?"""
        return bool(int(self.row[token >> 5]) >> (token & 31) & 1)

    def step(self, token: int) -> None:
        """Take a token."""
        self.state = self.constraint.advance(self.state, token)
        if self.left is not None:
            self.left -= 1


class BudgetEngine:
    """Guided with one budget, behind the interface of the others as far as it is used here."""

    def __init__(self, engine: GuidedEngine, budget: int | None) -> None:
        self.engine, self.budget = engine, budget
        self.name = "plain" if budget is None else f"budget {budget}"

    def start(self, schema: Any) -> BudgetMatcher:
        """A text at its beginning, the schema compiled anew."""
        guided = self.engine.guided
        # `guided.compile` would give all kinds one constraint: who comes first would make the masks of the others.
        constraint = guided.Constraint(guided.json_schema(schema), self.engine.vocabulary)
        return BudgetMatcher(self.engine, constraint, self.budget)


def read(matcher: Any, tokens: Sequence[int], clock: Clock) -> list[float]:
    """Microseconds of each mask and step, up to the one that forbids the next token or cannot be made, with it."""
    import guided

    times: list[float] = []
    goes_on = True
    for token in tokens:
        if not goes_on:
            break
        began = clock()
        try:
            matcher.mask()
            goes_on = matcher.allows(token)
        except guided.LimitError:
            goes_on = False
        if goes_on:
            matcher.step(token)
        times.append((clock() - began) * 1e6)
    return times


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite.

    Compared are only the masks that both come by: with a small budget an instance may end early.
    """
    assert setting.data is not None
    tokenizer = load_tokenizer(setting.tokenizer)
    rows = choose(load_rows(setting.data), 2 if setting.quick else 30, setting.seed + 3)
    opened = open_engines([name for name in ("guided", "llguidance") if name in setting.engines], tokenizer)
    ours = next((engine for engine in opened if isinstance(engine, GuidedEngine)), None)
    if ours is None:
        return Result()
    for engine in opened:
        warm_up(engine, tokenizer)
    peers = [engine for engine in opened if engine is not ours]
    kinds: list[Any] = [*(BudgetEngine(ours, budget) for budget in (None, *BUDGETS)), *peers]
    for kind in kinds[: 1 + len(BUDGETS)]:
        read(kind.start({"type": "object"}), tokenizer.encode('{"a": 1}', add_special_tokens=False), time.thread_time)
    times, first = compare(rows, tokenizer, kinds, 6 if setting.quick else 30, progress, time.thread_time)
    names = list(times)
    tables = [
        Table(
            f"{len(rows)} schemas: time per mask and step, us", ["masks", *COLUMNS],
            [spread_row(name, percentiles([one for each in times[name].values() for one in each]), COLUMNS)
             for name in names],
        ),
        Table(
            "time to first mask, us", ["masks", *COLUMNS],
            [spread_row(name, percentiles(list(first[name].values())), COLUMNS) for name in names],
        ),
    ]  # fmt: skip
    bars, shares = [], []
    for name in names[1 : 1 + len(BUDGETS)]:
        for other in ("plain", *(peer.name for peer in peers)):
            both = [key for key in times[name] if key in times[other]]
            lengths = [min(len(times[name][key]), len(times[other][key])) for key in both]
            found, theirs = (
                percentiles([one for key, n in zip(both, lengths, strict=True) for one in times[which][key][:n]])
                for which in (name, other)
            )
            share = [ratio(found.get(column), theirs.get(column)) for column in ("mean", "p50", "p99")]
            shares.append([name, other, sum(lengths), *share])
            if other == "plain":
                bars += [
                    Bar(f"{column} of masks with {name}, of plain ones", value, ALLOWED, "x")
                    for column, value in (("mean", share[0]), ("p99", share[2]))
                ]
    tables.append(Table("the same masks, as shares", ["masks", "of", "n", "mean", "p50", "p99"], shares))
    return Result(tables, [], bars)


def compare(
    rows: Sequence[dict[str, Any]],
    tokenizer: Any,
    kinds: Sequence[Any],
    limit: int,
    progress: Progress,
    clock: Clock,
) -> tuple[dict[str, dict[tuple[str, int], list[float]]], dict[str, dict[str, float]]]:
    """Times per mask by kind, and row and number of the instance; times to the first mask by kind and row."""
    times: dict[str, dict[tuple[str, int], list[float]]] = {kind.name: {} for kind in kinds}
    first: dict[str, dict[str, float]] = {kind.name: {} for kind in kinds}
    with progress.steps("schemas", len(rows)) as step:
        for number, row in enumerate(rows):
            step(row["id"])
            texts = [json.dumps(test["data"], ensure_ascii=False) for test in row["tests"] if test["valid"]]
            tests = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
            for kind in turns(kinds, number):
                gc.collect()
                try:
                    with time_limit(limit, processor=True):
                        measure_row(kind, row, tests, times[kind.name], first[kind.name], clock)
                except TooSlow:
                    times[kind.name] = {key: one for key, one in times[kind.name].items() if key[0] != row["id"]}
    return times, first


def measure_row(
    kind: BudgetEngine | Engine,
    row: dict[str, Any],
    tests: Sequence[list[int]],
    times: dict[tuple[str, int], list[float]],
    first: dict[str, float],
    clock: Clock,
) -> None:
    """One schema and its valid instances in one kind of masks; nothing where it is refused, or no text fits."""
    began = clock()
    try:
        if isinstance(kind, BudgetEngine):
            matcher: Any = kind.start(row["schema"])
            constraint = matcher.constraint
            start: Callable[[], Any] = lambda: BudgetMatcher(kind.engine, constraint, kind.budget)  # noqa: E731
        else:
            compiled = kind.compile(row["schema"])
            matcher, start = compiled.start(), compiled.start
        matcher.mask()
    except TooSlow:
        raise
    except Exception:  # refused, each in its own way
        return
    first[row["id"]] = (clock() - began) * 1e6
    for number, tokens in enumerate(tests):
        times[row["id"], number] = read(start(), tokens, clock)
