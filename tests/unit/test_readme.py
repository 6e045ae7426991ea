"""Every Python example of the README and of docs/ runs as printed; every command it shows exists; links lead somewhere."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path, language: str) -> str:
    """All fenced blocks of a language, in order, at their own line numbers."""
    kept, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line == f"```{language}"
            kept.append("")
        else:
            kept.append(line if inside else "")
    return "\n".join(kept) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run_as_printed(page):
    test = doctest.DocTestParser().get_doctest(
        blocks(page, "python"), {"__name__": "__main__"}, page.name, str(page), 0
    )
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert not results.failed, "".join(report)


def test_the_readme_has_examples():
    assert blocks(PAGES[0], "python").count(">>>") > 20


def test_commands_of_the_readme_exist():
    from typer.main import get_command

    from guided.cli.application import application

    commands = get_command(application).commands
    shown = [line[2:] for line in blocks(PAGES[0], "console").splitlines() if line.startswith("$ guided")]
    assert shown
    for line in shown:
        _, name, *words = shlex.split(line)
        known = {flag for parameter in commands[name].params for flag in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
