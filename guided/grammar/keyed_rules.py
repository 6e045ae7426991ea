"""Grammars whose rules are asked for by keys: those that a start leads to are made, and those without a text left out.

For languages with one rule for each combination of some facts, of which few are met: a type at hand and a type wanted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from guided.grammar.gbnf import gbnf
from guided.grammar.ir import Grammar

__all__ = ["Key", "Options", "Part", "Written", "grammar_from", "said"]


@dataclass(frozen=True)
class Written:
    """A terminal, as GBNF writes it."""

    gbnf: str


Key = tuple[Any, ...]
Part = Written | Key
Options = list[list[Part]]
"""The alternatives of a rule."""


def said(text: str) -> Written:
    """A text without quotes and backslashes, as it stands."""
    return Written(f'"{text}"')


def grammar_from(start: Key, options: Callable[[Key], Options]) -> Grammar | None:
    """The texts of a key, by the alternatives of each; None where there is none."""
    rules = _rules(start, options)
    live = _productive(rules)
    if start not in live:
        return None
    numbers = {key: f"r{number}" for number, key in enumerate(key for key in rules if key in live)}
    lines = [f"root ::= {numbers[start]}"]
    for key, name in numbers.items():
        written = [
            " ".join(part.gbnf if isinstance(part, Written) else numbers[part] for part in option) or '""'
            for option in rules[key]
            if all(isinstance(part, Written) or part in live for part in option)
        ]
        lines.append(f"{name} ::= {' | '.join(written)}")
    return gbnf("\n".join(lines))


def _rules(start: Key, options: Callable[[Key], Options]) -> dict[Key, Options]:
    """All rules that a start asks for."""
    rules: dict[Key, Options] = {}
    waiting = [start]
    while waiting:
        key = waiting.pop()
        if key not in rules:
            rules[key] = options(key)
            waiting += [part for option in rules[key] for part in option if not isinstance(part, Written)]
    return rules


def _productive(rules: Mapping[Key, Options]) -> set[Key]:
    """The rules of which some text can come."""
    live: set[Key] = set()
    found: list[Key] = []
    asking: dict[Key, list[tuple[Key, list[int]]]] = defaultdict(list)
    for key, options in rules.items():
        for option in options:
            parts = {part for part in option if not isinstance(part, Written)}
            # How many parts of the option are not known to be live.
            missing = [len(parts)]
            for part in parts:
                asking[part].append((key, missing))
            if not parts:
                found.append(key)
    while found:
        key = found.pop()
        if key in live:
            continue
        live.add(key)
        for asker, missing in asking[key]:
            missing[0] -= 1
            if not missing[0]:
                found.append(asker)
    return live
