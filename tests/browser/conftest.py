"""`guided serve` as a process of its own, and a real Chromium in front of it; skipped by name where one is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 180
"""Seconds until a wait counts as one for ever.  What comes is not waited for longer, so this only has to be more than a
busy machine needs: two cores with a load of 8 to 13 took 32 s to start the server, and 64 s to load and read the
longest page of the site with axe."""


@contextmanager
def serving(*options: str, **environment: str) -> Iterator[str]:
    """The address of a server that is started with these options."""
    command = [sys.executable, "-m", "guided", "serve", "--port", "0", *options]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"(http://[\w.:]+)/ ", line):
                yield found[1]
                break
        else:
            raise RuntimeError(f"guided serve ended with {process.wait()}")
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def until(page, condition: str) -> None:
    """Wait until a JavaScript expression holds.  Playwright's own way needs `eval`, which the page's policy forbids."""
    ends = time.monotonic() + PATIENCE
    while not page.evaluate(condition):
        assert time.monotonic() < ends, f"not within {PATIENCE} s: {condition}"
        page.wait_for_timeout(50)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with serving("--draft", "auto") as found:
        yield found


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"there is no Chromium here: none of {', '.join(NAMES)}")
    with playwright.sync_playwright() as run:
        # Without a sandbox, because containers run as root; it loads nothing but our own page.
        found = run.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=PATIENCE * 1000)
        yield found
        found.close()


@pytest.fixture
def open_page(browser, address):
    """A function that opens the page; whatever the console or a script complains of fails the test."""
    complaints: list[str] = []
    contexts = []

    def opened(width=1440, height=1000, scheme="light", at=address, allowed="", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme,
                                      reduced_motion="reduce", **options)  # fmt: skip
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: said.type in ("error", "warning") and not (allowed and allowed in said.text)
                and complaints.append(said.text))  # fmt: skip
        page.goto(at)
        until(page, "!document.getElementById('server').textContent.includes('connecting')")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
