"""Every file that is packaged and is no Python has its licence on the page of releases, and the page lists no others."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import guided

ROOT = Path(guided.__file__).parent.parent
PAGE = ROOT / "docs" / "RELEASES.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="an installed package has no docs")

LICENCE = "Apache-2.0"


def packaged() -> list[str]:
    """Paths from the root of all files below the package's folders that are no Python."""
    files = [path for folder in ("guided", "grammars") for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(
        path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".py" and "__pycache__" not in path.parts
    )


def listed() -> dict[str, str]:
    """Patterns of the page, and the licence of each."""
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    return {pattern: licence.strip() for pattern, licence in rows}


def covers(pattern: str, path: str) -> bool:
    """Does a pattern speak of a file?  ``*`` is one folder's files, ``**`` all below it."""
    return fnmatch(path, pattern) and ("**" in pattern or path.count("/") == pattern.count("/"))


def test_every_file_has_a_licence():
    known = listed()
    assert set(known.values()) == {LICENCE}
    missing = [path for path in packaged() if not any(covers(pattern, path) for pattern in known)]
    assert missing == []


def test_the_page_lists_no_file_that_is_not_there():
    # Compiled kernels are there once they are compiled.
    patterns = [pattern for pattern in listed() if not pattern.startswith("guided/kernels/ahead")]
    assert len(patterns) >= 5
    assert [each for each in patterns if not any(covers(each, path) for path in packaged())] == []


def test_the_licence_is_the_same_everywhere():
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()
    texts = [path.read_text() for path in (ROOT / "LICENSE", *ROOT.glob("guided/**/LICENSE"))]
    assert len(texts) >= 3 and all("Apache License" in text and "Version 2.0" in text for text in texts)
    for card in ROOT.glob("guided/**/MODEL_CARD.md"):
        assert "Apache-2.0" in card.read_text(), card


def test_the_page_of_the_server_fetches_nothing_foreign():
    for path in (ROOT / "guided/server/page/static").iterdir():
        assert not re.search(r"""(?:src|href|import|url)\s*[=(]?\s*["'(]https?://""", path.read_text()), path
