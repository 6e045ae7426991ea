"""The prompt formats: golden, and unharmed by whatever schema arrives."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.nano import Column, ForeignKey, Table, extraction_prompt, sql_prompt


def test_the_sql_prompt_is_as_trained():
    tables = [
        Table("users", (Column("id", "INTEGER"), Column("full_name", "VARCHAR(30)"), Column("born", "DATE"))),
        Table(
            "orders",
            (
                Column("id", "BIGINT"),
                Column("user_id", "INT"),
                Column("total", "DECIMAL(10, 2)"),
                Column("paid", "BOOLEAN"),
            ),
            (ForeignKey("user_id", "users", "id"),),
        ),
    ]
    assert sql_prompt(tables, "How many  orders\nare paid?") == (
        "SQL\n"
        "users(id int, full_name text, born date)\n"
        "orders(id int, user_id int -> users.id, total real, paid bool)\n"
        "How many orders are paid?\n"
    )


@pytest.mark.parametrize(
    ("dialect", "head"),
    [("sqlite", "SQL"), ("postgresql", "PostgreSQL"), ("duckdb", "PostgreSQL"), ("mysql", "SQL"), ("mariadb", "SQL")],
)
def test_the_first_line_says_whose_spelling_is_wanted(dialect: str, head: str):
    assert sql_prompt([Table("t", (Column("c", "int"),))], "q", dialect) == f"{head}\nt(c int)\nq\n"


def test_the_extraction_prompt_is_as_trained():
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "status": {"enum": ["open", "done"]},
            "due": {"type": "string", "format": "date"},
            "size": {"type": ["number", "null"]},
            "at": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            "ok": {"type": "boolean"},
        },
        "required": ["name", "tags", "status", "due", "size", "at"],
    }
    assert extraction_prompt(schema, "Some\ntext.") == (
        "JSON\n(name text, tags text[], status open|done, due date, size real?, at (x int), ok bool?)\nSome text.\n"
    )


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (True, "any"),
        ({}, "any"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, "int"),
        ({"$ref": "#/$defs/gone"}, "any"),
        ({"$ref": "http://example.org/a"}, "any"),
        ({"$ref": "#"}, "any"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text?"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "text|int"),
        ({"const": None}, "null"),
        ({"enum": [1, True, "x y", None]}, "1|true|x y|null"),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}}, {"required": ["a"]}]}, "(a int)"),
        ({"type": ["string", "integer", "null"]}, "text|int?"),
        ({"type": "object"}, "object"),
        ({"type": "array"}, "any[]"),
        ({"items": {"type": "array", "items": {"type": "number"}}}, "real[][]"),
        ({"type": 7}, "any"),
    ],
)
def test_schemas_of_every_form_have_a_short_one(schema: Any, kind: str):
    assert extraction_prompt(schema, "t") == f"JSON\n{kind}\nt\n"


def test_a_recursive_schema_ends():
    tree: dict[str, Any] = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "v": {"type": "integer"}}}
    assert len(extraction_prompt(tree, "t")) < 4_000
    circle: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert extraction_prompt(circle, "t") == "JSON\nany\nt\n"
    nested: dict[str, Any] = {"anyOf": [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}]}
    assert extraction_prompt(nested, "t").startswith("JSON\n")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "enum", "const", "anyOf", "allOf", "$ref", "required", "a"]
            ),
            inner | st.sampled_from(["#", "object", "#/a", "string", "array"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_json, st.text(max_size=20))
def test_any_json_value_renders(schema: Any, text: str):
    prompt = extraction_prompt(schema, text)
    assert prompt.startswith("JSON\n")
    assert prompt.endswith("\n")


@given(st.text(max_size=20))
def test_any_declared_type_renders(declared: str):
    assert sql_prompt([Table("t", (Column("c", declared),))], "q").count("\n") == 3


def test_importing_the_prompts_loads_neither_torch_nor_transformers():
    code = "import sys, guided.nano; sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'numba')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
