"""Patterns with backreferences, against Python's `re` and, where `node` is installed, a JavaScript engine."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter

import lark
import pytest

import guided
from guided.errors import UnsatisfiableError, UnsupportedError
from guided.grammar.regex import Dialect, lower, parse, search
from guided.grammar.regex.references import MAX_TEXTS
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.derivative import matches
from tests.oracle.test_regex_against_node import NODE, node

UTF8 = Utf8()
TEXTS = ["".join(letters) for length in range(6) for letters in itertools.product("ab", repeat=length)]
TEXTS += ["abcab", "c", "cc", "acb", "bacab", "aAbB", "AA", "aA", "Bb", "B"]


def pattern(seed: random.Random, depth: int, groups: list[int]) -> str:
    """A random pattern; `groups` holds how many groups were opened so far."""
    kind = seed.randrange(10) if depth else seed.randrange(4)
    if kind < 2:
        return seed.choice(["a", "b", "c", "[ab]", "[abc]"])
    if kind < 4:
        return f"\\{seed.randint(1, groups[0])}{seed.choice(['', '', '?', '*'])}" if groups[0] else "a"
    if kind < 6:
        groups[0] += 1
        return f"({pattern(seed, depth - 1, groups)})"
    if kind < 8:
        return "".join(pattern(seed, depth - 1, groups) for _ in range(seed.randint(2, 3)))
    if kind < 9:
        return f"(?:{pattern(seed, depth - 1, groups)}|{pattern(seed, depth - 1, groups)})"
    body = pattern(seed, depth - 1, groups)
    return f"(?:{body}){seed.choice(['?', '??', '*', '+', '{2}', '{1,2}'])}"


def random_patterns(count: int, first: int) -> list[str]:
    found = []
    for number in itertools.count(first):
        text = pattern(random.Random(number), 4, [0])
        if "\\" in text:
            found.append(text)
        if len(found) == count:
            return found
    raise AssertionError


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_references_match_what_re_matches(flags: int) -> None:
    outcomes = Counter[str]()
    for text in random_patterns(600, flags * 10_000):
        try:
            expected = re.compile(text, flags)
        except re.error:
            outcomes["malformed"] += 1
            continue
        try:
            tree = parse(text, flags=flags)
        except UnsupportedError as error:
            outcomes["refused"] += 1
            assert "backreference" in str(error)
            continue
        outcomes["compared"] += 1
        whole, part = lower(tree, UTF8), search(tree, UTF8)
        for candidate in TEXTS:
            assert matches(whole, candidate.encode()) == bool(expected.fullmatch(candidate)), (text, candidate)
            assert matches(part, candidate.encode()) == bool(expected.search(candidate)), (text, candidate)
    assert outcomes["compared"] > 3 * outcomes["refused"], outcomes


@pytest.mark.skipif(NODE is None, reason="no node on this machine")
def test_references_match_what_javascript_matches() -> None:
    rows = [(text, "u", TEXTS) for text in random_patterns(400, 77_000)]
    compared = refused = 0
    for (text, _, _), answers in zip(rows, node(rows), strict=True):
        assert answers is not None, text
        try:
            tree = parse(text, Dialect.ECMA)
        except UnsupportedError:
            refused += 1
            continue
        compared += 1
        language = search(tree, UTF8)
        assert [matches(language, candidate.encode()) for candidate in TEXTS] == answers, text
    assert compared > 3 * refused


@pytest.mark.parametrize(
    "text",
    [
        r"(?P<n>a|ab)c?(?P=n)",
        r"(?P<n>ab|a)(?P=n)?",
        r"a(?P<n>b??a?)(?P=n)c??",
        r"a(?:x|(b))?(?P<n>b?)(?P=n)",
        r"(?P<n>a|ab)(?P<m>b?)c(?P=m)?(?P=n)",
    ],
)
def test_a_terminal_takes_the_match_that_re_prefers(text: str) -> None:
    """Lark reads the match that `re` prefers, and no other, so the order of the choices must be kept."""
    grammar = f"start: A REST\nA: /{text}/\nREST: /[abc]*z/"
    parser = lark.Lark(grammar, parser="lalr", lexer="contextual")
    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", b"c", b"z", None], eos_ids=[4])
    constraint = guided.compile(guided.lark(grammar), vocabulary)
    outcomes = Counter[bool]()
    for letters in itertools.chain.from_iterable(itertools.product("abc", repeat=length) for length in range(1, 7)):
        written = "".join(letters) + "z"
        try:
            parser.parse(written)
            parsed = True
        except lark.exceptions.LarkError:
            parsed = False
        outcomes[parsed] += 1
        assert constraint.is_accepting(constraint.advance_bytes(constraint.start, written.encode())) == parsed, written
    assert min(outcomes.values()) > 10


def test_quotes_and_dates() -> None:
    quoted = guided.regex(r"""(['"])[a-z]*\1""")
    date = guided.regex(r"(?P<year>[0-9][0-9])([-/])\d\d\2\d{4}(?P=year)")
    vocabulary = guided.Vocabulary.from_tokens([bytes([code]) for code in range(128)] + [None], eos_ids=[128])
    for grammar, right, wrong in [(quoted, "'ab'", "'ab\""), (date, "12-11-202612", "12-11/202612")]:
        constraint = guided.compile(grammar, vocabulary)
        assert constraint.is_accepting(constraint.advance_bytes(constraint.start, right.encode()))
        assert not constraint.advance_bytes(constraint.start, wrong.encode())
    repeated = guided.json_schema({"type": "string", "pattern": r"^(\d)(?!\1+$)\d{3}$"})
    constraint = guided.compile(repeated, vocabulary)
    assert not constraint.advance_bytes(constraint.start, b'"7777"')
    assert constraint.advance_bytes(constraint.start, b'"7778"')


def test_case_is_ignored_as_re_ignores_it_in_references() -> None:
    for character in "sSſkK\u212aıIiİσςΣßẞµμ":
        expected = re.compile(f"({character})\\1", re.IGNORECASE)
        language = lower(parse(f"({character})\\1", flags=re.IGNORECASE), UTF8)
        for first, second in itertools.product("sSſkK\u212aıIiİσςΣßẞµμ", repeat=2):
            assert matches(language, (first + second).encode()) == bool(expected.fullmatch(first + second))


@pytest.mark.parametrize(
    ("text", "why", "offset"),
    [
        (r"([a-z]+)x\1", "infinitely many", 9),
        (r"(.)\1", "infinitely many", 3),
        (r"(\d{4})\1", f"more than {MAX_TEXTS:,}", 7),
        (r"(?:(a|b)c)+\1", "repeated", 11),
        (r"(?=(a|b)).\1", "look-around", 10),
        (r"(?:\1|(a))+", "no group number 1", 3),
        (r"(?:(a)|b\1)+", "earlier round", 8),
        (r"(\ba)\1", "assertion", 5),
    ],
)
def test_what_is_not_written_out_is_refused_with_its_reason(text: str, why: str, offset: int) -> None:
    with pytest.raises(guided.GuidedError, match=why) as caught:
        parse(text)
    assert caught.value.where == f"offset {offset}"
    assert caught.value.remedy


def test_a_reference_to_a_group_that_took_no_part_fails_in_python_alone() -> None:
    with pytest.raises(UnsatisfiableError):
        guided.regex(r"(?:(a)|b)(?<!a)\1")
    assert matches(lower(parse(r"(?:(a)|b)\1", Dialect.ECMA), UTF8), b"b")
    assert not matches(lower(parse(r"(?:(a)|b)\1"), UTF8), b"b")


@pytest.mark.parametrize(
    ("text", "characters"), [(r"[\1]", "\1"), (r"[\41]", "!"), (r"[\0-\12x]", "\0\5\nx"), (r"[\101]", "A")]
)
def test_digits_after_a_backslash_are_octal_in_a_class(text: str, characters: str) -> None:
    language, expected = lower(parse(text), UTF8), re.compile(text)
    for code in range(256):
        assert matches(language, chr(code).encode()) == bool(expected.fullmatch(chr(code)))
    assert all(matches(language, character.encode()) for character in characters)


def test_numbers_of_groups_are_refused_where_lark_numbers_them_anew() -> None:
    with pytest.raises(UnsupportedError, match="by number"):
        guided.lark("start: A B\nB: /(z)/\nA: /(a|b)x\\1/")
    guided.lark("start: A B\nB: /(z)/\nA: /(a|b)[\\1]\\101/")
