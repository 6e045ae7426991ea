"""The documentation site names every public name and every page, and has the pictures of its diagrams."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import guided

ROOT = Path(guided.__file__).parent.parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="an installed package has no docs")


@pytest.mark.parametrize("part", ["", ".infer", ".steer", ".draft", ".search", ".lm", ".diffusion", ".hf", ".testing"])
def test_the_reference_has_every_public_name(part):
    """Of each the page has the line, and the names are found where they are defined."""
    pytest.importorskip("transformers")
    reference = tool("reference")
    page = (DOCS / f"reference{part.replace('.', '/')}.md").read_text()
    assert f"::: guided{part}.*" in page
    written = reference.on_page_markdown(page)
    package = importlib.import_module(f"guided{part}")
    named = re.findall(r"^::: ([\w.]+)\.(\w+)$", written, re.MULTILINE)
    assert [name for _, name in named] == list(package.__all__)
    for home, name in named:
        assert getattr(importlib.import_module(home), name) is getattr(package, name)


def test_the_navigation_has_every_page():
    listed = re.findall(r"([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_every_page_and_picture_is_linked():
    """From the text of another page; the navigation alone is found by nobody who reads on a repository's site."""
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    linked = {
        (page.parent / target).resolve()
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)", page.read_text(encoding="utf-8"))
        if (page.parent / target).resolve() != page.resolve()
    }
    drawn = set(DOCS.glob("images/diagram-*.svg"))
    assert {*DOCS.rglob("*.md"), *DOCS.glob("images/*")} - drawn - {DOCS / "index.md"} <= linked


def tool(name: str) -> ModuleType:
    """A file of ``docs/site``, which is no package."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", DOCS / "site" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_diagram_has_its_picture():
    diagrams = tool("diagrams")
    pages = {page: diagrams.BLOCK.findall(page.read_text()) for page in DOCS.rglob("*.md")}
    assert sum(map(len, pages.values())) >= 3
    drawn = {DOCS / diagrams.picture(page.relative_to(DOCS).as_posix(), at + 1): source
             for page, sources in pages.items() for at, source in enumerate(sources)}  # fmt: skip
    assert set(drawn) == set(DOCS.glob("images/diagram-*.svg"))
    for picture, source in drawn.items():
        assert diagrams.digest(source) in picture.read_text(), f"{picture.name}: make diagrams"


def test_a_diagram_that_was_changed_is_an_error():
    diagrams = tool("diagrams")
    page = SimpleNamespace(file=SimpleNamespace(src_uri="ARCHITECTURE.md"))
    text = (DOCS / "ARCHITECTURE.md").read_text()
    assert diagrams.on_page_markdown(text, page).count("](images/diagram-architecture-") == 3
    with pytest.raises(ValueError, match="make diagrams"):
        diagrams.on_page_markdown(text.replace("token effects", "effects of tokens"), page)


def test_what_is_wrong_with_a_site_is_found(tmp_path):
    check = tool("check")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text('<h1 id="here">A</h1><a href="../index.html#there">up</a>')
    (tmp_path / "index.html").write_text('<p id="there"></p><a href="a/#here"></a><a href="https://x.org">x</a>')
    assert check.problems(tmp_path) == []
    (tmp_path / "index.html").write_text('<a href="a/#there"></a><a href="b/"></a><script src="//x.org/a.js"></script>')
    (tmp_path / "site.css").write_text("@import 'https://x.org/font.css'")
    assert sorted(check.problems(tmp_path)) == [
        "a/index.html: no anchor ../index.html#there",
        "index.html: loads //x.org/a.js",
        "index.html: no anchor a/#there",
        "index.html: no b/",
        "site.css: loads from outside",
    ]
