"""`xml_arguments`: what is exact where XGrammar is not, special tokens, contracts, refusals."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import guided
from guided.errors import GrammarError, GuidedError, UnsatisfiableError, UnsupportedError
from guided.grammar.xml_arguments import ArgumentStyle, xml_arguments
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import mostly_slow

PIECES = [b"<parameter=", b"</parameter>", b">\n", b'{"', b'":', b"ab", "é<".encode(), b"arg"]
EOS = 256 + len(PIECES)
SPECIAL = {"</s>": EOS, "<arg_key>": EOS + 1, "</arg_key>": EOS + 2, "<arg_value>": EOS + 3, "</arg_value>": EOS + 4}
VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES, *PIECES, *[None] * len(SPECIAL)], eos_ids=[EOS], special_tokens=SPECIAL
)
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "more": {"type": "object"}},
    "required": ["city"],
}


def accepts(constraint: guided.Constraint, *parts: str | int) -> bool:
    state = constraint.start
    for part in parts:
        for item in [part] if isinstance(part, int) else part.encode():
            state = constraint.advance(state, item)
            if not state:
                return False
    return constraint.is_accepting(state)


def compiled(schema: Any, style: ArgumentStyle = ArgumentStyle.QWEN, **options: Any) -> guided.Constraint:
    return guided.compile(xml_arguments(schema, style, **options), VOCABULARY)


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def qwen(name: str, value: str) -> str:
    return f"<parameter={name}>{value}</parameter>"


@pytest.mark.parametrize("style", mostly_slow([ArgumentStyle.GLM, ArgumentStyle.DEEPSEEK, ArgumentStyle.QWEN], 1))
def test_contracts(style: ArgumentStyle) -> None:
    constraint = compiled(SCHEMA, style, special_tokens=VOCABULARY.special_tokens)
    check_constraint(constraint, walks=2, length=15, full_states=3, threads=0)


def test_contracts_with_clauses_and_undeclared_names() -> None:
    schema = {**of(a={"type": "integer"}, b={"enum": ["x", 1]}), "additionalProperties": {"type": "boolean"}}
    schema["anyOf"] = [{"required": ["a"]}, {"required": ["b"]}, {"properties": {"a": {"minimum": 5}}}]
    for order in ("schema", "any"):
        check_constraint(compiled(schema, order=order), walks=2, length=12, full_states=2, threads=0)


def test_what_is_undeclared_stands_anywhere_and_is_no_declared_name() -> None:
    schema = {**of(s={"type": "string"}), "additionalProperties": {"type": "integer"}}
    constraint = compiled(schema)
    assert accepts(constraint, qwen("w", "3") + qwen("s", "y"))
    assert accepts(constraint, qwen("s", "y") + qwen("w-x", "3"))
    deepseek = compiled(schema, ArgumentStyle.DEEPSEEK)
    assert not accepts(deepseek, '<｜DSML｜parameter name="s" string="false">3</｜DSML｜parameter>')
    assert accepts(deepseek, '<｜DSML｜parameter name="s" string="true">3</｜DSML｜parameter>')
    found = xml_arguments(schema, ArgumentStyle.QWEN)
    assert "an argument that is not declared may be written twice" in found.notes


def test_types_of_kimi_are_those_of_the_values() -> None:
    constraint = compiled(of(e={"enum": ["x", 3]}), ArgumentStyle.KIMI_K3)
    for kind, value, expected in (("string", "x", True), ("number", "3", True), ("string", "3", False)):
        text = f'<|open|>argument key="e" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'
        assert accepts(constraint, text) is expected
    escaped = compiled(of(**{'a&"b': {}}), ArgumentStyle.KIMI_K3)
    assert accepts(escaped, '<|open|>argument key="a&amp;&quot;b" type="null"<|sep|>null<|close|>argument<|sep|>')


def test_every_order() -> None:
    schema = {**of(a={"type": "integer"}, b={"type": "integer"}), "required": ["a"]}
    text = qwen("b", "1") + qwen("a", "2")
    assert not accepts(compiled(schema), text)
    free = compiled(schema, order="any")
    assert accepts(free, text)
    assert not accepts(free, qwen("b", "1"))
    assert not accepts(free, text + qwen("a", "2"))


def test_keywords_are_exact() -> None:
    schema = {
        **of(a={"type": "integer", "multipleOf": 3}, b={"type": "string", "not": {"const": "no"}}, c={}),
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
        "maxProperties": 2,
    }
    constraint = compiled(schema)
    assert accepts(constraint, qwen("a", "6") + qwen("b", "yes"))
    assert not accepts(constraint, qwen("a", "7") + qwen("b", "yes"))
    assert not accepts(constraint, qwen("a", "6") + qwen("b", "no"))
    assert not accepts(constraint, qwen("a", "6"))
    assert not accepts(constraint, qwen("a", "6") + qwen("b", "y") + qwen("c", ""))
    assert accepts(constraint, qwen("b", "y") + qwen("c", "[1"))


def test_strings_leave_out_what_ends_them() -> None:
    constraint = compiled(of(a={"type": "string", "minLength": 3}, b={"enum": ["</parameter>", "x"]}))
    assert not accepts(constraint, qwen("a", "ab"))
    assert accepts(constraint, qwen("a", "a</param"))
    assert not accepts(constraint, qwen("b", "</parameter>"))
    assert accepts(constraint, qwen("b", "\nx\n"))


def test_special_tokens_of_the_notation() -> None:
    grammar = xml_arguments(SCHEMA, ArgumentStyle.GLM, special_tokens=VOCABULARY.special_tokens)
    assert grammar.special_tokens == ("</arg_key>", "</arg_value>", "<arg_key>", "<arg_value>")
    constraint = guided.compile(grammar, VOCABULARY)
    key, after, value, end = (SPECIAL[name] for name in ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"))
    assert accepts(constraint, key, "city", after, "\n", value, "Rome </arg", end, "\n")
    assert not accepts(constraint, key, "city", after, value, "Rome </arg_value>", end)
    assert not accepts(constraint, "<arg_key>city</arg_key><arg_value>Rome</arg_value>")


def test_keys_and_pickles() -> None:
    found = xml_arguments(SCHEMA, ArgumentStyle.GLM)
    assert found.key == pickle.loads(pickle.dumps(found)).key is not None
    assert found.key != xml_arguments(SCHEMA, ArgumentStyle.QWEN).key
    assert found.key != xml_arguments(SCHEMA, ArgumentStyle.GLM, special_tokens=["<arg_key>"]).key


REFUSED: list[tuple[Any, dict[str, Any], type[GuidedError], str]] = [
    ({"type": "string"}, {}, UnsatisfiableError, "#"),
    (of(a=False) | {"required": ["a"]}, {}, UnsatisfiableError, "#/properties/a"),
    (of(a={"const": "</parameter>"}) | {"required": ["a"]}, {}, UnsatisfiableError, "#/properties/a"),
    (of(**{"a>b": {"type": "null"}}), {}, UnsupportedError, "#/properties/a>b"),
    (of(a={"type": "string", "format": "regex"}), {}, UnsupportedError, "#/properties/a"),
    ({"type": "object", "maxProperties": 2}, {}, UnsupportedError, "#"),
    (of(a={"type": "x"}), {}, GrammarError, "#/properties/a/type"),
    (of(), {"order": "x"}, GrammarError, None),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "options", "kind", "where"), REFUSED)
def test_refused(schema: Any, options: dict[str, Any], kind: type[GuidedError], where: str | None) -> None:
    with pytest.raises(kind) as found:
        xml_arguments(schema, ArgumentStyle.QWEN, **options)
    assert found.value.where == where
