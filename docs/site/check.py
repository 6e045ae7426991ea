"""The built site, read as a browser would: every link and anchor is there, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
"""What a browser fetches by itself; a link is only fetched when it is clicked."""
DESCRIBES = {"canonical", "prev", "next", "alternate"}
"""Relations of a ``link`` that fetch nothing."""


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the tag names."""
        given = {name: value for name, value in attrs if value is not None}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") in DESCRIBES:
            return
        self.loads += [given[name] for kind, name in LOADED if kind == tag and name in given]


def problems(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and for each address outside that a page loads by itself."""
    # The page of errors has addresses from the root of wherever it is put.
    pages = {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        found += [f"{where}: loads {address}" for address in page.loads if urlsplit(address).netloc]
        for address in {*page.links, *page.loads}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{where}: no {address}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: no anchor {address}")
    styles = [*site.rglob("*.css")]
    outside = re.compile(r"(?:url\(|@import )['\"]?(?:https?:)?//")
    return found + [
        f"{path.relative_to(site)}: loads from outside" for path in styles if outside.search(path.read_text())
    ]


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]).resolve())
    print("\n".join(lines) or "links, anchors and what pages load: nothing wrong")
    sys.exit(bool(lines))
