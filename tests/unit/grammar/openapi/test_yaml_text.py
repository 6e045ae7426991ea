"""YAML 1.2's core schema, where PyYAML by itself reads 1.1."""

from __future__ import annotations

import json

import pytest

from guided.errors import GrammarError

yaml = pytest.importorskip("yaml")
from guided.grammar.openapi.yaml_text import yaml_data  # noqa: E402


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # The examples of YAML 1.2.2, 10.3.2, and what 1.1 has otherwise.
        ("[null, Null, NULL, ~, '', nUll]", [None, None, None, None, "", "nUll"]),
        ("a:", {"a": None}),
        (
            "[true, True, TRUE, false, tRUE, yes, no, on, off, y]",
            [True] * 3 + [False, "tRUE", "yes", "no", "on", "off", "y"],
        ),
        ("[0, 0o7, 0x3A, -19, 010, 0b1, 1_000, 1:30, 0o8]", [0, 7, 58, -19, 10, "0b1", "1_000", "1:30", "0o8"]),
        ("[0., -0.0, .5, +12e03, -2E+05, 1e3, .e1]", [0.0, -0.0, 0.5, 12000.0, -200000.0, 1000.0, ".e1"]),
        ("[2001-12-14, =, <<, '1', \"2\"]", ["2001-12-14", "=", "<<", "1", "2"]),
        ("200: a\nno: b\n~: c", {"200": "a", "no": "b", "~": "c"}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("- |\n  a\n  b\n- >\n  a\n  b\n", ["a\nb\n", "a b\n"]),
    ],
)
def test_scalars(text: str, value: object) -> None:
    found = yaml_data(text)
    assert json.dumps(found) == json.dumps(value)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\na: 2", "line 2, column 1"),
        ("[.inf]", "line 1, column 2"),
        ("[-.INF]", "line 1, column 2"),
        ("[.nan]", "line 1, column 2"),
        ("[1e999]", "line 1, column 2"),
        ("!!python/none x", "line 1, column 1"),
        ("!!binary aa==", "line 1, column 1"),
        ("a: 1\n? [b]\n: 2", "line 2, column 3"),
        ("a: [", "line 1, column 5"),
        ("a: *b", "line 1, column 4"),
        ("&a [*a]", "line 1, column 1"),
        ("x: &a {b: *a}", "line 1, column 4"),
        ("a: 1\n---\nb: 2", "line 2, column 1"),
    ],
)
def test_what_json_has_not(text: str, where: str) -> None:
    with pytest.raises(GrammarError) as caught:
        yaml_data(text)
    assert caught.value.where == where


def test_depth() -> None:
    """Of each bracket PyYAML looked at all that are open, before anything was refused."""
    assert yaml_data("[" * 100 + "]" * 100)
    with pytest.raises(GrammarError, match="deeply") as caught:
        yaml_data("[" * 1000)
    assert caught.value.where == "line 1, column 401"


def test_json_is_read_as_json() -> None:
    value = {"a": [1, -2.5, 1e9, 'x\u0007"\\\u00e9', True, None, {}], "b/c": {"": []}}
    assert yaml_data(json.dumps(value)) == value
