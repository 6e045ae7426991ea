"""The pages of the docs that speak of the code: what they quote is what is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import guided
from guided.constraint.engine import requests
from guided.constraint.engine.answers import ANSWERS
from guided.kernels.data import requests as kinds

ROOT = Path(guided.__file__).parent
DOCS = ROOT.parent / "docs"

PAGES = ["ARCHITECTURE.md", "CHANGING.md", "PERFORMANCE.md"]
"""Those that name files, and hold the rule of short paragraphs."""

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="an installed package has no docs")


def table_in_code() -> dict[str, tuple[str, str]]:
    """By kind the fields and the answer, as the docstring of `requests` lists them."""
    lines = (requests.__doc__ or "").splitlines()
    ruler = next(line for line in lines if line.startswith("==="))
    first, second = [match.start() for match in re.finditer(r"(?<= )=", ruler)]
    begin = lines.index(ruler)
    rows: dict[str, tuple[str, str]] = {}
    kind = ""
    for line in lines[begin + 3 : lines.index(ruler, begin + 3)]:
        if name := line[:first].strip():
            kind = name
            rows[kind] = line[first:second].strip(), line[second:].strip()
        else:
            fields, answer = rows[kind]
            rows[kind] = fields, f"{answer} {line.strip()}"
    return rows


def table_in_page() -> dict[str, tuple[str, str]]:
    """The same, as the architecture page has it."""
    rows = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in (DOCS / "ARCHITECTURE.md").read_text().splitlines()
        if re.match(r"\| `[A-Z_]+` \|", line)
    ]
    return {kind: (fields, answer) for kind, fields, answer in rows}


def constants() -> dict[str, int]:
    """What kernels may ask, by name."""
    return {name: kind for name, kind in vars(kinds).items() if name.isupper() and isinstance(kind, int)}


def test_the_page_has_the_table_of_requests():
    assert table_in_page() == table_in_code()


def test_the_table_has_every_request():
    assert {f"`{name}`" for name in constants()} == set(table_in_code())


def test_a_machine_answers_all_but_what_walks_ask():
    asked_by_walks = {"GROW_EXITS", "GROW_FANS", "GROW_NODES", "GROW_TRIES"}
    assert set(ANSWERS) == {kind for name, kind in constants().items() if name not in asked_by_walks}


def test_the_walk_of_the_architecture_page(data):
    tokenizer = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(data / "tokenizers" / "llama3")
    vocabulary = guided.Vocabulary.from_tokenizer(tokenizer)
    page = (DOCS / "ARCHITECTURE.md").read_text()
    schema = ast.literal_eval(next(line for line in page.splitlines() if line.startswith('{"type"')))
    constraint = guided.compile(guided.json_schema(schema), vocabulary)
    state = constraint.advance_bytes(constraint.start, b'{"name": "')
    row = np.zeros(vocabulary.n_words, np.uint32)
    constraint.fill_mask(state, row)
    allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    assert vocabulary.token_bytes(9388) == b'"}' and row[293] >> 12 & 1
    (comma,) = [token for token in range(vocabulary.size) if vocabulary.token_bytes(token) == b'"},']
    assert comma not in allowed
    assert f"{allowed.size:,} bits are set" in " ".join(page.split())


def glossary() -> list[tuple[str, str]]:
    """The terms of the glossary, each with the file that it names."""
    rows = [line.strip("| ").split(" | ") for line in (DOCS / "GLOSSARY.md").read_text().splitlines() if "`" in line]
    return [(row[0], row[-1].strip("`")) for row in rows if len(row) == 3]


def test_each_term_lives_in_a_file():
    terms = glossary()
    assert len(terms) > 80
    assert [(term, file) for term, file in terms if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_files_that_exist(page):
    named = re.findall(r"`([a-z_/]+/[a-z_0-9]+\.py)`", (DOCS / page).read_text())
    folders = (ROOT, ROOT.parent)
    assert named
    assert [file for file in named if not any((folder / file).is_file() for folder in folders)] == []


@pytest.mark.parametrize("page", PAGES)
def test_paragraphs_are_short(page):
    text = re.sub(r"```.*?```", "", (DOCS / page).read_text(), flags=re.DOTALL)
    paragraphs = [part for part in text.split("\n\n") if not part.lstrip().startswith(("|", "- ", "1. "))]
    assert [part for part in paragraphs if part.count("\n") >= 8] == []
