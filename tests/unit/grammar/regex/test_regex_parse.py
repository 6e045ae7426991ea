"""What the pattern parser reads, and what it refuses at which offset."""

from __future__ import annotations

import re

import pytest

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.regex import Dialect, parse
from guided.grammar.regex.parse import MAX_DEPTH
from guided.grammar.regex.plain import depth
from guided.grammar.regex.syntax import Alternatives, Characters, Concatenation, Look, Quantified
from tests.amounts import crossed

A, B = Characters(((97, 97),)), Characters(((98, 98),))

MALFORMED = [
    ("(a", 0, "never closed"), ("a(b(c)", 1, "never closed"), ("a)", 1, "closes no group"), ("a|*", 2, "nothing to repeat"),
    ("ab[c", 2, "never closed"), ("a**", 2, "follows another"), ("^*", 1, "assertion"), ("a{3,2}", 1, "wrong order"),
    ("[z-a]", 1, "wrong order"), ("ab\\", 2, "ends the pattern"), (r"a\q", 1, r"\q"), (r"\xZZ", 0, "hexadecimal"),
    (r"a\p{Klingon}", 1, "unknown Unicode property"), (r"\pX", 0, "unknown Unicode property"), ("(?Z)", 0, "flags"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "offset", "message"), MALFORMED)
@pytest.mark.parametrize("dialect", [Dialect.PYTHON, Dialect.ECMA])
def test_malformed_patterns_are_refused_at_their_offset(
    pattern: str, offset: int, message: str, dialect: Dialect
) -> None:
    if dialect is Dialect.ECMA and pattern == r"\pX":
        message = "braces"
    with pytest.raises(GrammarError, match=re.escape(message)) as caught:
        parse(pattern, dialect)
    assert caught.value.where == f"offset {offset}"
    assert caught.value.remedy


PYTHON_ONLY = [
    ("a(?i)b", 1, "global flags"), ("(?i-i:a)", 0, "contradict"), ("(?P<1>a)", 0, "group name"), ("(?P<x>a)(?P<x>b)", 8, "taken"),
    ("(?<x>a)", 0, "begins no group"), (r"[\d-z]", 1, "cannot end a range"), ("(?#x", 0, "never closed"), (r"\N{NO SUCH}", 0, "named"),
    (r"\U00110000", 0, "U+10FFFF"), (r"\400", 0, "0o377"), ("[]", 0, "never closed"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "offset", "message"), PYTHON_ONLY)
def test_python_errors(pattern: str, offset: int, message: str) -> None:
    with pytest.raises(GrammarError, match=re.escape(message)) as caught:
        parse(pattern)
    assert caught.value.where == f"offset {offset}"


ECMA_ONLY = [
    ("a++", 2, "follows another"), (r"a\Z", 1, r"\Z"), (r"\c1", 0, "letter"), (r"\01", 0, "octal"), (r"\u{110000}", 0, "code point"),
    ("(?>a)", 0, "group syntax"), ("(?i)a", 0, "without a group"), (r"\a", 0, r"\a"), ("(?P<x>a)", 0, "group syntax"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "offset", "message"), ECMA_ONLY)
def test_ecma_errors(pattern: str, offset: int, message: str) -> None:
    with pytest.raises(GrammarError, match=re.escape(message)) as caught:
        parse(pattern, Dialect.ECMA)
    assert caught.value.where == f"offset {offset}"


REFUSED = [
    (r"(a+)b\1", 5, Dialect.PYTHON), (r"(?P<n>a*)(?P=n)", 9, Dialect.PYTHON), (r"(a)?(?(1)b|c)", 4, Dialect.PYTHON),
    (r"x(?>(?:a*)*b)", 1, Dialect.PYTHON), (r"(a+)\1", 4, Dialect.ECMA), (r"(?<n>.)\k<n>", 7, Dialect.ECMA), (r"(?:(a)+\1)", 7, Dialect.ECMA),
    (r"a\ud800", 1, Dialect.ECMA), (r"[\ud83c][\udf00]", 1, Dialect.ECMA), (r"[a\udc00-\udfff]", 2, Dialect.ECMA),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "offset", "dialect"), REFUSED)
def test_what_is_not_regular_or_not_exact_is_refused_at_its_offset(pattern: str, offset: int, dialect: Dialect) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse(pattern, dialect)
    assert caught.value.where == f"offset {offset}"
    assert caught.value.remedy


def test_flags_of_bytes_and_locales_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        parse("a", flags=re.LOCALE)
    with pytest.raises(UnsupportedError):
        parse("a", Dialect.ECMA, re.VERBOSE)


def test_the_tree_keeps_order_and_greediness() -> None:
    assert parse("ab|b*?") == Alternatives((Concatenation((A, B)), Quantified(B, 0, None, greedy=False)))
    assert parse("(?<!a)b{2,}") == Concatenation((Look(A, ahead=False, negative=True), Quantified(B, 2, None)))
    assert parse("(?:(a))") == A


def test_flags_end_with_their_group() -> None:
    assert parse("(?i:b)b") == Concatenation((Characters(((66, 66), (98, 98))), B))
    assert parse("(?i)(?-i:b)") == B
    assert parse("((?i:b))") == Characters(((66, 66), (98, 98)))
    assert parse("(?x: b )b") == Concatenation((B, B))


def test_surrogate_pairs_are_one_character_in_ecma() -> None:
    smile = Characters(((0x1F600, 0x1F600),))
    assert parse(r"\ud83d\ude00", Dialect.ECMA) == smile
    assert parse(r"[\ud83d\ude00]", Dialect.ECMA) == smile
    assert parse("\ud83d\ude00", Dialect.ECMA) == smile
    assert parse(r"[^\ud800-\udfff]", Dialect.ECMA) == parse("[^]", Dialect.ECMA)


def test_groups_without_content_nest_freely_and_others_up_to_the_limit() -> None:
    assert parse("(" * 5000 + "a" + ")" * 5000) == A
    for opening, closing in (("(?:", ")*"), ("(?=", ")"), ("(a|", ")"), ("(?>", "|b)")):
        with pytest.raises(LimitError, match="deeper"):
            parse(opening * 5000 + "a" + closing * 5000)
    assert depth(parse("(?:a" * 40 + ")?" * 40)) <= MAX_DEPTH


@pytest.mark.parametrize(
    ("pattern", "dialect"),
    crossed(["(" * 100_000, "[" * 100_000, "\\" * 99_999, "(?i:" * 30_000], [Dialect.PYTHON, Dialect.ECMA], share=6),
)
def test_long_patterns_that_are_cut_off_are_refused(pattern: str, dialect: Dialect) -> None:
    with pytest.raises(GrammarError):
        parse(pattern, dialect)


@pytest.mark.parametrize("pattern", ["a|" * 50_000, pytest.param("a{" * 50_000, marks=pytest.mark.slow)])
def test_long_patterns_are_read(pattern: str) -> None:
    assert parse(pattern, Dialect.PYTHON) == parse(pattern, Dialect.ECMA)
