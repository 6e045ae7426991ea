"""Outlines hold what they stand for, and answer as the languages themselves."""

from __future__ import annotations

import random

import pytest

from guided.grammar.json_schema.format_patterns import pattern_language
from guided.grammar.json_schema.format_times import date_time, time
from guided.grammar.regular.derivative import _raw_edges, derivative, inhabited, matches
from guided.grammar.regular.expr import ALL, complement, concat, intersection, literal, repeat
from guided.grammar.regular.outlines import outline
from guided.grammar.regular.product import has_member


def leap_seconds(rnd: random.Random, number: int) -> list[bytes]:
    found = []
    for _ in range(number):
        local = rnd.randrange(1440)
        sign = rnd.choice("+-")
        offset = (local + 1) % 1440 if sign == "+" else 1439 - local
        part = rnd.choice(("", ".5", ".000"))
        zone = rnd.choice("Zz") if local == 1439 and rnd.random() < 0.5 else f"{sign}{offset // 60:02}:{offset % 60:02}"
        found.append(f"{local // 60:02}:{local % 60:02}:60{part}{zone}".encode())
    return found


def test_what_a_state_accepts_its_outline_accepts():
    rnd = random.Random(1)
    for text in leap_seconds(rnd, 200):
        at = time()
        assert matches(at, text)
        for i, byte in enumerate(text):
            assert matches(outline(at), text[i:])
            after = derivative(at, byte)
            assert after is not None
            at = after


def test_outlines_of_larger_languages_hold_them():
    rnd = random.Random(2)
    for text in leap_seconds(rnd, 40):
        whole = b"2016-12-31T" + text
        for language, sample in (
            (date_time(), whole),
            (concat(literal(b"at "), date_time(), literal(b".")), b"at " + whole + b"."),
            (repeat(concat(date_time(), literal(b";")), 1, 3), 2 * (whole + b";")),
            (intersection([date_time(), complement(literal(b"x"))]), whole),
        ):
            assert matches(language, sample)
            assert outline(language) is not language
            assert matches(outline(language), sample)


def test_what_has_no_automaton_is_its_own_outline():
    language = intersection([pattern_language("a*b"), complement(concat(ALL, literal(b"ab")))])
    assert outline(language) is language


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", r"\d\d:\d\d:60Z", r"T0\d:\d\d:60Z", r"-08:00$", r":60\.\d+-0[1-3]:", "Zz",
        r"\d{3}[zZ]", r"12:34:60", r"12:34:60-", r"12:34:60\+0", "x", r"60\+12:35", r"T\d\d:59:60.*\+\d\d:30",
    ],
)  # fmt: skip
def test_questions_are_answered_as_without_outlines(pattern):
    rest = date_time()
    for byte in b"2016-12-31T23:59:60"[: random.Random(pattern).randrange(12)]:
        after = derivative(rest, byte)
        assert after is not None
        rest = after
        found = pattern_language(f"(?s:.*)(?:{pattern.rstrip('$')}){'' if pattern.endswith('$') else '(?s:.*)'}")
        both = intersection([found, rest])
        expected = has_member(both, 1 << 20, _raw_edges)
        assert inhabited(both) == expected
