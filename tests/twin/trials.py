"""Random grammars, one a seed: each must compile or be refused in bounded time, and no text may meet an error later.

    python -m tests.twin.trials lark 0 50000 --log lark.jsonl

writes a line for each seed, goes on where the log ends, and says what was counted.  `tests/laws/test_random_sources.py`
runs some of them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import guided
from guided.automata.lexer.states import StateTable
from guided.collection import hold, release
from guided.constraint.constraint import Constraint
from guided.errors import GuidedError, LimitError
from guided.grammar.ir import Grammar
from tests import vocabularies
from tests.twin.random_sources import random_gbnf, random_lark

COMPILING, MASKING = 2.0, 0.05
"""Seconds of processor time that a grammar may take to compile or be refused, and a mask over single bytes."""
TEXTS, LENGTH = 3, 40
"""Texts that are written of each grammar, and the most bytes of each."""
ENDS = 8
"""One seed in so many has its texts ended too, by the shortest completion, and masks under a budget: as dear as the
rest of the trial together."""
HOPELESS = 4
"""Times that a limit may be passed: beyond that no other process is the cause, and the seed is not tried again."""
RENEWED = 50
"""Seeds after which the tables that constraints share are made anew, so that little is known already."""


def grammar_of(kind: str, seed: int) -> tuple[str, Any]:
    """The text of a seed's grammar and what reads it."""
    rng = random.Random(f"{kind} {seed}")
    if kind == "gbnf":
        source = random_gbnf(rng)
        return source, lambda: guided.gbnf(source)
    source, lexing = random_lark(rng)
    return f"{source}\n// {lexing}", lambda: guided.lark(source, lexing=lexing)


class Trial:
    """One grammar: ``outcome`` is "compiled" or the refusal's class; ``error`` what must not have happened."""

    def __init__(self, kind: str, seed: int, vocabulary: guided.Vocabulary) -> None:
        self.seed = seed
        self.vocabulary = vocabulary
        self.mask_seconds = 0.0
        self.n_masks = 0
        self.error = ""
        self.message = ""
        self.outcome = "compiled"
        self.grammar: Grammar | None = None
        self.constraint: Constraint | None = None
        self.source, read = grammar_of(kind, seed)
        begun = time.process_time()
        try:
            self.grammar = read()
            self.constraint = Constraint(self.grammar, vocabulary)
        except GuidedError as error:
            self.outcome, self.message = type(error).__name__, str(error)
        except Exception as error:  # whatever it is, it is a fault
            self.error = self.message = f"{type(error).__name__}: {error}"
        self.compile_seconds = time.process_time() - begun

    def write(self, texts: int = TEXTS, length: int = LENGTH, ends: bool = True) -> None:
        """Write random texts, with ``ends`` each to its end by the shortest completion too; masks must be what
        `advance` says."""
        rng = random.Random(self.seed)
        try:
            for _ in range(texts):
                if self.constraint is not None and not self.is_hopeless:
                    self._text(self.constraint, rng, length, ends)
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"

    def _text(self, constraint: Constraint, rng: random.Random, length: int, ends: bool) -> None:
        state, ended = constraint.start, rng.randrange(length)
        for place in range(length):
            allowed = self._mask(constraint, state)
            if self.is_hopeless:
                break
            for token in rng.sample(range(257), 6):
                assert (constraint.advance(state, token) != 0) == (token in allowed), f"mask and advance at {token}"
            text = [token for token in allowed if token < 256]
            if not text:
                break
            plain = [token for token in text if 32 <= token < 127]
            state = constraint.advance(state, rng.choice(plain if plain and rng.random() < 0.9 else text))
            if ends and place == ended:
                self._end(constraint, state, rng)

    def _mask(self, constraint: Constraint, state: int) -> set[int]:
        row = np.zeros(self.vocabulary.n_words, np.uint32)
        begun = time.process_time()
        constraint.fill_mask(state, row)
        self.mask_seconds = max(self.mask_seconds, time.process_time() - begun)
        self.n_masks += 1
        allowed = set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())
        assert allowed, "an empty mask"
        return allowed

    def _end(self, constraint: Constraint, state: int, rng: random.Random) -> None:
        rest = constraint.shortest_text(state)
        assert constraint.is_accepting(constraint.advance_bytes(state, rest)), f"{rest!r} is no end"
        if len(rest) < 30:
            row = np.zeros(self.vocabulary.n_words, np.uint32)
            constraint.fill_budget_mask(state, row, len(rest) + 1 + rng.randrange(3))
            assert row.any(), "an empty mask under a budget"

    @property
    def is_late(self) -> bool:
        """Did it take longer than it may?"""
        return self.compile_seconds > COMPILING or self.mask_seconds > MASKING

    @property
    def is_hopeless(self) -> bool:
        """Did it take so long that trying again is of no use?"""
        return self.compile_seconds > HOPELESS * COMPILING or self.mask_seconds > HOPELESS * MASKING

    def entry(self) -> dict[str, Any]:
        """What the log keeps."""
        return {
            "seed": self.seed, "outcome": self.outcome, "message": self.message[:200], "error": self.error[:300],
            "compile": round(self.compile_seconds, 4), "mask": round(self.mask_seconds, 5), "masks": self.n_masks,
        }  # fmt: skip


def trial(kind: str, seed: int, vocabulary: guided.Vocabulary) -> Trial:
    """A trial; one that was late is tried again twice, since other processes are, and the best counts."""
    held = hold()
    ends = seed % ENDS == 0
    try:
        made = Trial(kind, seed, vocabulary)
        made.write(ends=ends)
    finally:
        if held:
            release()
    for _ in range(2):
        if made.error or not made.is_late or made.is_hopeless:
            break
        again = Trial(kind, seed, fresh_vocabulary())
        again.write(ends=ends)
        made.compile_seconds = min(made.compile_seconds, again.compile_seconds)
        made.mask_seconds = min(made.mask_seconds, again.mask_seconds)
    return made


def fresh_vocabulary() -> guided.Vocabulary:
    """A vocabulary with which no grammar has met, and no lexer states that are known."""
    StateTable._current = None
    return vocabularies.of_bytes()


def run(kind: str, first: int, stop: int, log: Path) -> dict[str, Any]:
    """Try the seeds that the log does not have; what it says of all."""
    done = {json.loads(line)["seed"] for line in log.read_text().splitlines()} if log.exists() else set()
    vocabulary = fresh_vocabulary()
    trial(kind, -1, vocabulary)
    with log.open("a", buffering=1) as out:
        for seed in range(first, stop):
            if seed % RENEWED == 0:
                vocabulary = fresh_vocabulary()
            if seed not in done:
                out.write(json.dumps(trial(kind, seed, vocabulary).entry()) + "\n")
    return summary([json.loads(line) for line in log.read_text().splitlines()])


def summary(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Outcomes, refusals by their messages, what went wrong, and the slowest seeds."""
    refusals = Counter(
        f"{entry['outcome']}: {entry['message'][:60]}" for entry in entries if entry["outcome"] != "compiled"
    )
    return {
        "seeds": len(entries),
        "outcomes": dict(Counter(entry["outcome"] for entry in entries)),
        "masks": sum(entry["masks"] for entry in entries),
        "limits": [entry["seed"] for entry in entries if entry["outcome"] == LimitError.__name__],
        "errors": [(entry["seed"], entry["error"][:100]) for entry in entries if entry["error"]],
        "late": [
            (e["seed"], e["compile"], e["mask"]) for e in entries if e["compile"] > COMPILING or e["mask"] > MASKING
        ],
        "slowest to compile": _slowest(entries, "compile"),
        "slowest masks": _slowest(entries, "mask"),
        "refusals": refusals.most_common(25),
    }


def _slowest(entries: list[dict[str, Any]], what: str) -> list[tuple[int, float]]:
    return [(entry["seed"], entry[what]) for entry in sorted(entries, key=lambda entry: -entry[what])[:10]]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["lark", "gbnf"])
    parser.add_argument("first", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    found = run(arguments.kind, arguments.first, arguments.stop, arguments.log)
    json.dump(found, sys.stdout, indent=1)
    sys.exit(bool(found["errors"] or found["late"]))


if __name__ == "__main__":
    main()
