"""The same program in another library and here: both halves run, theirs where the library is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.pages import run_page, sentences, words

PAGES = sorted((ROOT / "docs" / "coming_from").glob("*.md"))
THEIRS = {
    "outlines": ("outlines", "frameworks"),
    "guidance": ("guidance", "frameworks"),
    "xgrammar": ("xgrammar", "engines"),
    "llguidance": ("llguidance", "engines"),
    "llama_cpp": ("llama_cpp", "engines"),
    "instructor": ("instructor", "frameworks"),
    "genlm_control": ("genlm.control", "frameworks"),
}
"""By page what has to be installed for its first half, and which of make's tests install it."""


def is_theirs(heading: str) -> bool:
    return heading.startswith("In ") and heading != "In guided"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_our_half_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    assert run_page(page, under=lambda heading: not is_theirs(heading))["examples"] >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_their_half_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    theirs, tests = THEIRS[page.stem]
    pytest.importorskip(theirs, reason=f"{theirs} is not installed, as it is where make test-{tests} runs")
    monkeypatch.chdir(tmp_path)
    if page.stem != "instructor":
        assert run_page(page, under=is_theirs)["examples"] >= 3
        return
    # Its half asks a service: ours.
    command = [sys.executable, "-m", "guided", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stdout is not None
            address = next(word for line in process.stdout for word in line.split() if word.startswith("http://"))
            monkeypatch.setenv("OPENAI_BASE_URL", f"{address.rstrip('/').removesuffix('/v1')}/v1")
            monkeypatch.setenv("OPENAI_API_KEY", "none")
            assert run_page(page, under=is_theirs)["examples"] >= 3
        finally:
            process.terminate()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sentences_are_short(page):
    assert [f"{words(sentence)}: {sentence}" for sentence in sentences(page) if words(sentence) > 30] == []


def test_every_page_has_both_halves():
    assert {page.stem for page in PAGES} == set(THEIRS)
    for page in PAGES:
        headings = [line for line in page.read_text().splitlines() if line.startswith("## ")]
        assert is_theirs(headings[0][3:]) and headings[1:] == ["## In guided", "## Name by name", "## What changes"]
