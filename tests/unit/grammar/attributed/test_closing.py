"""Searches for an end, beside threads that have none: they are bounded together."""

from __future__ import annotations

from functools import partial

import pytest

from guided.errors import LimitError
from guided.grammar.attributed.closing import MOST_STEPS
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.lexis import Lexis
from guided.grammar.attributed.nodes import Action, Node, Sign, Star, choice, seq, words
from guided.grammar.attributed.states import At
from tests.unit.grammar.sql.query.random_queries import read

FAR = 700
"""Lexemes of an end: more than a search looks at first."""


def language(*ways: Node) -> AttributedLanguage:
    body = choice(*(seq(words("GO"), way) for way in ways))
    return AttributedLanguage(body, 0, Lexis(frozenset(), '"'), lambda _: frozenset())


def behind_go(of: AttributedLanguage) -> At:
    at = read(of, of.start, "GO ")
    assert at is not None
    return at


def endless(sign: str) -> Node:
    """Signs without end: behind each the attribute is one of two others, and none that was before."""
    ways = [seq(Action(partial(_next, step)), Sign(sign)) for step in (1, 2)]
    return seq(Star(choice(*ways), lambda _: True), Action(lambda _: None), Sign("."))


def _next(step: int, number: int) -> int:
    return (3 * number + step) % (1 << 61)


def test_an_end_is_found_beside_threads_that_have_none() -> None:
    of = language(endless("+"), endless("-"), seq(*[Sign(";")] * FAR))
    assert of.end(behind_go(of)) == b";" * FAR
    assert of.closing.steps < MOST_STEPS // 5


def test_threads_without_an_end_take_no_more_steps_the_more_they_are() -> None:
    of = language(*(endless(sign) for sign in "+-*/<=>"))
    with pytest.raises(LimitError, match="too many steps"):
        of.end(behind_go(of))
    assert of.closing.steps <= 2 * MOST_STEPS
