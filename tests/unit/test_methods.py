"""The page of methods: every row's code, paper and test are there, and no method is missing."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECTIONS = [
    "Samplers that correct the distribution", "Cuts of the distribution", "Evidence", "Steering", "Search", "Drafts",
    "Diffusion", "Front ends",
]  # fmt: skip
ARXIV = re.compile(r"\b\d{4}\.\d{5}\b")
ROW = re.compile(
    r"^\| (.+?) \| (.*?) \| `(guided\.[\w.]+)` \| (.+?) \| `(tests/[\w/]+\.py)` \| (.+?) \|$", re.MULTILINE
)

PAGE = (ROOT / "docs/METHODS.md").read_text()
ROWS = [match.groups() for match in ROW.finditer(PAGE)]


@cache
def source(part: str) -> str:
    return "\n".join(path.read_text() for path in (ROOT / part).rglob("*.py"))


def found(name: str) -> Any:
    home, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(home), attribute)


def test_every_line_of_a_table_is_a_row():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| method |")]
    assert len(lines) == len(ROWS) > 90
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("row", ROWS, ids=[row[2] for row in ROWS])
def test_a_row_names_what_is_there(row):
    _, papers, code, _, test, _ = row
    value = found(code)
    assert callable(value)
    module = Path(*value.__module__.split("."))
    for paper in ARXIV.findall(papers):
        assert paper in source(str(Path(*module.parts[:2]))), "the paper stands nowhere in the part's code"
    # A steerer's docstring names its formula, which has the reference.
    names = [code.rpartition(".")[2], *re.findall(r"`(\w+)`", value.__doc__ or "")]
    text = (ROOT / test).read_text()
    assert any(re.search(rf"\b{name}\b", text) for name in names), "the test never names the method"


def test_no_method_stands_twice():
    codes = [row[2] for row in ROWS]
    assert sorted(codes) == sorted(set(codes))


@pytest.mark.parametrize("part", ["lm", "infer", "steer", "search", "draft", "diffusion"])
def test_every_paper_of_the_code_is_on_the_page(part):
    """What a part's code says it comes from stands in a row, or among those that are no method of their own."""
    cited = set(ARXIV.findall(source(f"guided/{part}")))
    assert cited - set(ARXIV.findall(PAGE)) - set(OTHERS) == set()


OTHERS: dict[str, str] = {"2410.09303": "how models of other tokenizers are read as bytes"}
"""Papers that the code cites for something else than a method of this page, and for what."""
