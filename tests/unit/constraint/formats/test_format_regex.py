r"""The format ``regex`` against a twin by recursive descent, text by text and in its combinations with other keywords."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.errors import GuidedError, UnsupportedError
from guided.grammar.formats.pattern_reading import START, Reading, is_pattern
from guided.grammar.formats.regex_languages import (
    are_patterns,
    no_patterns,
    patterns_within,
    plain_patterns,
    skeletons,
)
from guided.grammar.regular.derivative import matches
from guided.grammar.tags import Tag
from tests import vocabularies
from tests.twin import ecma_patterns as twin

VOCABULARY = vocabularies.of_bytes()
REGEX = {"type": "string", "format": "regex"}

VALID = [
    "", "a", "([abc])+\\s+$", "(?<name>x)", "(?<n>a)\\k<n>", "(?<=a+)b", "[]", "[^]", "\\cA", "(a)\\1", "^a|b$", "a{2,3}?", "a{0}",
    "a{007,8}", "a{18,101}", "[a-z-9]", "[--/]", "[\\w-]", "[!-~]", "[\\x41-Z]", "[à-ü]", "[一-丁]", "[😀-😂]", "[\\u{1F600}-😂]",
    "[\\ud83d\\ude00-\\ud83d\\ude02]", "[\\ud83d-\\ude00]", "\\ud83d", "\\0", "[\\0-\\b]", "\\p{Lu}\\P{sc=Greek}", "(?:a|(b(?!c)))*",
    "(((((((((())))))))))\\10", "(?<é>.)(?<a1>.)\\k<é>", "\\u{0000000041}", "\\/", "[\\-]", "𝒳+",
]  # fmt: skip
INVALID = [
    "^(abc]", "\\a", "(?P<name>x)", "(?P<n>a)(?P=n)", "(?#comment)a", "(?i)abc", "(?i:a)", "[z-a]", "a{3,2}", "a{101,18}", "a{2", "{2}",
    "a**", "(?=a)*", "(?<=a)+", "\\b+", "^*", "\\1", "(a)\\2", "\\k<n>", "(?<n>a)\\k<m>", "(?<n>a)(?<n>b)", "(?<1>a)", "(?<>a)", "(",
    ")", "[", "]", "}", "\\", "\\-", "\\e", "\\u", "\\u12", "\\u{110000}", "\\u{}", "\\x4", "\\c1", "\\00", "[\\00]", "[\\d-z]", "[a-\\d]",
    "\\p{Nope}", "\\p{L", "\\pL", "[丁-一]", "[😂-😀]", "[\\ud83d\\ude02-\\ud83d\\ude00]", "[\\B]", "[\\1]", "[\\k]",
    "^\\S(|(.|\\n)*\\S)\\Z",
]  # fmt: skip
FORWARD = ["\\1(a)", "\\k<n>(?<n>a)", "(?<a>\\k<b>)(?<b>x)"]
"""Patterns in which a reference comes before what it refers to."""
PIECES = [
    *"ab09-^$.*+?()[]{}|\\/,:=!<>_é一😀", "\\d", "\\u", "\\x4", "\\u{", "\\uD83D", "\\uDE00", "\\u0041", "\\c", "\\p{L}", "(?:", "(?=", "(?<=",
    "(?", "(?<n>", "(?<m>", "(?<n1>", "\\k<n>", "\\k<n1>", "\\1", "\\2", "{2}", "{2,3}", "{3,2}", "{10,9}", "[a-", "-z", "[^", "(a)", "\\w-",
    "\\0", "\\u{1F600}", "[\\ud83d\\ude00-", "\\ud83d\\ude02]", "ü-", "-à", "-\\u4e01", "[]",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


def accepts(schema: Any, text: str, **options: Any) -> bool:
    constraint = guided.compile(guided.json_schema(schema, spelling="any", **options), VOCABULARY)
    state = constraint.advance_bytes(constraint.start, text.encode("utf-8", "surrogatepass"))
    return state != 0 and constraint.is_accepting(state)


def read(text: str) -> bool:
    now: Reading | None = START
    for byte in text.encode():
        now = None if now is None else now.step(byte)
    return now is not None and now.ends


@pytest.mark.parametrize("text", VALID)
def test_valid(text: str) -> None:
    assert twin.is_pattern(text) and is_pattern(text)
    assert accepts(REGEX, json.dumps(text)) and accepts(REGEX, json.dumps(text, ensure_ascii=False))


@pytest.mark.parametrize("text", INVALID)
def test_invalid(text: str) -> None:
    assert not twin.is_pattern(text) and not is_pattern(text)
    assert not accepts(REGEX, json.dumps(text)) and not accepts(REGEX, json.dumps(text, ensure_ascii=False))


@pytest.mark.parametrize("text", FORWARD)
def test_references_come_behind_their_groups(text: str) -> None:
    assert twin.is_pattern(text) and is_pattern(text)
    assert not twin.is_pattern(text, backward=True) and not accepts(REGEX, json.dumps(text))
    # Of a list the texts are known from the beginning.
    assert accepts({"enum": [text, "("], "format": "regex"}, json.dumps(text))


@given(TEXTS)
def test_reading_is_exact(text: str) -> None:
    assert is_pattern(text) == twin.is_pattern(text, plain_names=True)
    assert read(text) == twin.is_pattern(text, backward=True, plain_names=True)


@given(TEXTS)
def test_languages_are_on_their_side(text: str) -> None:
    data, pattern = text.encode(), twin.is_pattern(text)
    assert pattern or not matches(plain_patterns(), data)
    assert matches(skeletons(), data) or not twin.is_pattern(text, plain_names=True)
    assert matches(no_patterns(), data) == (not matches(skeletons(), data))
    simple = all(sign not in text for sign in ("\\1", "\\2", "\\k", "(?<n", "(?<m", "\\x", "\\u", "[", "-"))
    assert matches(plain_patterns(), data) == pattern or not simple


@given(TEXTS, st.integers(0, 2**32))
def test_every_beginning_goes_on(text: str, seed: int) -> None:
    """From wherever reading comes to, random steps that are allowed and lean towards an end reach one."""
    now = START
    for byte in text.encode():
        then = now.step(byte)
        if then is None:
            break
        now = then
    rng = random.Random(seed)
    for _ in range(400):
        if now.ends:
            return
        ways = [(byte, then) for byte in range(256) if (then := now.step(byte)) is not None]
        assert ways, now
        closing = [then for byte, then in ways if chr(byte) in ")]}>" or byte in b"fu_"]
        now = rng.choice(closing) if closing and rng.random() < 0.9 else rng.choice(ways)[1]
    raise AssertionError(f"no end behind {now}")


@given(TEXTS, st.integers(0, 2**32))
def test_every_spelling(text: str, seed: int) -> None:
    rng = random.Random(seed)
    spelled = "".join(
        json.dumps(letter)[1:-1]
        if rng.random() < 0.5
        else "".join(f"\\u{u:04{rng.choice('xX')}}" for u in _units(letter))
        for letter in text
    )
    assert _ACCEPTS(f'"{spelled}"') == twin.is_pattern(text, backward=True, plain_names=True)


def _units(letter: str) -> list[int]:
    data = letter.encode("utf-16-be")
    return [data[at] << 8 | data[at + 1] for at in range(0, len(data), 2)]


class _Compiled:
    def __init__(self, schema: Any) -> None:
        self.constraint = guided.compile(guided.json_schema(schema, spelling="any"), VOCABULARY)

    def __call__(self, text: str) -> bool:
        state = self.constraint.advance_bytes(self.constraint.start, text.encode())
        return state != 0 and self.constraint.is_accepting(state)


_ACCEPTS = _Compiled(REGEX)

COMBINED = [
    ({**REGEX, "minLength": 3}, ["(a)\\1", "abc", "[a-z]"], ["ab", "", "[z-a]", "ééx)"]),
    ({**REGEX, "maxLength": 4}, ["(a)", "", "éééé", "a{2}"], ["(a)bc", "(", "a{2}b"]),
    ({**REGEX, "minLength": 2, "maxLength": 3}, ["ab", "(a)"], ["a", "abcd", "(ab"]),
    ({**REGEX, "pattern": "^/.+/$"}, ["/a/", "/(a|b){1,2}/", "/[a-z]/"], ["//", "/(/", "a", "/[z-a]/", "/a{3,1}/"]),
    ({**REGEX, "pattern": "^[0-9]+$"}, ["12"], ["a", ""]),
    ({**REGEX, "not": {"const": "ab"}}, ["a", "abc", "(?<n>ab)\\k<n>"], ["ab", "("]),
    ({"enum": ["(", "a", "[z-a]", 3], "format": "regex"}, ["a"], ["(", "[z-a]", "b"]),
    ({"type": "string", "not": {"format": "regex"}}, ["(", "a)", "\\", "é("], ["a", "", "(a)", "(?<n>a)", "[a-z]"]),
    ({"type": "string", "not": {"format": "regex"}, "maxLength": 2}, ["(", "a)"], ["a", "", "(a)", "(aa"]),
    ({"anyOf": [REGEX, {"type": "string", "maxLength": 3}]}, ["(((", "(a)\\1", "abcde"], ["((((", "(a)\\2", "[zz-a]"]),
    ({"anyOf": [REGEX, {"const": "[z-a]"}, {"type": "null"}]}, ["[z-a]", "[a-z]"], ["[z-b]"]),
    ({"oneOf": [REGEX, {"type": "string", "pattern": "^x"}]}, ["x(", "(x)"], ["x", "(", "y)"]),
    ({"if": {"format": "regex"}, "then": {"maxLength": 3}, "type": "string"}, ["abc", "((((("], ["abcd"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "good", "bad"), COMBINED)
def test_combined(schema: Any, good: list[str], bad: list[str]) -> None:
    for text in good:
        assert accepts(schema, json.dumps(text)), text
    for text in bad:
        assert not accepts(schema, json.dumps(text)), text


def test_in_containers() -> None:
    schema = {
        "type": "object",
        "properties": {"a": REGEX, "all": {"type": "array", "items": REGEX, "uniqueItems": True}},
        "additionalProperties": REGEX,
    }
    assert accepts(schema, r'{"a": "(x)\\1", "all": ["[a-b]", "[a-c]"], "z": "(?<n>.)"}')
    assert not accepts(schema, r'{"a": "(x)\\2"}')
    assert not accepts(schema, r'{"all": ["a", "[a-b]", "[\u0061-b]"]}')
    assert not accepts(schema, r'{"z": "(?<n>.)", "y": "(?<n>.)(?<n>.)"}')
    assert accepts(schema, r'{"z": "(?<n>.)", "y": "(?<n>.)(?<m>.)"}')


def test_threads_that_read_no_pattern_go_on() -> None:
    def with_kind(kind: str, value: Any) -> Any:
        return {"type": "object", "properties": {"a": value, "k": {"const": kind}}, "required": ["a", "k"]}

    schema = {"anyOf": [with_kind("regex", REGEX), with_kind("text", {"type": "string", "maxLength": 6})]}
    assert accepts(schema, '{"a": "[z-a]", "k": "text"}')
    assert not accepts(schema, '{"a": "[z-a]", "k": "regex"}')
    assert accepts(schema, '{"a": "[a-zz-zz]", "k": "regex"}')
    assert not accepts(schema, '{"a": "[a-zz-zz]", "k": "text"}')


def test_names_of_properties_are_not_checked() -> None:
    schema = {"type": "object", "propertyNames": {"format": "regex"}, "additionalProperties": True}
    assert accepts(schema, '{"(": 1}')
    assert "property names are not checked" in " ".join(guided.json_schema(REGEX).notes)


def test_depth() -> None:
    deep, deeper = (json.dumps("(" * depth + ")" * depth) for depth in (100, 101))
    none = {"type": "string", "not": {"format": "regex"}}
    assert accepts(REGEX, deep) and not accepts(REGEX, deeper)
    assert not accepts(none, deep) and not accepts(none, deeper)
    assert accepts({"enum": [json.loads(deeper)], "format": "regex"}, deeper)


def test_in_tags() -> None:
    grammar = guided.tags([Tag("<t>", guided.json_schema(REGEX), "</t>"), Tag("<u>", None, "</u>")])
    constraint = guided.compile(grammar, VOCABULARY)
    texts = {
        'so "[z-a]" <t>"[a-z]"</t> "\\\\1"': True,
        '<t>"[z-a]"</t>': False,
        '<u>"[z-a]"</u><t>"(a)\\\\1"</t>': True,
        '<t>"\\\\1"</t>': False,
    }
    for text, good in texts.items():
        state = constraint.advance_bytes(constraint.start, text.encode())
        assert (state != 0 and constraint.is_accepting(state)) is good, text


def test_what_is_refused_is_refused_by_name() -> None:
    for schema in (
        {**REGEX, "pattern": "^\\($"},
        {**REGEX, "minLength": 10**9},
        {**REGEX, "pattern": r"^\\1$"},
        {"type": "string", "not": {"format": "regex"}, "maxLength": 0},
    ):
        with pytest.raises(UnsupportedError, match="regex"):
            guided.json_schema(schema)


def test_vocabularies_that_lack_bytes_are_refused() -> None:
    tokens = guided.Vocabulary.from_tokens([b'"', b"a", b"(", b")", None], eos_ids=[4])
    with pytest.raises(GuidedError, match="lacks single bytes"):
        guided.compile(guided.json_schema(REGEX), tokens)


def test_lists_of_other_languages() -> None:
    from guided.grammar.json_schema.keywords.patterns import pattern_language

    assert are_patterns(pattern_language("^(?:-?[0-9]+\\.)?[a-z:]*$", "#"))
    assert not are_patterns(pattern_language("^[0-9(]+$", "#"))
    assert matches(patterns_within(pattern_language("^\\(.*\\)$", "#")), b"(a|b)")
    assert not matches(patterns_within(pattern_language("^\\(.*\\)$", "#")), b"(a|b))")
