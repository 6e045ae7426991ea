"""The ready grammars: every example is replayed through the engine, and compared with whoever knows the language."""

from __future__ import annotations

import ast
import datetime
import json
import re
import sqlite3
import sys
from functools import cache
from pathlib import Path

import lark
import pytest

import guided
from guided.constraint.compile import compile
from guided.constraint.constraint import Constraint
from guided.errors import GrammarError
from guided.grammar.library import examples, grammar, names, source
from tests import vocabularies
from tests.amounts import each
from tests.conftest import ROOT

EXAMPLES = [
    pytest.param(name, text, wanted, id=f"{name}-{'accepts' if wanted else 'rejects'}-{number}")
    for name in names()
    for texts, wanted in zip(examples(name), (True, False), strict=True)
    for number, text in enumerate(texts)
]


@cache
def compiled(name: str) -> Constraint:
    vocabulary = vocabularies.of_bytes()
    return compile(grammar(name), vocabulary)


def accepts(name: str, text: str) -> bool:
    constraint = compiled(name)
    state = constraint.advance_bytes(constraint.start, text.encode())
    return state != 0 and constraint.is_accepting(state)


def test_names() -> None:
    wanted = "arithmetic c_program iso8601 json markdown_table pddl_plan python_expression smiles sqlite_select"
    wanted += " typescript_statements"
    assert names() == tuple(wanted.split())
    with pytest.raises(GrammarError, match=r"'nonsense'.*smiles"):
        grammar("nonsense")
    with pytest.raises(GrammarError):
        source("../json")


def test_another_start() -> None:
    constraint = compile(grammar("json", start="number"), compiled("json").vocabulary)
    assert constraint.advance_bytes(constraint.start, b"-1.5") and not constraint.advance_bytes(constraint.start, b"[")


@pytest.mark.parametrize(("name", "text", "wanted"), EXAMPLES)
def test_examples(name: str, text: str, wanted: bool) -> None:
    assert accepts(name, text) is wanted, text


@pytest.mark.parametrize("name", each([name for name in names() if source(name).suffix == ".lark"], 2))
def test_lark_itself_agrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Lark's check for colliding terminals takes minutes on sixty keywords with look-ahead, and changes nothing here.
    monkeypatch.setattr("lark.lexer.has_interegular", False)
    parser = lark.Lark(source(name).read_text(encoding="utf-8"), parser="lalr")

    def parses(text: str) -> bool:
        try:
            parser.parse(text)
        except lark.exceptions.LarkError:
            return False
        return True

    accepted, rejected = examples(name)
    assert [text for text in accepted if not parses(text)] == []
    assert [text for text in rejected if parses(text)] == []


@pytest.mark.parametrize("name", names())
def test_enough_examples(name: str) -> None:
    accepted, rejected = examples(name)
    assert len(accepted) >= 7 and len(rejected) >= 10
    assert not set(accepted) & set(rejected)


def test_json_examples_against_the_standard_library() -> None:
    for text in examples("json")[0]:
        json.loads(text)
    # Python reads NaN and Infinity, which are not JSON.
    for text in set(examples("json")[1]) - {"NaN", "Infinity"}:
        with pytest.raises(ValueError):
            json.loads(text)


def test_python_examples_against_python() -> None:
    for text in examples("python_expression")[0]:
        ast.parse(text, mode="eval")
    outside = {"1if x else 2", "f'{x}'", "yield x", "await x", "x := 1"}
    for text in set(examples("python_expression")[1]) - outside:
        with pytest.raises(SyntaxError):
            ast.parse(text, mode="eval")


def test_sqlite_examples_against_sqlite() -> None:
    connection = sqlite3.connect(":memory:")

    def parses(text: str) -> bool:
        """SQLite knows none of the tables, but says so only of what it could parse."""
        try:
            connection.execute(text)
        except (sqlite3.OperationalError, sqlite3.Warning, sqlite3.ProgrammingError) as error:
            return re.search("syntax error|incomplete input|unrecognized token|one statement", str(error)) is None
        return True

    for text in examples("sqlite_select")[0]:
        assert parses(text), text
    for text in set(examples("sqlite_select")[1]):
        not_a_query = ";" in text or text.split(" ")[0] in ("", "DELETE", "INSERT", "UPDATE", "PRAGMA")
        assert not_a_query or not parses(text), text


def test_every_calendar_date_of_some_years() -> None:
    """All days there are, and none that are not, in years that try every leap rule."""
    constraint = compiled("iso8601")
    for year in (1900, 2000, 2023, 2024):
        for month in range(1, 13):
            for day in range(1, 33):
                try:
                    datetime.date(year, month, day)
                    real = True
                except ValueError:
                    real = False
                for text in (f"{year}-{month:02}-{day:02}", f"{year}{month:02}{day:02}"):
                    state = constraint.advance_bytes(constraint.start, text.encode())
                    assert (state != 0 and constraint.is_accepting(state)) is real, text


def test_smiles_from_elsewhere(data: Path) -> None:
    molecules = (data / "awrs" / "GDB17_sample.txt").read_text().split()
    assert len(molecules) == 30
    assert [molecule for molecule in molecules if not accepts("smiles", molecule)] == []


def test_public_name() -> None:
    assert guided.compile(guided.grammar("json"), compiled("json").vocabulary).start


def test_the_wheel_lists_every_package() -> None:
    """`packages` is written out in pyproject.toml, because it maps grammars/ into the package."""
    if sys.version_info < (3, 11):
        pytest.skip("tomllib is new in Python 3.11")
    import tomllib

    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "guided").rglob("__init__.py")}
    assert set(config["packages"]) == found | {"guided.grammars"}
    assert config["package-dir"] == {"guided.grammars": "grammars"}
