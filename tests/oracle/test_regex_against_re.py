"""Patterns against the engines whose meaning they claim: Python's `re`, and `regex` for Unicode properties."""

from __future__ import annotations

import random
import re
import sys
import unicodedata
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.errors import UnsupportedError
from guided.grammar.regex import lower, parse, search
from guided.grammar.regex.unicode_sets import (
    LAST_CASED_CODE_POINT,
    UNIFORM,
    close_under_case,
    python_class,
    unicode_property,
)
from guided.grammar.regular.characters import Utf8, normalise
from guided.grammar.regular.decide import is_empty
from guided.grammar.regular.derivative import matches
from tests.amounts import Refusals, each, mostly_slow, some
from tests.twin import patterns

UTF8 = Utf8()
EVERYTHING = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))


def compiled(pattern: str, flags: int = 0) -> re.Pattern[str] | None:
    """None for what `re` refuses (look-behinds of variable width, repeated assertions)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return re.compile(pattern, flags)
        except re.error:
            return None


def agree(pattern: str, seed: random.Random, flags: int = 0) -> bool:
    expected = compiled(pattern, flags)
    if expected is None:
        return False
    node = parse(pattern, flags=flags)
    whole, part = lower(node, UTF8), search(node, UTF8)
    is_empty(whole)
    for text in patterns.texts(seed, whole, 6):
        assert matches(whole, text.encode()) == bool(expected.fullmatch(text)), (pattern, flags, text)
        assert matches(part, text.encode()) == bool(expected.search(text)), (pattern, flags, text)
    return True


@pytest.mark.parametrize("block", mostly_slow(range(8), 1))
def test_random_patterns_match_what_re_matches(block: int) -> None:
    seed = random.Random(block)
    compared = 0
    for _ in range(some(120, 4)):
        flags = seed.choice([0, 0, re.MULTILINE, re.DOTALL, re.ASCII, re.IGNORECASE, re.IGNORECASE | re.MULTILINE])
        compared += agree(patterns.pattern(seed), seed, flags)
    assert compared > some(120, 4) // 2


@pytest.mark.skipif(compiled("a*+") is None, reason="atomic groups came with Python 3.11")
@pytest.mark.skipif(
    sys.version_info < (3, 11, 5), reason="re goes back into possessive repetitions (python/cpython issue 106052)"
)
@pytest.mark.parametrize("block", mostly_slow(range(4), 1))
def test_atomic_groups_match_what_re_matches(block: int) -> None:
    seed = random.Random(100 + block)
    compared = 0
    with Refusals(most=0.1) as refusals:
        for _ in range(some(120, 2)):
            with refusals.trial(UnsupportedError):
                compared += agree(patterns.pattern(seed, atomic=True), seed)
    assert compared > some(100, 2) // 2


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_many_random_patterns_match_what_re_matches(block: int) -> None:
    seed = random.Random(1000 + block)
    atomic = block % 2 == 1
    with Refusals(most=0.1 if atomic else 0) as refusals:
        for _ in range(300):
            flags = seed.choice([0, re.MULTILINE, re.DOTALL, re.ASCII, re.IGNORECASE])
            with refusals.trial(UnsupportedError):
                agree(patterns.pattern(seed, atomic=atomic), seed, flags)


CORNERS = [
    r"((?!foo).)*", r"(?:(?!foo).)*bar", r"(?:(?<!a)b)+", r"(?:(?<=a)b|a)*", r"\bfoo\b", r"foo\B.*", r"^a|b$", r"(^a|b)+$",
    r"(?:^|,)a(?=,|$)", r"(?=.*\d)(?=.*[a-z]).{2,4}", r"(?<=(?<!a)b)c|bc", r"(?!(?<=a)b)[ab]*", r"(?:a|(?=b)){3}b",
    r"(?:(?=a)|b)*a?", r"(?m:^a$\n?)+", r"a$\n?", r"(?:a$\n)*", r"(?<=a(?=b))b|ab", r"(?<!\bfoo)bar|foobar", r"\b\b\b", r"\B", "",
    r"()*a", r"(?:){3}", r"a{0}", r"(?=a)*b", r"(?:a?){3}", r"(?:a*)*", r"(?:(?:a|b)*c)*", r"[\d-x]", r"[]-a]", r"[a\]]+", r"x{,2}",
    r"x{,}", r"x{", r"x{a}", r"x{1", r"(?i)straße", r"(?i:k)[^k]", r"(?a:\w)\w", r"(?x) a b # c", r"(?x)a\ [ ]#", r"(?-x: a)", r"(?s:.).",
    r"\07\101\x41A\N{EM DASH}\U0001F600", r"[\b]", r"(?P<n>a)(?#comment)b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", CORNERS)
@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.MULTILINE | re.DOTALL])
def test_corners(pattern: str, flags: int) -> None:
    if pattern.startswith("(?-x"):
        flags |= re.VERBOSE
    agree(pattern, random.Random(5), flags)


def test_whatever_re_reads_is_read_alike_or_refused() -> None:
    @given(st.text(alphabet=r"ab0\[]^-&|~.*+?{}(),:=!<>wdsbBAZxuNpP$#ie ", max_size=8))
    def compare(pattern: str) -> None:
        expected = compiled(pattern)
        try:
            with refusals.trial(UnsupportedError):
                agree(pattern, random.Random(1))
                parse(pattern)
        except Exception as error:
            if expected is not None:
                raise AssertionError(pattern) from error

    with Refusals(most=0.02) as refusals:
        compare()


def test_shorthands_and_spaces_are_those_of_re() -> None:
    for escape in (r"\d", r"\D", r"\s", r"\S", r"\w", r"\W"):
        node = parse(escape)
        found = normalise(
            (m.start(), m.end() - 1) for m in re.finditer(escape + "+", "".join(map(chr, range(0x110000))))
        )
        assert node.ranges == found, escape  # type: ignore[union-attr]


def test_stretches_of_one_category_are_that() -> None:
    at = 0
    for low, high, category in UNIFORM:
        assert at <= low <= high
        assert {unicodedata.category(chr(code)) for code in range(low, high + 1)} == {category}
        at = high + 1


def test_ignoring_case_joins_what_re_joins() -> None:
    cased = [c for c in EVERYTHING if c.lower() != c or c.upper() != c or c.casefold() != c]
    assert max(map(ord, cased)) <= LAST_CASED_CODE_POINT
    text = "".join(cased)
    for character in each(cased):
        found = {ord(c) for c in re.findall(re.escape(character), text, re.IGNORECASE)}
        closed = close_under_case(((ord(character), ord(character)),), ecma=False)
        assert {code for low, high in closed for code in range(low, high + 1)} == found, character


@pytest.mark.parametrize(
    "letters", ["[a-z]", "[^a-z]", "[K-k]", r"[\W]", r"[^\W]", "[à-ï]", "[Ā-Ž]", r"[\d\u212a]", "[^ſ]"]
)
def test_ignoring_case_in_classes_is_that_of_re(letters: str) -> None:
    for flags in (re.IGNORECASE, re.IGNORECASE | re.ASCII):
        expected = normalise(
            (m.start(), m.end() - 1) for m in re.finditer(letters, "".join(map(chr, range(0x3000))), flags)
        )
        assert _clipped(parse(letters, flags=flags).ranges) == list(expected)  # type: ignore[union-attr]


def _clipped(ranges: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    return [(low, min(high, 0x2FFF)) for low, high in ranges if low < 0x3000]


PROPERTIES = [
    "L",
    "Lu",
    "Letter",
    "gc=Nd",
    "Script=Greek",
    "sc=Cyrl",
    "scx=Deva",
    "Han",
    "Alphabetic",
    "Emoji",
    "ASCII",
    "Any",
    "InBasicLatin",
]


@pytest.mark.parametrize("name", each(PROPERTIES, 2))
def test_properties_are_those_of_the_regex_package(name: str) -> None:
    regex = pytest.importorskip("regex")
    ranges = unicode_property(name, "offset 0")
    inside = [r for r in ranges for r in (r[0], r[1])]
    outside = [code for low, high in ranges for code in (low - 1, high + 1) if 0 <= code <= 0x10FFFF]
    oracle = regex.compile(f"\\p{{{name}}}")
    table = {code for low, high in ranges for code in (low, high)}
    disagreeing = 0
    for code in [*inside, *outside]:
        if 0xD800 <= code <= 0xDFFF:
            continue
        disagreeing += (code in table or any(low <= code <= high for low, high in ranges)) != bool(
            oracle.match(chr(code))
        )
    # The two libraries carry different versions of Unicode; only characters assigned between them may differ.
    assert disagreeing <= len(ranges) // 10
    assert python_class("w")
