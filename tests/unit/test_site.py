"""The documentation site names every public name and every page."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import guided

ROOT = Path(guided.__file__).parent.parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="an installed package has no docs")


def test_the_reference_has_every_public_name():
    named = re.findall(r"^::: ([\w.]+)\.(\w+)$", (DOCS / "reference.md").read_text(), re.MULTILINE)
    assert sorted(name for _, name in named) == sorted(guided.__all__)
    for home, name in named:
        assert getattr(importlib.import_module(home), name) is getattr(guided, name)


def test_the_navigation_has_every_page():
    listed = re.findall(r"([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_the_start_page_runs():
    pytest.importorskip("transformers")
    found = doctest.testfile(str(DOCS / "index.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed
