"""`guided.structural_tag`: special tokens, JSON, contracts, keys, and every error with its pointer.

That languages are XGrammar's is in tests/oracle/test_structural_tags_against_xgrammar.py.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

import guided
from guided.errors import GrammarError, GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.grammar.json_schema import closed_json_schema, json_part
from guided.testing import check_constraint
from tests import vocabularies

PIECES = [b"<a", b"<a>", b"</a>", b'{"', b'":', b"ab", b"12", b"x<", "é<".encode()]
EOS = 256 + len(PIECES)
SPECIAL = {"</s>": EOS, "<call>": EOS + 1, "</call>": EOS + 2, "<pad>": EOS + 3}
VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES, *PIECES, None, None, None, None], eos_ids=[EOS], special_tokens=SPECIAL
)
CALL, END = SPECIAL["<call>"], SPECIAL["</call>"]
Format = dict[str, Any]
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}
DIGITS: Format = {"type": "regex", "pattern": "[0-9]+"}
ANY: Format = {"type": "any_text"}


def const(value: str) -> Format:
    return {"type": "const_string", "value": value}


def schema(value: Any, **options: Any) -> Format:
    return {"type": "json_schema", "json_schema": value, **options}


def tag(begin: Any, content: Format, end: Any) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def token(name: Any) -> Format:
    return {"type": "token", "token": name}


def accepts(constraint: guided.Constraint, *parts: str | int) -> bool:
    """Is a text accepted, written by single bytes and special tokens?"""
    state = constraint.start
    for part in parts:
        for item in [part] if isinstance(part, int) else part.encode():
            state = constraint.advance(state, item)
            if not state:
                return False
    return constraint.is_accepting(state)


def compiled(format: Format, **options: Any) -> guided.Constraint:
    return guided.compile(guided.structural_tag({"format": format}, **options), VOCABULARY)


def known(format: Format, **options: Any) -> guided.Constraint:
    return compiled(format, special_tokens=VOCABULARY.special_tokens, **options)


CONTRACTS: dict[str, Format] = {
    "calls": {
        "type": "triggered_tags",
        "triggers": ["<a"],
        "tags": [tag("<a>", schema(OBJECT), ["</a>", ";"]), tag("<ab>", ANY, "x")],
        "excludes": ["bb"],
    },
    "special": {
        "type": "token_triggered_tags",
        "trigger_tokens": ["<call>"],
        "tags": [tag(token("<call>"), {"type": "any_tokens"}, token("</call>"))],
        "exclude_tokens": ["<pad>"],
        "at_least_one": True,
    },
    "combined": {
        "type": "sequence",
        "elements": [
            {"type": "optional", "content": tag("<a>", {**ANY, "max_chars": 5}, "</a>")},
            {"type": "repeat", "min": 1, "max": 3, "content": {"type": "or", "elements": [DIGITS, const("é")]}},
            {"type": "star", "content": {"type": "plus", "content": const("ab")}},
        ],
    },
    "dispatch": {
        "type": "dispatch",
        "rules": [["<a", DIGITS], ["é<", {"type": "token_dispatch", "rules": [["<call>", const("x")]], "loop": False}]],
        "excludes": ["aa"],
    },
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_contracts(name: str) -> None:
    check_constraint(known(CONTRACTS[name]), walks=4, length=20, full_states=6, threads=0)


def test_keys_and_pickles() -> None:
    text = json.dumps({"format": CONTRACTS["calls"]})
    grammar = guided.structural_tag(text)
    assert grammar.key is not None
    assert grammar.key == guided.structural_tag({"format": CONTRACTS["calls"]}).key
    assert grammar.key == pickle.loads(pickle.dumps(grammar)).key
    assert grammar.key != guided.structural_tag(text, strict=False).key
    assert grammar.key != guided.structural_tag(text, special_tokens=VOCABULARY.special_tokens).key
    other = {**CONTRACTS["calls"], "excludes": ["b"]}
    assert grammar.key != guided.structural_tag({"format": other}).key


class TestSpecialTokens:
    def test_names_in_texts_are_the_tokens(self) -> None:
        calls: Format = {
            "type": "triggered_tags",
            "triggers": ["<call>"],
            "tags": [tag("<call>\n", schema(OBJECT), "\n</call>")],
        }
        constraint = known(calls)
        assert accepts(constraint, "text ", CALL, '\n{"a": 1}\n', END, " more")
        assert not accepts(constraint, CALL, '{"a": 1}\n', END)
        # As text the trigger is left out: whoever reads the answer as text could not tell them apart.
        assert not accepts(constraint, "<call>")
        assert accepts(constraint, "<call")
        as_text = compiled(calls)
        assert accepts(as_text, '<call>\n{"a": 1}\n</call>')
        assert not accepts(as_text, CALL, '\n{"a": 1}\n', END)

    def test_a_trigger_may_begin_before_the_token(self) -> None:
        call = tag("\n<call>", DIGITS, "</call>")
        constraint = known({"type": "triggered_tags", "triggers": ["\n<call>"], "tags": [call]})
        assert accepts(constraint, "a\n\n", CALL, "1", END, "\n")
        assert not accepts(constraint, "a", CALL, "1", END)

    def test_part_of_a_name_is_no_trigger_of_text(self) -> None:
        call = tag("<call>", DIGITS, "</call>")
        constraint = known({"type": "triggered_tags", "triggers": ["<ca"], "tags": [call]})
        assert accepts(constraint, "<c", CALL, "1", END)
        assert not accepts(constraint, "<call>1")

    def test_by_id(self) -> None:
        constraint = known({"type": "sequence", "elements": [token(CALL), const("x</call>")]})
        assert accepts(constraint, CALL, "x", END)

    def test_free_text_up_to_a_token(self) -> None:
        constraint = known(tag(token("<call>"), {"type": "any_tokens"}, token("</call>")))
        assert accepts(constraint, CALL, "</call> as text", END)
        assert not accepts(constraint, CALL, CALL, END)
        string = known(tag("<call>", ANY, "</call>"))
        assert accepts(string, CALL, "</call", END)
        assert not accepts(string, CALL, "</call> as text", END)

    def test_what_free_text_leaves_out_is_noted(self) -> None:
        found = guided.structural_tag({"format": {"type": "any_tokens"}})
        assert found.notes == ("no special token is in the text of #/format, named there or not",)


class TestJson:
    def test_objects_are_closed_unless_they_say_so(self) -> None:
        closed, letter, strict = (compiled(schema(OBJECT), strict=strict) for strict in (None, False, True))
        assert [accepts(each, '{"a": 1}') for each in (closed, letter, strict)] == [True, True, False]
        assert [accepts(each, '{"a": 1, "c": 2}') for each in (closed, letter, strict)] == [False, True, False]
        assert all(accepts(each, '{"a": 1, "b": 2}') for each in (closed, letter, strict))

    def test_order(self) -> None:
        assert not accepts(compiled(schema(OBJECT)), '{"b": 2, "a": 1}')
        free = compiled(schema(OBJECT, any_order=True))
        assert accepts(free, '{"b": 2, "a": 1}')
        assert not accepts(free, '{"b": 2, "b": 1}')
        assert not accepts(free, '{"b": 2}')

    def test_white_space(self) -> None:
        assert accepts(compiled(schema(OBJECT), whitespace="any"), '{\t\t"a":1}')
        two = compiled(schema(OBJECT, max_whitespace_cnt=2))
        assert accepts(two, '{\n "a":1}')
        assert not accepts(two, '{\n  "a":1}')
        assert not accepts(compiled(schema(OBJECT, max_whitespace_cnt=0)), '{"a": 1}')

    def test_none_around_a_value(self) -> None:
        tight = compiled(tag("(", schema(OBJECT), ")"), whitespace="any")
        assert accepts(tight, '({ "a" : 1 })')
        assert not accepts(tight, '( {"a": 1})')
        assert not accepts(tight, '({"a": 1}\n)')

    def test_words_that_no_string_holds(self) -> None:
        value = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}, "xy": {}, "b": {}}}
        some = compiled(schema(value, excludes=["xy", "<|"]))
        assert accepts(some, '{"a": "ab", "b": {"x": "y"}}')
        for text in ('{"a": "axyb"}', '{"a": "a"}', '{"xy": 1}', '{"b": {"xy": 1}}', '{"b": ["<|"]}'):
            assert not accepts(some, text)
        check_constraint(some, walks=2, length=12, full_states=2, threads=0)
        elements = compiled(schema(value, excludes=["xy"], style="qwen_xml"))
        assert accepts(elements, "<parameter=a>ab</parameter><parameter=b>x</parameter>")
        for name, text in (("a", "axyb"), ("b", "xy"), ("xy", "1"), ("a", "a")):
            assert not accepts(elements, f"<parameter={name}>{text}</parameter>")

    def test_nothing_is_left(self) -> None:
        value = {"type": "object", "properties": {"a": {"const": "xy"}}, "required": ["a"]}
        for options in ({}, {"style": "qwen_xml"}):
            with pytest.raises(UnsatisfiableError):
                compiled(schema(value, excludes=["xy"], **options))

    def test_a_schema_alone_is_another_grammar(self) -> None:
        part, alone = json_part(OBJECT), closed_json_schema(OBJECT)
        assert part.key != alone.key
        assert pickle.loads(pickle.dumps(part)).key == part.key
        assert pickle.loads(pickle.dumps(json_part(OBJECT, strict=True))).key == json_part(OBJECT, strict=True).key


def nested(levels: int) -> Format:
    found = const("a")
    for _ in range(levels):
        found = {"type": "optional", "content": found}
    return found


TRIGGERED: Format = {"type": "triggered_tags", "triggers": ["<a"], "tags": [tag("<a>", DIGITS, "</a>")]}
ERRORS: list[tuple[Any, type[GuidedError], str | None, str]] = [
    ([], GrammarError, "#", "is not a structural tag"),
    ({}, GrammarError, "#", "has no 'format'"),
    ({"type": "json", "format": ANY}, GrammarError, "#/type", "not the type"),
    ({"format": ANY, "extra": 1}, GrammarError, "#/extra", "no field 'extra'"),
    ({"structures": [], "triggers": []}, GrammarError, "#/structures", "not a list that is not empty"),
    ({"structures": [{"begin": "a", "end": ""}], "triggers": ["a"]}, GrammarError, "#/structures/0", "no 'schema'"),
    ({"structures": [{"begin": "a", "schema": {}, "end": ""}], "triggers": ["b"]}, GrammarError,
     "#/structures/0/begin", "no trigger"),
]  # fmt: skip
FORMAT_ERRORS: list[tuple[Any, type[GuidedError], str | None, str]] = [
    ("x", GrammarError, "", "'x' is not a format"),
    ({}, GrammarError, "", "no 'type'"),
    ({"type": ["tag"]}, GrammarError, "/type", "not a type of format"),
    ({"type": "text"}, GrammarError, "/type", "'text' is not a type"),
    ({"type": "const_string"}, GrammarError, "", "no 'value'"),
    ({"type": "const_string", "value": 1}, GrammarError, "/value", "1 is not a text"),
    (const("\ud800"), GrammarError, "/value", "surrogate"),
    ({**ANY, "exclude": ["a"]}, GrammarError, "/exclude", "no field"),
    ({**ANY, "excludes": ["a", ""]}, GrammarError, "/excludes/1", "empty text"),
    ({**ANY, "excludes": "a"}, GrammarError, "/excludes", "not a list"),
    ({**ANY, "max_chars": -1}, GrammarError, "/max_chars", "no whole number"),
    ({**ANY, "max_chars": True}, GrammarError, "/max_chars", "no whole number"),
    ({**ANY, "max_chars": 1.5}, GrammarError, "/max_chars", "no whole number"),
    ({**ANY, "max_tokens": -5}, GrammarError, "/max_tokens", "no whole number"),
    (schema(3), GrammarError, "/json_schema", "no schema"),
    (schema({"type": "object", "properties": {"a": {"type": "x"}}}), GrammarError, "/json_schema/properties/a/type", ""),
    (schema(False), UnsatisfiableError, "/json_schema", ""),
    (schema({}, style="yaml"), GrammarError, "/style", "yaml"),
    (schema({}, style="cohere_xml"), UnsupportedError, "/style", "cohere_xml"),
    (schema({"type": "object", "maxProperties": 1}, style="glm_xml"), UnsupportedError, "/json_schema", "count"),
    (schema({}, any_order=1), GrammarError, "/any_order", "neither true nor false"),
    (schema({}, excludes=[""]), GrammarError, "/excludes/0", "empty"),
    (schema({}, excludes=["a "], style="qwen_xml"), UnsupportedError, "/json_schema", "white space"),
    (schema({"type": "string", "format": "regex"}, excludes=["a"]), UnsupportedError, "/json_schema", "checked"),
    ({"type": "regex", "pattern": ""}, GrammarError, "/pattern", "empty"),
    ({"type": "regex", "pattern": "(a"}, GrammarError, "/pattern, offset 0", ""),
    ({"type": "grammar", "grammar": "root ::= x"}, GrammarError, "/grammar, line 1, column 10", "x"),
    ({"type": "sequence", "elements": []}, GrammarError, "/elements", "not empty"),
    ({"type": "or", "elements": [ANY, 1]}, GrammarError, "/elements/1", "not a format"),
    ({"type": "optional"}, GrammarError, "", "no 'content'"),
    ({"type": "repeat", "min": 3, "max": 2, "content": ANY}, GrammarError, "/max", "at most 2"),
    ({"type": "repeat", "min": -1, "max": 2, "content": ANY}, GrammarError, "/min", "no whole number"),
    ({"type": "repeat", "min": 0, "max": -2, "content": ANY}, GrammarError, "/max", "no whole number"),
    (tag(1, ANY, ""), GrammarError, "/begin", "not a text or a token"),
    (tag("a", ANY, []), GrammarError, "/end", "not empty"),
    (tag("a", ANY, ["b", 1]), GrammarError, "/end/1", "not a text"),
    (tag("a", {"type": "plus", "content": {}}, ""), GrammarError, "/content/content", "no 'type'"),
    (tag(token(""), ANY, ""), GrammarError, "/begin/token", "without a name"),
    (tag(token(7), ANY, ""), UnsupportedError, "/begin/token", "belongs to one tokenizer"),
    (tag({"type": "const_string", "token": "a"}, ANY, ""), GrammarError, "/begin/type", "no token"),
    ({"type": "exclude_token"}, UnsupportedError, "", "exactly one token"),
    ({"type": "any_tokens", "exclude_tokens": ["<pad>"]}, UnsupportedError, "/exclude_tokens/0", "known to the tokenizer"),
    ({"type": "any_tokens", "max_tokens": 0.5}, GrammarError, "/max_tokens", "no whole number"),
    ({**TRIGGERED, "triggers": []}, GrammarError, "/triggers", "not empty"),
    ({**TRIGGERED, "triggers": ["b"]}, GrammarError, "/tags/0/begin", "no trigger"),
    ({**TRIGGERED, "tags": [ANY]}, GrammarError, "/tags/0/type", "is no tag"),
    ({**TRIGGERED, "tags": [tag(token("<call>"), ANY, "")]}, GrammarError, "/tags/0/begin", "begins with a token"),
    ({**TRIGGERED, "triggers": ["<a", "<a>"]}, GrammarError, "/triggers/1", "read to the end at once"),
    ({**TRIGGERED, "excludes": ["x<a"]}, GrammarError, "/triggers/0", "at once"),
    ({**TRIGGERED, "excludes": ["<"]}, GrammarError, "/triggers/0", "before it"),
    (tag("(", TRIGGERED, "<"), GrammarError, "/content/triggers/0", "before it"),
    ({"type": "dispatch", "rules": [["a"]]}, GrammarError, "/rules/0", "is no rule"),
    ({"type": "dispatch", "rules": [["", ANY]]}, GrammarError, "/rules/0/0", "empty"),
    ({"type": "dispatch", "rules": [["a", {}]]}, GrammarError, "/rules/0/1", "no 'type'"),
    ({"type": "token_dispatch", "rules": [[-1, ANY]]}, GrammarError, "/rules/0/0", "no token id"),
    ({"type": "token_triggered_tags", "trigger_tokens": ["<x>"], "tags": [tag("a", ANY, "")]}, GrammarError,
     "/tags/0/begin", "begins with a text"),
    ({"type": "token_triggered_tags", "trigger_tokens": ["<x>"], "tags": [tag(token("<y>"), ANY, "")]}, GrammarError,
     "/tags/0/begin", "no trigger"),
    (nested(120), LimitError, "/content" * 100, "deeper than 100"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "kind", "where", "what"),
    [*ERRORS, *[({"format": value}, kind, f"#/format{at}", what) for value, kind, at, what in FORMAT_ERRORS]],
)
def test_errors(source: Any, kind: type[GuidedError], where: str, what: str) -> None:
    with pytest.raises(kind) as found:
        guided.structural_tag(json.dumps(source))
    assert found.value.where == where
    assert what in found.value.what


def test_tokens_of_text_are_refused() -> None:
    for value in (token("a"), token(5), {"type": "any_tokens", "exclude_tokens": [5]}):
        with pytest.raises(UnsupportedError, match="text"):
            known(value)


def test_what_is_no_json() -> None:
    for source in ("{", "[" * 100_000, {"format": {1, 2}}):
        with pytest.raises(GrammarError):
            guided.structural_tag(source)  # type: ignore[arg-type]


def test_what_is_inside_one_another_to_the_limit() -> None:
    assert accepts(compiled(nested(99)), "a")


def test_older_notation() -> None:
    older = {"structures": [{"begin": "<f>", "schema": OBJECT, "end": "</f>"}], "triggers": ["<f"]}
    constraint = guided.compile(guided.structural_tag(older), VOCABULARY)
    assert accepts(constraint, 'x<f>{"a": 1}</f>y<')
    assert not accepts(constraint, "<f1")
    assert not accepts(constraint, '<f>{"a": 1}</f')
    as_text = {**older, "structures": [{"begin": "<f>", "schema": json.dumps(OBJECT), "end": "</f>"}]}
    assert accepts(guided.compile(guided.structural_tag(as_text), VOCABULARY), '<f>{"a": 1}</f>')


HOSTILE: dict[str, Format] = {
    "a long word that repeats itself": {**ANY, "excludes": ["a" * 5000 + "b"]},
    "a thousand words": {**ANY, "excludes": [f"<{number}>" for number in range(1000)]},
    "many repetitions": {"type": "repeat", "min": 2**31 - 1, "max": -1, "content": const("ab")},
    "repetitions of nothing": {"type": "repeat", "min": 9, "max": 2**31 - 1, "content": {"type": "star", "content": ANY}},
    "a long row": {"type": "sequence", "elements": [const("a")] * 3000},
    "many characters": {**ANY, "max_chars": 2**31 - 1, "excludes": ["ab"]},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_formats_take_no_seconds(name: str) -> None:
    constraint = compiled(HOSTILE[name])
    assert constraint.advance_bytes(constraint.start, b"a")


def test_words_that_are_too_much() -> None:
    letters = "".join(chr(0x4E00 + number) for number in range(1000))
    with pytest.raises(LimitError) as found:
        compiled(tag("<", {**ANY, "excludes": [letters]}, ">"))
    assert found.value.where == "#/format/content"


def test_many_tags_share_their_schema() -> None:
    tags = [tag(f"<f{number}>", schema(OBJECT), "</f>") for number in range(200)]
    grammar = guided.structural_tag({"format": {"type": "triggered_tags", "triggers": ["<f"], "tags": tags}})
    assert len(grammar.rules) < 500
    assert accepts(guided.compile(grammar, VOCABULARY), 'x<f199>{"a": 1}</f>')
