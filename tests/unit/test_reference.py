"""The API reference: every public name, and an example that runs for it."""

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

PARTS = ["infer", "steer", "draft", "search", "lm", "diffusion", "testing", "serving", "nano", "hf"]


@cache
def shown(part: str) -> frozenset[str]:
    """The words of the examples above a part's names, on the page that has them."""
    lines = [
        line
        for block in blocks(DOCS / "reference" / f"{part}.md")
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


@pytest.mark.parametrize("part", PARTS)
def test_every_name_of_a_part_has_an_example(part):
    """In its docstring, or on the page of the part."""
    pytest.importorskip("transformers")
    package = importlib.import_module(f"guided.{part}")
    names = [name for name in package.__all__ if not has_example(getattr(package, name))]
    assert [name for name in names if name not in shown(part)] == []


@pytest.mark.parametrize("part", PARTS)
def test_the_examples_of_a_page_run(part, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / "reference" / f"{part}.md")
