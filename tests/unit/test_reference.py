"""The API reference: every public name, and an example that runs for it; what still lacks one is counted."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache

import pytest

import guided
from tests.conftest import ROOT
from tests.pages import blocks, run_page

DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="an installed package has no docs")

LACKING = {"infer": 0, "steer": 0, "draft": 96, "search": 33, "lm": 22, "diffusion": 25, "testing": 3, "serving": 6, "nano": 3, "hf": 10}  # fmt: skip
"""By part of guided how many names may lack an example: fewer each time; `guided` itself lacks none."""


@cache
def shown() -> frozenset[str]:
    """The words of all examples of the pages, which other tests run."""
    lines = [
        line
        for page in (ROOT / "README.md", *DOCS.rglob("*.md"))
        for block in blocks(page)
        if block.language == "python"
        for line in block.text.splitlines()
        if line.startswith((">>> ", "... "))
    ]
    return frozenset(re.findall(r"\w+", "\n".join(lines)))


def has_example(thing: object) -> bool:
    return ">>>" in (inspect.getdoc(thing) or "")


def test_every_public_name_has_an_example():
    pytest.importorskip("transformers")
    assert [name for name in guided.__all__ if not has_example(getattr(guided, name))] == []


@pytest.mark.parametrize("part", LACKING)
def test_names_without_an_example_become_fewer(part):
    pytest.importorskip("transformers")
    package = importlib.import_module(f"guided.{part}")
    lacking = [name for name in package.__all__ if name not in shown() and not has_example(getattr(package, name))]
    assert len(lacking) <= LACKING[part], f"give an example for one of {lacking}"


@pytest.mark.parametrize("part", LACKING)
def test_the_examples_of_a_page_run(part, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / "reference" / f"{part}.md")
