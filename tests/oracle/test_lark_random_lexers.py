"""Random lexers: overlapping strings and patterns, flags, priorities, ignored terminals; always what Lark does."""

from __future__ import annotations

import logging
import random

import pytest
from lark import Lark
from lark import lexer as lark_lexer
from lark.exceptions import LarkError, UnexpectedInput

from guided.errors import GuidedError
from guided.grammar.ir import Lexing
from guided.grammar.lark import lark
from tests.amounts import Refusals, mostly_slow
from tests.twin.lexed import LexedRecogniser
from tests.twin.sentences import Sampler

logging.getLogger("lark").setLevel(logging.CRITICAL)


@pytest.fixture(autouse=True)
def _no_collision_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lark looks for overlapping terminals only to warn about them; here nearly all do."""
    monkeypatch.setattr(lark_lexer, "has_interegular", False)


STRINGS = ['"a"', '"ab"', '"b"', '"abc"', '"ab"i', '"a"i', '"."', '"a."', '" "', '"ss"i', '"bb"', '"i"i']
PATTERNS = [
    "/[a-c]+/", "/[a-z]+/i", "/[a-c]+?/", "/a|ab/", "/ab|a/", "/(a|b)*c?b/", "/[ab]{1,2}/", "/[ab]{2,}?/", "/a+(?!b)/",
    "/[a-c]+(?=\\.)/", "/(?<=a)b/", "/\\ba\\b/", "/./", "/\\.+/", "/ +/", "/ (a| )?/", "/a.*?b/", "/(?!ab)[a-c]+/",
    "/\\S/", "/[^a ]+/", "/b$/", "/^a/m", "/[A-C]\\b/i", "/ß/i", "/\\w+/",
]  # fmt: skip


def random_source(rng: random.Random) -> str:
    names = ["A", "B", "C", "D", "E"][: rng.randint(2, 5)]
    lines = []
    for name in names:
        definition = rng.choice(STRINGS) if rng.random() < 0.45 else rng.choice(PATTERNS)
        priority = rng.choice(["", "", "", ".2", ".-1"])
        lines.append(f"{name}{priority}: {definition}")
    shape = rng.choice(
        ["start: ({0})*", "start: x+\nx: {0}", 'start: {1} rest?\nrest: ({0}) rest?', "start: ({1} {2} | {2} {2} {1})+",
         "start: x*\nx: {1} | {2} {0}", "start: {1}* {2} ({0})?", "start: ({1} x)*\nx: {2} | {0}"]
    )  # fmt: skip
    lines.insert(0, shape.format("|".join(names), rng.choice(names), rng.choice(names)))
    for name in names:
        if rng.random() < 0.25:
            lines.append(f"%ignore {name}")
    if rng.random() < 0.4:
        lines.append("%ignore " + rng.choice(['" "', "/ +/", '"ab"', "/[a-b]+/", "/ +?/"]))
    return "\n".join(lines)


def compare(rng: random.Random, texts: int, refusals: Refusals) -> tuple[int, int]:
    source = random_source(rng)
    mode = rng.choice([Lexing.CONTEXTUAL, Lexing.DYNAMIC])
    options = {"parser": "lalr", "strict": False} if mode is Lexing.CONTEXTUAL else {"parser": "earley"}
    try:
        parser = Lark(source, **options)
    except LarkError:
        parser = None
    grammar = None
    with refusals.trial(GuidedError):
        grammar = lark(source, lexing=mode)
    if grammar is None:
        assert mode is Lexing.CONTEXTUAL or parser is None, source
        return 0, 0
    assert parser is not None, source
    recogniser = LexedRecogniser(grammar)
    sampler = Sampler(grammar, rng.randrange(10**9))
    accepted = 0
    for _ in range(texts):
        if rng.random() < 0.5:
            text = "".join(rng.choice("aaabbbc. ABsSß\n") for _ in range(rng.randint(0, 8)))
        else:
            text = sampler.text()[:14]
        try:
            parser.parse(text)
            expected = True
        except UnexpectedInput:
            expected = False
        except RuntimeError as error:
            if "multiple start symbol items" not in str(error):
                raise
            expected = True
        assert recogniser.accepts(text) == expected, (mode, source, text)
        accepted += expected
    return accepted, texts


@pytest.mark.parametrize("seed", mostly_slow(range(8), 1))
def test_random_lexers(seed: int) -> None:
    rng = random.Random(seed)
    with Refusals(most=0.12) as refusals:
        accepted, compared = map(sum, zip(*(compare(rng, 12, refusals) for _ in range(25)), strict=True))
    assert compared > 100
    assert 0 < accepted < compared


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_lexers(seed: int) -> None:
    rng = random.Random(seed)
    with Refusals(most=0.12) as refusals:
        accepted, compared = map(sum, zip(*(compare(rng, 25, refusals) for _ in range(400)), strict=True))
    assert 0 < accepted < compared
