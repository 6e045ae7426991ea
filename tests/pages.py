"""Pages of Markdown as tests read them: blocks in order, each run in its way, and sentences."""

from __future__ import annotations

import doctest
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r'^```(\w+)?(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)

OTHERS = ("pip ", "vllm ")
"""Programs that pages show and tests leave alone: they need a network, or packages that are not here."""


@dataclass(frozen=True)
class Block:
    """A fenced block: the heading above it, its language, the name of the file that it is, its lines, where they begin."""

    heading: str
    language: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks in order."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        above = re.findall(r"^#+ (.+)$", FENCE.sub("", text[: found.start()]), re.MULTILINE)
        yield Block(
            above[-1] if above else "", found[1] or "", found[2] or "", found[3], text.count("\n", 0, found.start(3))
        )


def run_page(page: Path, *, under: Callable[[str], bool] = lambda heading: True) -> dict[str, int]:
    """Run a page's blocks in order, in the current folder, and count them by what was done.

    ``under`` says of a heading whether what stands under it is run.

    Examples of Python are one session. A block with a title is written to the file of that name. Lines of ``guided`` on
    a console run in this process; what is shown under one is compared as Python's examples are, ``...`` for anything.
    """
    session: dict[str, object] = {"__name__": "__main__"}
    done = {"examples": 0, "files": 0, "commands": 0}
    report: list[str] = []
    for block in blocks(page):
        if not under(block.heading):
            continue
        if block.title:
            Path(block.title).parent.mkdir(exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
            done["files"] += 1
        elif block.language == "python":
            test = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line)
            test.globs = session
            results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
            assert not results.failed, "".join(report)
            done["examples"] += results.attempted
        elif block.language == "console":
            done["commands"] += sum(run_command(line, shown) for line, shown in commands(block.text))
    return done


def commands(text: str) -> list[tuple[str, str]]:
    """The lines of a console block, each with what is shown under it."""
    return [
        (part.partition("\n")[0], part.partition("\n")[2]) for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    ]


def run_command(line: str, shown: str) -> bool:
    """Run one line; whether it was run. It may answer no or refuse, but not fail."""
    from typer.testing import CliRunner

    from guided.cli.application import application

    if line.startswith(OTHERS):
        return False
    program, *words = shlex.split(os.path.expandvars(line), comments=True)
    assert program == "guided", line
    result = CliRunner().invoke(application, words)
    assert result.exit_code in (0, 1, 3), f"{line}: {result.exit_code}\n{result.output}\n{result.exception!r}"
    matches = doctest.OutputChecker().check_output(shown, result.output, FLAGS)
    assert matches or not shown, f"{line}\n{result.output}"
    return True


def sentences(page: Path) -> list[str]:
    """The sentences of a page's text: no code, tables, headings or addresses of links."""
    return sentences_of(page.read_text(encoding="utf-8"))


def sentences_of(text: str) -> list[str]:
    """The sentences of Markdown, or of a docstring."""
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ *(?:>>>|\.\.\.) .*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^(\||#|:::|!).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"``.+?``|`[^`]*`", "code", text, flags=re.DOTALL)
    return [
        sentence
        for paragraph in re.split(r"\n\s*\n", text)
        for sentence in re.split(r"(?<=[.:;?!])\s+", " ".join(paragraph.split()))
        if sentence
    ]


def words(sentence: str) -> int:
    """The words of a sentence; a piece of code is one."""
    return len(re.findall(r"[^\W_]+(?:['’.,-][^\W_]+)*", sentence))
