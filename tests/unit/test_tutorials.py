"""The start page and each tutorial run from their first block to their last, and say it in short sentences."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.databases import Databases
from tests.pages import blocks, run_page, sentences, sentences_of, words

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
FIRST_LEVEL = [ROOT / "docs" / "index.md", *TUTORIALS]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
"""Pages whose sentences have at most 30 words."""
PARTS = ("", ".infer", ".steer", ".draft", ".search", ".lm", ".diffusion", ".hf", ".serving", ".testing", ".nano")
"""Packages whose names are in the reference."""
SHOP = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, product TEXT, price NUMERIC, placed DATE)",
    "INSERT INTO orders VALUES (1, 'desk', 240, '2026-01-05'), (2, 'lamp', 30, '2026-02-01'), (3, 'chair', 85.5, NULL)",
)


@pytest.mark.parametrize("page", FIRST_LEVEL, ids=lambda page: page.stem)
def test_every_block_runs(page, tmp_path, monkeypatch, request):
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    if page.stem == "sql":
        databases: Databases = request.getfixturevalue("databases")
        monkeypatch.setenv("DATABASE_URL", databases("postgresql").create(*SHOP))
    done = run_page(page)
    assert done["examples"] + done["commands"] >= 2
    # What has no prompt runs nowhere, so a page with such a block says so.
    silent = [block for block in blocks(page) if block.language == "python" and ">>>" not in block.text]
    assert page.stem == "vllm" or not silent


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_says_first_what_the_reader_gets(page):
    title, _, text = page.read_text(encoding="utf-8").partition("\n\n")
    assert title.startswith("# ") and text.startswith("You get ")


def long_ones(found: list[str]) -> list[str]:
    return [f"{words(sentence)}: {sentence}" for sentence in found if words(sentence) > 30]


def test_sentences_are_short():
    assert {page.stem: found for page in PAGES if (found := long_ones(sentences(page)))} == {}


@pytest.mark.parametrize("part", PARTS)
def test_sentences_about_names_are_short(part):
    """Of every public name, and of what a public class offers."""
    pytest.importorskip("transformers")
    package = importlib.import_module(f"guided{part}")
    named = {name: getattr(package, name) for name in package.__all__}
    for name, each in list(named.items()):
        offered = vars(each).items() if inspect.isclass(each) else ()
        named.update({f"{name}.{of}": one for of, one in offered if not of.startswith("_") and inspect.isroutine(one)})
    texts = {name: inspect.getdoc(each) or "" for name, each in named.items()}
    assert {name: found for name, text in texts.items() if (found := long_ones(sentences_of(text)))} == {}


def test_what_counts_as_a_sentence(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n\nOne two `three four` five.\nSix [seven](eight.md)? Nine\n\n```python\nten\n```\n\n| a |\n- ten\n  more\n"
    )
    assert [words(each) for each in sentences(page)] == [4, 2, 1, 2]


def test_the_navigation_has_the_tutorials():
    listed = re.findall(r"tutorials/([\w]+)\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(listed) == [page.stem for page in TUTORIALS]


def test_what_a_page_shows_is_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path("page.md")
    text = '```text title="g.gbnf"\nroot ::= "ab"\n```\n\n```console\n$ guided check g.gbnf --accepts ab\n...\naccepted {}\n```\n'
    page.write_text(text.format("yes"))
    assert run_page(page) == {"examples": 0, "files": 1, "commands": 1}
    page.write_text(text.format("no"))
    with pytest.raises(AssertionError):
        run_page(page)
    page.write_text("```python\n>>> 1 + 1\n3\n\n```\n")
    with pytest.raises(AssertionError):
        run_page(page)
