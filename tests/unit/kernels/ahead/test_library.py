"""The library that belongs to the sources, and no other, is used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import guided
from guided.kernels.ahead import levels, library
from tests.just_in_time import needs_numba

FIRST_MASK = """
import sys
import numpy as np
import guided

words = [bytes([byte]) for byte in range(256)] + [None]
vocabulary = guided.Vocabulary.from_tokens(words, eos_ids=[256])
schema = {"properties": {"a": {"type": "string", "pattern": "a.*b"}, "n": {"multipleOf": 3}}}
constraint = guided.Constraint(guided.json_schema(schema), vocabulary)
row = np.zeros(vocabulary.n_words, np.uint32)
state = constraint.start
for token in b'{"a": "axxb", "n": 1':
    constraint.fill_mask(state, row)
    state = constraint.advance(state, token)
constraint.fill_mask(state, row)
allowed = sorted(token for token in range(257) if row[token >> 5] >> (token & 31) & 1)
print(allowed, sorted({"numba", "llvmlite", "torch", "lark"} & set(sys.modules)))
"""


def first_mask(choice: str) -> str:
    environment = {**os.environ, library.CHOICE: choice}
    command = [sys.executable, "-c", FIRST_MASK]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


needs_library = pytest.mark.skipif(library.found() is None, reason="there is no library: `guided warmup` makes it")


@needs_library
def test_a_process_that_only_decodes_loads_no_compiler():
    allowed, loaded = first_mask("library").strip().rsplit(" [", 1)
    assert loaded == "]"
    assert chr(50) in map(chr, eval(allowed))


@needs_library
@needs_numba
def test_its_masks_are_those_of_numbas_kernels():
    """Where Numba compiles kernels anyway: for one process alone that takes half a minute."""
    allowed = first_mask("library").strip().rsplit(" [", 1)[0]
    assert first_mask("numba").startswith(allowed)


@pytest.fixture
def folder(monkeypatch, tmp_path) -> Path:
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.delenv(library.CHOICE, raising=False)
    monkeypatch.setattr(library, "levels_here", lambda: list(levels.LEVELS[:2]))
    return tmp_path


def test_the_best_level_of_these_sources_is_found(folder):
    best, second = (library.library_name(level) for level in levels.LEVELS[:2])
    (folder / second.replace(library.source_digest(), "0" * 20)).touch()
    assert library.found() is None, "of other sources"
    (folder / second).touch()
    assert library.found() == folder / second
    (folder / best).touch()
    assert library.found() == folder / best


@pytest.mark.parametrize("change", ["content", "name", "more"])
def test_any_change_of_a_source_is_another_digest(monkeypatch, tmp_path, change):
    package = tmp_path / "kernels"
    shutil.copytree(library.FOLDER.parent, package, ignore=shutil.ignore_patterns("*.kernels", "__pycache__", "*.nb?"))
    monkeypatch.setattr(library, "FOLDER", package / "ahead")
    digest = library.source_digest.__wrapped__
    before = digest()
    assert before == library.source_digest(), "places do not matter"
    if change == "content":
        with (package / "masking" / "masks.py").open("a") as file:
            file.write("\n")
    elif change == "name":
        (package / "masking" / "masks.py").rename(package / "masking" / "others.py")
    else:
        (package / "new.py").touch()
    assert digest() != before


def test_a_process_whose_objects_are_laid_out_otherwise_has_none(folder, monkeypatch):
    (folder / library.library_name(levels.LEVELS[0])).touch()
    assert library.found() is not None
    monkeypatch.setattr(library, "_HEADER", 32)
    assert library.found() is None


def test_what_cannot_be_loaded_is_told_and_left(folder, monkeypatch, caplog):
    path = folder / library.library_name(levels.LEVELS[0])
    path.write_bytes(b"no library")
    assert library.loaded() is None
    assert "cannot be loaded" in caplog.text and str(path) in caplog.text
    monkeypatch.setenv(library.CHOICE, "library")
    with pytest.raises(ImportError):
        library.loaded()
    monkeypatch.setenv(library.CHOICE, "numba")
    caplog.clear()
    assert library.loaded() is None and not caplog.text


def test_where_there_must_be_one_and_is_none_the_remedy_is_told(folder, monkeypatch):
    monkeypatch.setenv(library.CHOICE, "library")
    with pytest.raises(ImportError, match=r"python -m guided\.kernels\.ahead"):
        library.loaded()
    monkeypatch.setenv(library.CHOICE, "C")
    with pytest.raises(ImportError, match="numba"):
        library.loaded()


def test_the_digest_is_of_all_kernels():
    assert library.FOLDER.parent == Path(guided.__file__).parent / "kernels"
