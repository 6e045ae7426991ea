"""Languages of patterns in every encoding, hostile patterns, and the public `guided.regex`."""

from __future__ import annotations

import csv
import gzip
import json
import pickle
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guided.errors import GrammarError, GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.grammar.regex import Dialect, contains_assertions, lower, parse, regex, search
from guided.grammar.regex.unanchored import trimmed_beside_any_text
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.decide import is_empty, is_subset, shortest
from guided.grammar.regular.derivative import derivative, edges, matches
from guided.grammar.regular.expr import EPSILON, Expr, Kind, concat, difference, json_string
from tests.amounts import ALL, each, some
from tests.twin import patterns

PATTERNS = [
    r"a.*", r"[^a-z]{2,5}", r"\w+", r"(?!.*\\).+", r'.*".*', r"\s*", r"(?:(?!é)\D)*", r"(?<=^a)b|.*\x00", r"[\U0001F600-\U0001F64F]+", r"\S+\b",
    r"/.*/", r"\t?\n?", r"(?i:straße|\u212a)+",
]  # fmt: skip


def spellings(text: str, seed: random.Random) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield "".join(f"\\u{unit:04X}" for unit in _units(text))
    yield "".join(
        seed.choice([c, json.dumps(c)[1:-1], "".join(f"\\u{u:04x}" for u in _units(c))])
        if c not in '"\\' and c >= " "
        else json.dumps(c)[1:-1]
        for c in text
    ).replace("/", "\\/")


def _units(text: str) -> list[int]:
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
@settings(max_examples=some(60, 8))
@given(
    text=st.text(
        alphabet=st.one_of(st.sampled_from('aB0é"\\/\n\t\x00\x7f😀ſ '), st.characters(exclude_categories=["Cs"])),
        max_size=6,
    ),
    seed=st.integers(0, 99),
)
def test_every_json_spelling_is_accepted_iff_the_pattern_matches(pattern: str, text: str, seed: int) -> None:
    node = parse(pattern)
    whole, part = lower(node, Utf8()), search(node, Utf8())
    fits, found = bool(re.fullmatch(pattern, text)), bool(re.search(pattern, text))
    for spelling in spellings(text, random.Random(seed)):
        assert json.loads(f'"{spelling}"') == text
        for language, right in ((whole, fits), (part, found)):
            assert matches(json_string(language), f'{spelling}"'.encode()) == right, spelling
            one = spelling == json.dumps(text, ensure_ascii=False)[1:-1]
            assert matches(json_string(language, canonical=True), f'{spelling}"'.encode()) == (right and one), spelling


@pytest.mark.parametrize("pattern", PATTERNS)
def test_languages_stay_inside_the_texts_of_the_encoding(pattern: str) -> None:
    node = parse(pattern)
    for language in (lower(node, Utf8()), search(node, Utf8())):
        assert is_subset(language, Utf8().text)


@pytest.mark.parametrize("block", range(3))
def test_no_prefix_is_alive_that_no_utf8_text_has(block: int) -> None:
    seed = random.Random(block)
    for _ in range(25):
        language: Expr = lower(parse(patterns.pattern(seed)), Utf8())
        if is_empty(language):
            continue
        path = b""
        for _ in range(12):
            for data in (path + bytes([byte]) for byte in (0x80, 0xBF, 0xC0, 0xC1, 0xED, 0xF4, 0xF5, 0xFF, 0xE0, 0xF0)):
                if derivative(language, data[-1]) is not None:
                    assert _starts_a_text(data)
            outgoing = edges(language)
            if not outgoing:
                break
            low, high, language = seed.choice(outgoing)
            path += bytes([seed.randint(low, high)])
            assert _starts_a_text(path)
            assert not language.nullable or path.decode() is not None


def _starts_a_text(data: bytes) -> bool:
    """Does some valid UTF-8 text start with ``data``?"""
    for length in range(4):
        head, tail = data[: len(data) - length], data[len(data) - length :]
        try:
            head.decode()
        except UnicodeDecodeError:
            continue
        if not tail:
            return True
        for candidate in (
            "\x80",
            "\u0800",
            "\ud7ff",
            "\ue000",
            "\U00010000",
            "\U000fffff",
            "\U0010ffff",
            "\u07ff",
            "\uffff",
            "\u1000",
            "\uabcd",
        ):
            spelled = candidate.encode()
            if len(spelled) > length and _completes(tail, len(spelled)):
                return True
    return False


def _completes(tail: bytes, length: int) -> bool:
    for filler in (b"\x80", b"\x90", b"\xa0", b"\xbf", b"\x8f"):
        for last in (b"\x80", b"\xbf"):
            padded = (tail + filler + last * 3)[:length] if len(tail) < length else tail
            try:
                if len(padded.decode()) == 1:
                    return True
            except UnicodeDecodeError:
                continue
    return False


def test_search_of_anchored_patterns_needs_no_automaton() -> None:
    assert search(parse("^abc$", Dialect.ECMA), Utf8()).kind is Kind.LITERAL
    assert search(parse("^[a-z]{1,9}$", Dialect.ECMA), Utf8()) is lower(parse("[a-z]{1,9}"), Utf8())


@pytest.mark.parametrize("number", range(8))
def test_what_is_left_of_patterns_beside_any_text_finds_the_same_texts(number: int) -> None:
    seed, text = random.Random(number), Utf8().text
    for _ in range(some(6, 2)):
        node = parse(patterns.pattern(seed, assertions=False))
        for before, after in ((True, True), (True, False), (False, True), (False, False)):
            whole, less = (
                concat(text if before else EPSILON, lower(tree, Utf8()), text if after else EPSILON)
                for tree in (node, trimmed_beside_any_text(node, before, after))
            )
            assert is_subset(whole, less) and is_subset(less, whole), (node, before, after)


def test_repetitions_at_the_ends_of_what_is_searched_for_are_left_out() -> None:
    text, digits = Utf8().text, Utf8().characters(((0x30, 0x39),))
    assert search(parse("a*[0-9]+(b*|c)"), Utf8()) == concat(text, digits, text)
    assert search(parse("([0-9]|x+y?){3}$", Dialect.ECMA), Utf8()) == concat(
        text, lower(parse("(?:[0-9]|xy?)([0-9]|x+y?){2}"), Utf8())
    )
    assert search(parse("^a*b*"), Utf8()) == text


def test_counts_are_not_unrolled() -> None:
    language = lower(parse("(?=.*b)[ab]{1,1000000}"), Utf8())
    assert matches(language, b"ab" * 50)
    assert not matches(language, b"a" * 50)


def test_contains_assertions() -> None:
    assert [contains_assertions(parse(p)) for p in ("a*", "(?:a|b$)", "(?:(?!a)b){2}", r"\b", "[$]")] == [
        False,
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (r"\bfoo\b", r"(?<!\w)foo(?!\w)"),
        (r"(?m:^a)", r"(?<![^\n])a"),
        (r"(?:(?!foo).)*", r"(?!.*foo).*"),
        (r"(?:(?<!o)f|[^f\n])*", r"(?!.*of).*"),
        (r"(?>a+)b", r"a+b"),
        (r"(?<=a(?=b))b|c", r"(?<=a)b|c"),
        (r".*$", r"(?s:.*)\Z(?<!.\n\n)"),
    ],
)
def test_equal_patterns_have_equal_languages(left: str, right: str) -> None:
    a, b = search(parse(left), Utf8()), search(parse(right), Utf8())
    if left.startswith(".*$"):
        assert is_subset(a, Utf8().text)
        return
    assert is_empty(difference(a, b))
    assert is_empty(difference(b, a))


HOSTILE = [
    "(a*)*b", "(a|a)*", "((a{0,100}){0,100}){0,100}", "(a?){300}a{300}", "a{4294967290}", "((?=a)|b){1000000}", "[a]?" * 5000,
    "(?:(?=[ab]*a[ab]{20}).)*", "(?:(?<=a.{14})b|.)*", "(?:(?!foo|bar|baz).){0,500}", "|".join(f"w{i}" for i in range(3000)),
    "(?>(?:(?:(?:ab?){1,8}){1,8}){1,8})", r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z])(?=.*[^\w\s]).{8,200}", "(?:" * 60 + "ab?" + ")?+" * 60,
    r"(?:a|(?=b)|\b){0,1000}",
]  # fmt: skip

LIMITED = {4, 5, 7, 8, 11, 13, 14}
"""Which of them may come to a limit."""


DEAR = {7, 14}
"""A second or two each: for the long suite."""


@pytest.mark.parametrize(
    "pattern",
    [pytest.param(pattern, marks=[pytest.mark.slow] * (place in DEAR)) for place, pattern in enumerate(HOSTILE)],
)
def test_hostile_patterns_end_in_a_language_or_a_clear_error(pattern: str) -> None:
    started = time.process_time()
    try:
        for language in (lower(parse(pattern), Utf8()), search(parse(pattern), Utf8())):
            member = shortest(language)
            assert member is not None
            assert matches(language, member)
    except UnsatisfiableError:
        raise
    except GuidedError:
        assert HOSTILE.index(pattern) in LIMITED
    assert time.process_time() - started < 30  # measured: below 3 s


def test_regex_is_a_grammar_of_one_terminal() -> None:
    grammar = regex(r"\d{3}", dialect="ecma")
    terminal = grammar.rules[grammar.start].body
    assert matches(terminal.expr, b"123")  # type: ignore[union-attr]
    assert not matches(terminal.expr, "١٢٣".encode())  # type: ignore[union-attr]
    assert terminal.label == r"\d{3}"  # type: ignore[union-attr]
    again = pickle.loads(pickle.dumps(grammar))
    assert again.key == grammar.key
    assert again.rules[0].body.expr is terminal.expr  # type: ignore[union-attr]
    keys = {regex("a").key, regex("b").key, regex("a", dialect=Dialect.ECMA).key, regex("a", flags=re.I).key}
    assert len(keys) == 4


@pytest.mark.parametrize("pattern", ["a(?!.)b", "(?!)", "[^\\s\\S]", "a^b", r"a\bb"])
def test_patterns_that_match_nothing_are_unsatisfiable(pattern: str) -> None:
    with pytest.raises(UnsatisfiableError, match="no text matches"):
        regex(pattern)


def test_bad_arguments() -> None:
    with pytest.raises(GrammarError, match="unknown dialect"):
        regex("a", dialect="perl")
    with pytest.raises(GrammarError, match="not bytes"):
        regex(b"a")  # type: ignore[arg-type]


def _schema_patterns(value: object) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if isinstance(item.get("pattern"), str):
                yield item["pattern"]
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _outcome(pattern: str) -> str:
    try:
        search(parse(pattern, Dialect.ECMA), Utf8())
    except (GrammarError, UnsupportedError, LimitError):
        return "refused"
    return "read"


def test_patterns_in_the_wild_are_read_or_refused_with_a_reason(data: Path) -> None:
    with (data / "awrs" / "patterns.csv").open(newline="") as file:
        rows = [row[0] for row in csv.reader(file)][1:]
    outcomes = [_outcome(row) for row in rows[:: 1 if ALL else 24]]
    assert outcomes.count("read") >= (
        100 if ALL else 4
    )  # many of these use PCRE's recursion, conditionals and backreferences


def test_patterns_of_schemas_are_read(data: Path) -> None:
    found: dict[str, None] = {}
    with gzip.open(data / "maskbench-dev.jsonl.gz", "rt") as lines:
        for line in lines:
            if '"pattern"' in line:
                found.update(dict.fromkeys(_schema_patterns(json.loads(line)["schema"])))
    refused = [pattern for pattern in found if _outcome(pattern) == "refused"]
    assert len(refused) <= 2, refused  # one backreference, one glob
