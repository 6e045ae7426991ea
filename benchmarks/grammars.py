"""Grammars of whole languages: masks at places seen for the first time, and the time to the first mask.

The ready grammars with their accepted examples, and Lark's grammar of its own notation as it is installed.  Every text
is read by a grammar that is compiled anew for it, so each place is a first visit, but what an engine keeps for the
vocabulary it may keep.  Both engines read the same tokens in turns; texts that one of them refuses are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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
    mask_us: list[float] = field(default_factory=list)
    accepted: int = 0
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


def compiler(engine: Any, text: str, is_gbnf: bool) -> Callable[[], Any]:
    """Compiles a grammar anew each time it is called, and gives a matcher; both are timed."""
    if engine.name == "guided":
        guided = engine.guided
        front = guided.gbnf if is_gbnf else guided.lark

        def compile_ours() -> Any:
            from engines import _GuidedCompiled

            # Not `guided.compile`, which would remember what earlier texts have come by.
            return _GuidedCompiled(guided.Constraint(front(text), engine.vocabulary), engine.row).start()

        return compile_ours

    def compile_theirs() -> Any:
        from engines import _LlguidanceCompiled
        from llguidance.gbnf_to_lark import gbnf_to_lark

        new = engine.llguidance.LLMatcher
        fresh = new(engine.vocabulary, new.grammar_from_lark(gbnf_to_lark(text) if is_gbnf else text))
        if fresh.is_error():
            raise ValueError(fresh.get_error())
        return _LlguidanceCompiled(engine, fresh).start()

    return compile_theirs


def measure_text(timed: Timed, make: Callable[[], Any], tokens: list[int], end: int) -> None:
    """One text through a grammar compiled for it."""
    clock = time.thread_time
    began = clock()
    matcher = make()
    matcher.mask()
    timed.first_us.append((clock() - began) * 1e6)
    timed.accepted += read(matcher, tokens, end, timed.mask_us, clock)


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
                compiler(engine, 'start: "warm"', False)().mask()
            for at, sample in enumerate(chosen):
                tokens = tokenizer.encode(sample, add_special_tokens=False)
                for engine in turns(engines, number + at):
                    timed = times[engine.name][name]
                    if timed.refused:
                        continue
                    try:
                        measure_text(timed, compiler(engine, text, is_gbnf), tokens, tokenizer.eos_token_id)
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
            spread = percentiles(one.mask_us)
            accepted = one.refused or f"{one.accepted} of {count}"
            first = percentiles(one.first_us)
            rows.append([name, *spread_row(engine, spread, COLUMNS), first.get("p50"), accepted])
    tables = [Table("time per mask and step, us", ["grammar", "engine", *COLUMNS, "first mask p50", "accepted"], rows)]
    bars = []
    if len(times) == len(NAMES):
        both = [name for name in n_texts if not any(by_name[name].refused for by_name in times.values())]
        masks = {e: percentiles([t for name in both for t in by_name[name].mask_us]) for e, by_name in times.items()}
        for column in ("mean", "p99"):
            share = ratio(masks["guided"].get(column), masks["llguidance"].get(column))
            bars.append(Bar(f"{column} time per mask and step of first texts, of llguidance's", share, 1.0, "x"))
        tables.append(Table("grammars that both read", ["grammars"], [[", ".join(both)]]))
    record = {e: {name: vars(timed) for name, timed in by_name.items()} for e, by_name in times.items()}
    return Result(tables, [], bars, {"engines": record})
