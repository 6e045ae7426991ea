"""The built documentation in a real browser: it loads nothing from elsewhere, fits a phone, and keeps nobody out."""

from __future__ import annotations

import functools
import io
import os
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser.conftest import ROOT

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


def pages() -> list[str]:
    return sorted(path.parent.relative_to(SITE).as_posix() + "/" for path in SITE.rglob("index.html"))


@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1440, "dark")])
def test_pages_are_whole_and_fit(browser, site, width, scheme):
    """One browser for all pages: each is loaded once a width, and axe reads it."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on(
        "request", lambda asked: complaints.append(asked.url) if not asked.url.startswith((site, "data:")) else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("response", lambda came: complaints.append(came.url) if came.status >= 400 else None)
    assert len(pages()) > 30
    for name in pages():
        page.goto(site + name, wait_until="networkidle")
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            complaints.append(f"{name} is {wide} pixels wide")
        if AXE.is_file():
            page.add_script_tag(path=AXE)
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            complaints += [
                f"{name} {each['id']}: {each['nodes'][0]['html'][:160]} ({len(each['nodes'])})"
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            ]
    context.close()
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("width", [375, 1440])
def test_screenshots(browser, site, width):
    if not PICTURES:
        pytest.skip("no folder for screenshots: GUIDED_SCREENSHOTS")
    from PIL import Image

    context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    for name in SHOWN:
        page.goto(site + name, wait_until="networkidle")
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(256, dither=Image.Dither.NONE)
        image.save(Path(PICTURES) / f"site-{name.rstrip('/').replace('/', '-') or 'start'}-{width}.png", optimize=True)
    context.close()
