"""Patterns of Rust's `regex` crate and of XGrammar: what they match, and what is refused at its offset."""

from __future__ import annotations

import pytest

from guided.errors import GuidedError
from guided.grammar.regex.lower import lower
from guided.grammar.regex.notations import rust_pattern, xgrammar_pattern
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.derivative import matches


@pytest.mark.parametrize(
    ("pattern", "flags", "yes", "no"),
    [
        (r"(.|\n)*", "", ["a\nb"], []),
        (".", "", ["\r", "\u2028"], ["\n"]),
        (".", "s", ["\n"], []),
        ("(?s:.)(?i:a).", "", ["\nAb"], ["\na\n"]),
        ("(?is)a.", "", ["A\n"], []),
        ("((?s:.)|b).", "", ["\nx"], ["x\n"]),
        (r"\d\w\s", "", ["\u0663\u00e9\u2003", "1_\x0b"], ["a_ ", "11\x1c"]),
        (r"[\d\-x]\W", "", ["-\u20ac", "7 "], ["-a"]),
        (r"\D\S", "", ["a."], ["1.", "a "]),
        ("a{,2}b{2,}", "", ["bb", "aabbb"], ["aaabb"]),
        ("k", "i", ["K", "\u212a"], []),
        (r"\x{1F600}\u{41}\U00000042\a\x43", "", ["\U0001f600AB\aC"], []),
        (r"(?P<year>\p{Nd}{4})\/\pL", "", ["2024/a"], ["2024/1"]),
        (r"\{\}\[\]\-\~\&\#", "", ["{}[]-~&#"], []),
    ],
)
def test_rust_patterns(pattern: str, flags: str, yes: list[str], no: list[str]) -> None:
    language = lower(rust_pattern(pattern, flags), Utf8())
    assert [word for word in yes if not matches(language, word.encode())] == []
    assert [word for word in no if matches(language, word.encode())] == []


@pytest.mark.parametrize(
    ("pattern", "flags", "yes", "no"),
    [
        (r"\d\w\s\S", None, ["1_\x0b\u2003"], ["\u0663_ a", "1\u00e9 a"]),
        (".", None, ["\n"], []),
        (".", "", ["\r"], ["\n"]),
        ("(?i)stra\u00dfe", None, ["STRA\u00dfE"], ["STRASSE"]),
        ("k", "i", ["K"], ["\u212a"]),
        (r"^\u{43}\cA\/[\b]\0$", None, ["C\x01/\x08\0"], []),
        ("(?:a)(?<n>b)(c)+?", None, ["abcc"], ["ab"]),
        ("[[&&~]", None, ["[", "&", "~"], ["]"]),
    ],
)
def test_xgrammars_patterns(pattern: str, flags: str | None, yes: list[str], no: list[str]) -> None:
    language = lower(xgrammar_pattern(pattern, flags), Utf8())
    assert [word for word in yes if not matches(language, word.encode())] == []
    assert [word for word in no if matches(language, word.encode())] == []


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ("a^b", "offset 1"), ("^a", "offset 0"), ("a$", "offset 1"), (r"a\b", "offset 1"), (r"(a)\1", "offset 3"),
        ("(?=a)", "offset 0"), ("(?<!a)", "offset 0"), ("(?x:a)", "offset 0"), ("(?-u:a)", "offset 0"),
        ("[a[b]]", "offset 2"), ("[a-z&&b]", "offset 4"), ("[]a]", "offset 0"), (r"[\W]", "offset 1"), ("a{", "offset 1"),
        (r"\x4", "offset 0"), ("a(?i)b", "offset 1"),
    ],
)  # fmt: skip
def test_what_rust_patterns_may_not_have(pattern: str, place: str) -> None:
    with pytest.raises(GuidedError) as caught:
        rust_pattern(pattern)
    assert caught.value.where == place


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ("a^b", "offset 1"), ("a$b", "offset 1"), (r"a\b", "offset 1"), (r"\p{L}", "offset 0"), ("(?!a)", "offset 0"),
        ("a{,2}", "offset 1"), ("[]", "offset 0"), (r"(a)\1", "offset 3"), (r"\00", "offset 0"), ("(?s:.)", "offset 0"),
    ],
)  # fmt: skip
def test_what_xgrammars_patterns_may_not_have(pattern: str, place: str) -> None:
    with pytest.raises(GuidedError) as caught:
        xgrammar_pattern(pattern)
    assert caught.value.where == place
