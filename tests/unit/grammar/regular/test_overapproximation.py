"""Outlines hold what they stand for, and answer as the languages themselves."""

from __future__ import annotations

import random

import pytest

from guided.grammar.formats.patterns import pattern_language
from guided.grammar.formats.times import date_time, time
from guided.grammar.regular.derivative import _raw_edges, derivative, edges, inhabited, matches
from guided.grammar.regular.expr import ALL, Expr, complement, concat, intersection, literal, repeat
from guided.grammar.regular.overapproximation import overapproximation
from guided.grammar.regular.product import has_member
from tests.amounts import each, some


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
            assert matches(overapproximation(at), text[i:])
            after = derivative(at, byte)
            assert after is not None
            at = after


def test_over_approximations_of_larger_languages_hold_them():
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
            assert overapproximation(language) is not language
            assert matches(overapproximation(language), sample)


def test_what_has_no_automaton_is_its_own_over_approximation():
    language = intersection([pattern_language("a*b"), complement(concat(ALL, literal(b"ab")))])
    assert overapproximation(language) is language


@pytest.mark.parametrize(
    "pattern",
    each([
        r"\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", r"\d\d:\d\d:60Z", r"T0\d:\d\d:60Z", r"-08:00$", r":60\.\d+-0[1-3]:", "Zz",
        r"\d{3}[zZ]", r"12:34:60", r"12:34:60-", r"12:34:60\+0", "x", r"60\+12:35", r"T\d\d:59:60.*\+\d\d:30",
    ], 3),
)  # fmt: skip
def test_answers_are_those_without_over_approximations(pattern):
    rest = date_time()
    for byte in b"2016-12-31T23:59:60"[: random.Random(pattern).randrange(12)]:
        after = derivative(rest, byte)
        assert after is not None
        rest = after
        found = pattern_language(f"(?s:.*)(?:{pattern.rstrip('$')}){'' if pattern.endswith('$') else '(?s:.*)'}")
        both = intersection([found, rest])
        expected = has_member(both, 1 << 20, _raw_edges)
        assert inhabited(both) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        r".*\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ.*",
        r".*[zZ]",
        r".*[+]05:[0-9]{2}",
        r"....-12-31T2.*(?:Z|-00:..)",
        r".*T(?:0|[12]3):(?:59|[0-2]).*0",
        r"[^.]*[.]0+Z?",
    ],
)
def test_alternatives_that_lie_apart_are_left_out_and_no_others(pattern: str):
    rnd = random.Random(pattern)
    asked = pattern_language(pattern)
    both = intersection([asked, date_time()])
    assert edges(both)
    minutes = [f"{hour:02}:{minute:02}" for hour in (0, 2, 13, 20, 22, 23) for minute in (0, 5, 29, 58, 59)]
    clocks = [
        f"{at}:{second}{zone}" for at in minutes for second in ("00", "59.0") for zone in ("Z", "+05:30", "-00:10")
    ]
    clocks = rnd.sample(clocks, some(len(clocks), 24))
    texts = [b"2016-12-31T" + text for text in [*leap_seconds(rnd, some(30, 8)), *(clock.encode() for clock in clocks)]]
    inhabited_at: dict[Expr, bool] = {}
    for text in [*texts, b"2016-12-31T23:59:60Z", b"2016-12-31T23:58:60Z", b"2016-12-31T04:59:60.0+05:00"]:
        at, one, other = both, asked, date_time()
        for i in range(len(text) + 1):
            assert at.nullable == (one.nullable and other.nullable)
            ways = {byte: target for low, high, target in edges(at) for byte in range(low, high + 1)}
            for byte in {*text[i : i + 1], *b"Zz+-.:0259"}:
                each = derivative(one, byte), derivative(other, byte)
                alive = each[0] is not None and each[1] is not None
                if alive:
                    left = intersection(part for part in each if part is not None)
                    if left not in inhabited_at:
                        inhabited_at[left] = bool(left.nullable or has_member(left, 30_000, _raw_edges))
                    alive = inhabited_at[left]
                assert (byte in ways) == alive, (text[:i], chr(byte))
            if i == len(text) or text[i] not in ways:
                break
            at = ways[text[i]]
            one, other = derivative(one, text[i]), derivative(other, text[i])
