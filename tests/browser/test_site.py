"""The built documentation in a real browser: it loads nothing from elsewhere, fits a phone, and keeps nobody out."""

from __future__ import annotations

import functools
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser.conftest import PATIENCE, ROOT

SITE = ROOT / "build" / "site"
PICTURES = os.environ.get("GUIDED_SCREENSHOTS")
AXE = Path(os.environ.get("GUIDED_AXE", "axe.min.js"))
SHOWN = ("", "tutorials/sampling/", "reference/")
"""Pages of three kinds, of which there are screenshots."""

pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built: make docs")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


PAGES = sorted(
    path.relative_to(ROOT / "docs").with_suffix("").as_posix().removesuffix("index")
    for path in (ROOT / "docs").rglob("*.md")
)


def test_the_pages_are_those_of_the_sources():
    built = (path.parent.relative_to(SITE).as_posix().removeprefix(".") for path in SITE.rglob("index.html"))
    assert sorted(built) == PAGES


@pytest.fixture(scope="module", params=[(375, "light"), (1440, "dark")], ids=lambda given: f"{given[0]}-{given[1]}")
def context(request, browser):
    """One window a width for all pages."""
    width, scheme = request.param
    found = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
    yield found
    found.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_fits(context, site, name):
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    complaints: list[str] = []
    page.on(
        "request", lambda asked: complaints.append(asked.url) if not asked.url.startswith((site, "data:")) else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("response", lambda came: complaints.append(came.url) if came.status >= 400 else None)
    page.goto(f"{site}{name}/" if name else site, wait_until="networkidle")
    wide, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    if wide > window:
        complaints.append(f"{wide} pixels wide")
    if AXE.is_file():
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        complaints += [
            f"{each['id']}: {each['nodes'][0]['html'][:160]} ({len(each['nodes'])})"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
    page.close()
    assert not complaints, "\n".join(complaints)


def test_what_is_copied_runs(browser, site, tmp_path):
    """The start page's first program, by its button, as a file."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(site)
    copied = []
    for block in page.locator("pre:has(> code)").filter(has_text=re.compile(r"^(>>>|\$) ")).all():
        block.hover()
        block.get_by_role("button", name="Copy to clipboard").click()
        copied.append(page.evaluate("navigator.clipboard.readText()"))
    context.close()
    program = next(text for text in copied if "guided.generate" in text)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=PATIENCE, check=True)
    assert "guided extract --schema person.json letter.txt" in copied
    assert not [line for text in copied for line in text.splitlines() if line.startswith((">>>", "...", "$", "{"))]


@pytest.mark.parametrize("width", [375, 1440])
def test_screenshots(browser, site, width):
    if not PICTURES:
        pytest.skip("no folder for screenshots: GUIDED_SCREENSHOTS")
    from PIL import Image

    context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    for name in SHOWN:
        page.goto(site + name, wait_until="networkidle")
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(256, dither=Image.Dither.NONE)
        image.save(Path(PICTURES) / f"site-{name.rstrip('/').replace('/', '-') or 'start'}-{width}.png", optimize=True)
    context.close()
