"""TypeScript's types, beside the verdicts of its compiler on literals of them.

`typescript_verdicts.json` holds those: for each type and value, whether ``const it: Type = value`` compiles with
``tsc --strict``, of the version that it names.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import guided
from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.typescript import typescript_schema
from guided.testing import check_constraint
from tests.vocabularies import of_bytes

pytest.importorskip("tree_sitter_typescript")
VOCABULARY = of_bytes()
TABLE = json.loads(Path(__file__).with_name("typescript_verdicts.json").read_text())


def test_the_compiler_agrees() -> None:
    n_accepted = n_rejected = 0
    texts = [json.dumps(value).encode() for value in TABLE["values"]]
    for name, verdicts in TABLE["verdicts"].items():
        constraint = guided.compile(guided.json_schema(typescript_schema(TABLE["text"], name), order="any"), VOCABULARY)
        for text, verdict in zip(texts, verdicts, strict=True):
            state = constraint.advance_bytes(constraint.start, text)
            assert (bool(state) and constraint.is_accepting(state)) is (verdict == "1"), (name, text)
            n_accepted += verdict == "1"
            n_rejected += verdict == "0"
    assert n_accepted >= 200
    assert n_rejected >= 200


def test_contracts() -> None:
    grammar = guided.json_schema(typescript_schema(TABLE["text"], "Join"))
    check_constraint(guided.compile(grammar, VOCABULARY), walks=2, length=15, full_states=3, threads=0)


@pytest.mark.parametrize(
    ("text", "where", "kind"),
    [
        ("type A = {\n  a: () => void }", "line 2, column 6", UnsupportedError),
        ("type A = { f(): void }", "line 1, column 12", UnsupportedError),
        ("interface B { a: 1 }; type A = keyof B", "line 1, column 32", UnsupportedError),
        ("type A = 'ä' | Date", "line 1, column 16", UnsupportedError),
        ("type A = { [K in 'a']: 1 }", "line 1, column 12", UnsupportedError),
        ("type A = { [k: number]: 1 }", "line 1, column 12", UnsupportedError),
        ("type A<T> = T extends string ? 1 : 2", "line 1, column 1", UnsupportedError),
        ("type A = 1n", "line 1, column 10", UnsupportedError),
        ("type A = `a${number}`", "line 1, column 12", UnsupportedError),
        ("type A = string & { a: 1 }", "line 1, column 10", UnsupportedError),
        ("type A = [...string[], 1]", "line 1, column 11", UnsupportedError),
        ("type A = { a: { b: 1 } } & { a: { c: 1 } }", "line 1, column 10", UnsupportedError),
        ("type A = 1e999", "line 1, column 10", UnsupportedError),
        ("enum A { B = 1 << 2 }", "line 1, column 14", UnsupportedError),
        ("enum A { B = 'b', C }", "line 1, column 19", UnsupportedError),
        ("type A = undefined", "line 1, column 10", UnsupportedError),
        ("interface A { a: 1 }\ninterface A { b: 1 }", "line 2, column 1", UnsupportedError),
        ("type A = Pick<{ a: 1 }, 'b'>", "line 1, column 10", UnsupportedError),
        ("type A = { a: 1, a: 2 }", "line 1, column 18", GrammarError),
        ("type B = 1;\ntype A = { a: ; }", "line 2, column 13", GrammarError),
        ("type A = C<1>; type C = 1", "line 1, column 10", GrammarError),
        ("type A = C; type C<T> = T", "line 1, column 10", GrammarError),
    ],
)
def test_refusals_by_place(text: str, where: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        typescript_schema(text, "A")
    assert caught.value.where == where  # type: ignore[attr-defined]
    assert caught.value.remedy  # type: ignore[attr-defined]


def test_which_type_has_to_be_said() -> None:
    for name in (None, "C"):
        with pytest.raises(GrammarError, match="type") as caught:
            typescript_schema("type A = 1; type B = 2", name)
        assert "A, B" in str(caught.value)


def test_arguments_without_end() -> None:
    with pytest.raises(LimitError):
        typescript_schema("type N<T> = { v: T, n: N<T[]> }; type A = N<1>", "A")
    with pytest.raises(LimitError):
        typescript_schema(f"type A = {'(' * 3000}1{')' * 3000}")


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r"'a\n\'\x41\u0042\u{1F600}\ud83d\ude00\q'", "a\n'AB😀😀q"),
        ("0x1F", 31), ("1_000", 1000), ("1e3", 1000), ("-.5", -0.5), ('"\\0"', "\0"),
    ],
)  # fmt: skip
def test_literals(literal: str, value: object) -> None:
    assert typescript_schema(f"type A = {literal}")["$defs"]["A"] == {"const": value}


def test_what_is_undefined_is_not_written() -> None:
    schema = typescript_schema("type T = { a: undefined; b: 1 | undefined } & { b?: 1 }")["$defs"]["T"]
    assert schema["properties"] == {"a": False, "b": {"const": 1}}
    assert "required" not in schema


def test_enums_are_written_by_their_values() -> None:
    schema = typescript_schema("enum E { A, B = 'b', 'c d' = -3, F } type T = { e: E, one: E.B }", "T")
    assert schema["$defs"]["E"] == {"enum": [0, "b", -3, -2]}
    assert schema["$defs"]["T"]["properties"]["one"] == {"const": "b"}
