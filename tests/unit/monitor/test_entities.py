"""Marked copies of a source: exactly those whose markup, taken away, leaves the source; and the contracts."""

from __future__ import annotations

import itertools
import pickle
import random
import re

import pytest

from guided.errors import GrammarError, UnsatisfiableError
from guided.monitor.entities import Markup, entity_mentions
from guided.testing import check_constraint
from tests.amounts import each, some
from tests.twin.monitor_words import VOCABULARY, Words, random_text


def marked(source: str, names, candidates=None, markup=("[", "](", ")"), longest=100) -> set[str]:
    """Every marked copy, by recursion over the source."""
    before, between, behind = markup
    found = {""} if not source else set()
    if source:
        found |= {source[0] + rest for rest in marked(source[1:], names, candidates, markup, longest)}
    for size in range(1, min(len(source), longest) + 1):
        for name in names if candidates is None else candidates(source[:size]):
            for rest in marked(source[size:], names, candidates, markup, longest):
                found.add(before + source[:size] + between + name + behind + rest)
    return found


def few(mention: str) -> list[str]:
    return {"a": ["A"], "ab": ["AB", "A)"], "é": ["e"]}.get(mention, [])


CASES = {
    "plain": ("aba", ["A", "Ab"], None, Markup(), 100),
    "candidates": ("abé", [], few, Markup(), 100),
    "brackets in the source": ("[a](", ["A"], None, Markup(), 100),
    "brackets in names": ("ab", ["A)", "A", "A)b"], None, Markup(), 100),
    "long markup": ("ab", ["A"], None, Markup("{ ", " } [ ", " ]"), 100),
    "short mentions": ("abé", ["A"], None, Markup(), 1),
    "markup of letters": ("ab", ["a", "ba"], None, Markup("a", "b", "a"), 100),
}


@pytest.mark.parametrize("case", CASES)
def test_exactly_the_marked_copies(case):
    source, names, candidates, markup, longest = CASES[case]
    constraint = entity_mentions(source, names, VOCABULARY, candidates=candidates, markup=markup, max_mention=longest)
    parts = (markup.before, markup.between, markup.behind)
    known = marked(source, names, candidates, parts, longest)
    alphabet = sorted(set("".join(known)))
    rng = random.Random(0)
    tried = {*known, *("".join(t) for n in range(4) for t in itertools.product(alphabet[:6], repeat=n))}
    for text in list(known):
        at = rng.randrange(len(text))
        tried |= {text[:at] + text[at + 1 :], text[:at] + rng.choice(alphabet) + text[at:], text[:at]}
    for text in tried:
        state = constraint.advance_bytes(constraint.start, text.encode())
        assert (state != 0 and constraint.is_accepting(state)) is (text in known), text


@pytest.mark.parametrize("case", each(CASES, 2))
def test_contracts(case):
    source, names, candidates, markup, longest = CASES[case]
    constraint = entity_mentions(source, names, VOCABULARY, candidates=candidates, markup=markup, max_mention=longest)
    check_constraint(constraint, walks=6, length=15)


def test_a_real_sentence():
    source = "the cat's hat is on [the] mat in 日本, naïve (as ever)."
    names = ["Cat", "Cat (animal)", "Cat]", "日本", "Japan", "the cat", "Hat"]
    constraint = entity_mentions(source, names, VOCABULARY)
    check_constraint(constraint, walks=3, length=20, threads=1)
    check_constraint(entity_mentions(source, names, Words.with_special()), walks=2, length=10, threads=1)
    rng = random.Random(4)
    linked = 0
    for _ in range(some(20)):
        text = random_text(constraint, rng, 120).decode()
        ways = "|".join(map(re.escape, names))
        plain = re.sub(rf"\[([^\[\]]+?)\]\((?:{ways})\)", r"\1", text)
        linked += plain != text
        assert pickle.loads(pickle.dumps(constraint)).advance_bytes(constraint.start, text.encode())
        if "[" not in plain.replace("[the]", ""):
            assert plain == source
    assert linked
    state = constraint.advance_bytes(constraint.start, b"the [cat's](")
    assert "expected one of 'C'" in constraint.explain(state, ord("z"))
    assert constraint.forced(constraint.advance_bytes(state, b"J")) == b"apan)"


def test_refusals():
    with pytest.raises(UnsatisfiableError):
        entity_mentions("a", [], VOCABULARY)
    for source, names, markup, longest in (
        ("", ["A"], None, 3),
        ("a", [""], None, 3),
        ("a", ["A"], Markup("", "x", "y"), 3),
        ("a", ["\ud800"], None, 3),
        ("a", ["A"], None, 0),
    ):
        with pytest.raises(GrammarError):
            entity_mentions(source, names, VOCABULARY, markup=markup, max_mention=longest)
