"""Pattern matching: a string that a regular expression matches, judged by the package `regex`.

Where guided reads the expression exactly, its grammar is the condition.  Others (recursion, look-around, atomic groups)
are asked of `regex` itself, with its partial matches for prefixes: a predicate without any mask.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import guided
from guided.errors import GuidedError
from guided.eval.awrs.problems import Asker, Problem, Question, TaskName, ending_with_lines, needed
from guided.hf import LoadedModel
from guided.infer import TextPredicate

__all__ = ["asker", "read"]

SECONDS = 0.5
"""Limit of one match: some expressions take exponential time."""

EXAMPLES = (
    ("^[a-c]{2}[0-9]$", "ab7"),
    (r"^(red|green)\s\d{2,3}$", "green 42"),
    ("^[A-Z][a-z]+$", "Lisbon"),
    (r"^\w+@example\.(com|org)$", "ada@example.org"),
)


def read(data: Path) -> list[Problem]:
    """Every expression of ``awrs/patterns.csv``."""
    path = needed(data / "awrs" / "patterns.csv", "the list of patterns")
    with path.open(encoding="utf-8", newline="") as file:
        patterns = list(dict.fromkeys(row["regex"] for row in csv.DictReader(file)))
    return [Problem(TaskName.PATTERNS, f"pattern/{number}", each) for number, each in enumerate(patterns)]


def asker(model: LoadedModel) -> Asker:
    """Asks for one line."""
    vocabulary = ending_with_lines(model)

    def ask(problem: Problem) -> Question:
        matcher = _Matcher(problem.content)
        try:
            condition: Any = guided.compile(guided.regex(problem.content), vocabulary)
        except GuidedError:
            condition = TextPredicate(vocabulary, matcher.whole, matcher.beginning)
        shown = "".join(f"Pattern: {pattern}\nMatch: {text}\n\n" for pattern, text in EXAMPLES)
        text = f"Write a string that each pattern matches.\n\n{shown}Pattern: {problem.content}\nMatch: "
        return Question(list(model.tokenizer(text)["input_ids"]), vocabulary, condition, matcher.whole, "regex")

    return ask


class _Matcher:
    """An expression as the package `regex` understands it."""

    def __init__(self, pattern: str) -> None:
        import warnings

        try:
            import regex
        except ImportError as error:
            raise GuidedError("patterns need the package regex", remedy="Install it: pip install regex.") from error
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._compiled = regex.compile(pattern)
        except regex.error as error:
            raise GuidedError(f"not a regular expression of the package regex: {error}", where=pattern) from error

    def whole(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._matches(text, partial=False)

    def beginning(self, text: str) -> bool:
        """Whether the text may be the beginning of a match; yes where that cannot be found out in time."""
        return self._matches(text, partial=True)

    def _matches(self, text: str, *, partial: bool) -> bool:
        try:
            return self._compiled.fullmatch(text, partial=partial, timeout=SECONDS) is not None
        except TimeoutError:
            return partial
