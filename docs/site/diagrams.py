"""The diagrams of the pages: Mermaid in the sources, drawn ahead, pictures on the site.

``make diagrams`` draws every block of Mermaid into ``docs/images`` by Mermaid itself in Chromium. As MkDocs' hook this
file puts the pictures where the blocks are, so that a reader's browser loads no script for them. A picture says which
source it was drawn from, and a block without its picture is an error.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent
BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^ *accTitle: *(.+)$", re.MULTILINE)
DRAW = """async ([source, id]) => {
    mermaid.initialize({startOnLoad: false, theme: "neutral", htmlLabels: false, flowchart: {htmlLabels: false}});
    return (await mermaid.render(id, source)).svg;
}"""


def digest(source: str) -> str:
    """What a picture says of its source."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def picture(page: str, at: int) -> str:
    """The path below ``docs`` of the picture of a page's block."""
    return f"images/diagram-{page.removesuffix('.md').replace('/', '-').lower()}-{at}.svg"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """MkDocs' hook: blocks become pictures, with their titles in the place of the pictures for who cannot see them."""
    pictures = iter(range(1, len(BLOCK.findall(markdown)) + 1))

    def drawn(block: re.Match[str]) -> str:
        path = picture(page.file.src_uri, next(pictures))
        title = TITLE.search(block[1])
        if title is None:
            raise ValueError(f"{page.file.src_uri}: a diagram without accTitle")
        if not (DOCS / path).is_file() or digest(block[1]) not in (DOCS / path).read_text(encoding="utf-8"):
            raise ValueError(f"{path} is not drawn from the block in {page.file.src_uri}: make diagrams")
        return f"![{title[1]}]({posixpath.relpath(path, posixpath.dirname(page.file.src_uri) or '.')})"

    return BLOCK.sub(drawn, markdown)


def main(mermaid: str) -> None:
    """Draw all blocks of all pages with this file of Mermaid's."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as run:
        browser = run.chromium.launch(executable_path=path, args=["--no-sandbox"])
        sheet = browser.new_page()
        sheet.add_script_tag(path=mermaid)
        for page in sorted(DOCS.rglob("*.md")):
            name = page.relative_to(DOCS).as_posix()
            for at, source in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
                text = sheet.evaluate(DRAW, [source, f"diagram{at}"])
                (DOCS / picture(name, at)).write_text(
                    f"{text}\n<!-- drawn from {digest(source)} -->\n", encoding="utf-8"
                )
                print(picture(name, at))
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
