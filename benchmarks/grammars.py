"""Grammars of whole languages: masks at places seen for the first time, and the time to the first mask.

The ready grammars with their accepted examples, and Lark's grammar of its own notation as it is installed.  Every text
is read by a grammar that is compiled anew for it, so each place is a first visit, but what an engine keeps for the
vocabulary it may keep.  Both engines read the same tokens in turns; texts that one of them refuses are counted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines import open_engines, read
from figures import percentiles, ratio, turns
from maskbench_rows import load_tokenizer
from results import Bar, Progress, Result, Setting, Table, spread_row

TITLE = "Grammars: masks at first visits"
ABOUT = "grammars of whole languages in Lark and GBNF: time per mask and step on first texts"
NEEDS_DATA = False

NAMES = ("guided", "llguidance")
COLUMNS = ("n", "mean", "p50", "p90", "p99", "max")

LARK_OF_LARK = ['start: "a" | b+\nb: /c+/i "d"~2..3\n', 'A: "x".."z"\n%import common.WS\n%ignore WS\nstart: A?\n']
"""Texts in Lark's own notation."""


@dataclass
class Timed:
    """What one engine did with one grammar: microseconds."""

    first_us: list[float] = field(default_factory=list)
    mask_us: dict[int, list[float]] = field(default_factory=dict)
    """By the number of the text."""
    accepted: list[int] = field(default_factory=list)
    refused: str = ""


def sources() -> dict[str, tuple[str, bool, list[str]]]:
    """By name: the text, whether it is GBNF, and texts that it accepts."""
    import lark

    from guided.grammar import library

    found = {}
    for name in library.names():
        path = library.source(name)
        found[name] = (path.read_text(encoding="utf-8"), path.suffix == ".gbnf", list(library.examples(name)[0]))
    own = Path(lark.__file__).parent / "grammars" / "lark.lark"
    found["lark"] = (own.read_text(encoding="utf-8"), False, LARK_OF_LARK)
    return found


def measure_text(
    timed: Timed, engine: Any, grammar: tuple[str, bool], number: int, tokens: list[int], end: int
) -> None:
    """One text through a grammar compiled for it."""
    text, is_gbnf = grammar
    clock = time.thread_time
    began = clock()
    matcher = engine.compile_anew(text, is_gbnf=is_gbnf).start()
    matcher.mask()
    timed.first_us.append((clock() - began) * 1e6)
    if read(matcher, tokens, end, timed.mask_us.setdefault(number, []), clock):
        timed.accepted.append(number)


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite."""
    tokenizer = load_tokenizer(setting.tokenizer)
    engines = open_engines([name for name in NAMES if name in setting.engines], tokenizer)
    grammars = sources()
    times: dict[str, dict[str, Timed]] = {engine.name: {name: Timed() for name in grammars} for engine in engines}
    with progress.steps("grammars", len(grammars)) as step:
        for number, (name, (text, is_gbnf, texts)) in enumerate(grammars.items()):
            step(name)
            chosen = texts[:3] if setting.quick else texts
            for engine in engines:
                engine.compile_anew('start: "warm"', is_gbnf=False).start().mask()
            for at, sample in enumerate(chosen):
                tokens = tokenizer.encode(sample, add_special_tokens=False)
                for engine in turns(engines, number + at):
                    timed = times[engine.name][name]
                    if timed.refused:
                        continue
                    try:
                        measure_text(timed, engine, (text, is_gbnf), at, tokens, tokenizer.eos_token_id)
                    except Exception as error:  # peers raise plain RuntimeError and ValueError
                        timed.refused = f"{type(error).__name__}: {error}".splitlines()[0][:80]
    return _result(
        times, {name: len(texts[:3] if setting.quick else texts) for name, (_, _, texts) in grammars.items()}
    )


def _result(times: dict[str, dict[str, Timed]], n_texts: dict[str, int]) -> Result:
    rows = []
    for name, count in n_texts.items():
        for engine, by_name in times.items():
            one = by_name[name]
            spread = percentiles([time for times_of in one.mask_us.values() for time in times_of])
            accepted = one.refused or f"{len(one.accepted)} of {count}"
            first = percentiles(one.first_us)
            rows.append([name, *spread_row(engine, spread, COLUMNS), first.get("p50"), accepted])
    tables = [Table("time per mask and step, us", ["grammar", "engine", *COLUMNS, "first mask p50", "accepted"], rows)]
    bars = []
    if len(times) == len(NAMES):
        # Where an engine refuses a text it has read a part of it only.
        both = [
            (name, number)
            for name in n_texts
            for number in range(n_texts[name])
            if all(number in by_name[name].accepted for by_name in times.values())
        ]
        masks = {e: percentiles([t for g, k in both for t in of[g].mask_us[k]]) for e, of in times.items()}
        for column in ("mean", "p99"):
            share = ratio(masks["guided"].get(column), masks["llguidance"].get(column))
            bars.append(Bar(f"{column} time per mask and step of first texts, of llguidance's", share, 1.0, "x"))
        shown = ", ".join(dict.fromkeys(name for name, _ in both))
        tables.append(Table("texts that both accept", ["texts", "grammars"], [[len(both), shown]]))
    record = {e: {name: vars(timed) for name, timed in by_name.items()} for e, by_name in times.items()}
    return Result(tables, [], bars, {"engines": record})
