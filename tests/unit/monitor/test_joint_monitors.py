"""Several monitors over one text, against brute force over all short texts."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guided
from guided.constraint.live import LiveConstraint
from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError, VocabularyError
from guided.monitor.agreeing import Agreed, Agreeing
from guided.monitor.joint import Joint, joint
from guided.monitor.monitor import Monitor, WatchedText, monitored
from guided.monitor.names import FREE, IdentifierBytes, Names
from guided.monitor.ngrams import ngrams
from guided.monitor.substrings import substring
from guided.testing import check_constraint
from tests.amounts import each
from tests.twin.monitor_words import VOCABULARY, Words, random_text

LETTERS = IdentifierBytes.of()


class Behind(Monitor):
    """Behind a mark come these names; with ``when``, only if the text holds that."""

    def __init__(self, mark, names, *, assignable=False, when=b""):
        self.trigger_bytes, self.names, self.assignable, self.when = mark, names, assignable, when

    def __repr__(self):
        return f"{self.names} behind {self.trigger_bytes!r}"

    lexical_start = False

    def read(self, lexical, byte):
        return byte in self.trigger_bytes

    def triggers(self, lexical):
        return lexical

    def analyse(self, text, context):
        if self.when not in text:
            return None
        return Names.of(self.names, LETTERS, assignable=self.assignable, reserved=["if"]).begin()


def lives(constraint, text: bytes) -> bool:
    return bool(constraint.advance_bytes(constraint.start, text))


def accepts(constraint, text: bytes) -> bool:
    return constraint.is_accepting(constraint.advance_bytes(constraint.start, text))


TEXTS = [bytes(text) for n in range(7) for text in itertools.product(b"ab.@", repeat=n)]

PAIRS = {
    "other places": (Behind(b".", ["a", "ab"]), Behind(b"@", ["b", "ba"])),
    "same place": (Behind(b".", ["a", "ab", "abb", "b"]), Behind(b".", ["ab", "abb", "ba"])),
    "contradiction": (Behind(b".", ["a", "aa"]), Behind(b".@", ["b", "bb"])),
    "sometimes": (Behind(b".", ["aa", "ab"]), Behind(b".", ["bb", "ab"], when=b"b")),
    "contradiction sometimes": (Behind(b".", ["aa"]), Behind(b".", ["bb"], when=b"@")),
    "new names": (Behind(b"@", ["a"], assignable=True), Behind(b"@", ["b", "ab"])),
}


@pytest.mark.parametrize("pair", each(PAIRS, 2))
def test_a_text_is_allowed_if_all_allow_it_and_it_can_end(pair):
    """The definition: accepted by both alone; alive if a text of both begins so."""
    parts = [monitored(monitor, VOCABULARY) for monitor in PAIRS[pair]]
    both = joint(parts)
    # Behind a new name a colon does what a dot cannot.
    texts = [text.replace(b".", b":") for text in TEXTS] if pair == "new names" else TEXTS
    accepted = {text for text in texts if all(accepts(part, text) for part in parts)}
    assert {text for text in texts if accepts(both, text)} == accepted
    # The names have at most three letters: what can end does so within four more bytes.
    begun = {text[:n] for text in accepted for n in range(len(text) + 1)}
    for text in texts:
        if len(text) <= 2:
            assert lives(both, text) == (text in begun), text


@pytest.mark.parametrize("pair", each(PAIRS, 2))
def test_contracts(pair):
    both = joint([monitored(monitor, VOCABULARY) for monitor in PAIRS[pair]])
    check_constraint(both, walks=4, length=12, full_states=4)


def test_the_shortest_common_end_is_found():
    both = joint(
        [
            monitored(Behind(b".", ["aXb", "aYbb", "c"]), VOCABULARY),
            monitored(Behind(b".", ["aYbb", "aXbbb"]), VOCABULARY),
        ]
    )
    state = both.advance_bytes(both.start, b"x.")
    assert both.shortest_text(state) == b"aYbb"
    assert both.forced(state) == b"aYbb"
    assert "aXb" in both.explain(state, ord("z")) and "aXbbb" in both.explain(state, ord("z"))
    assert not lives(both, b"x.aX")


def test_what_contradicts_is_not_entered():
    both = joint([monitored(monitor, VOCABULARY) for monitor in PAIRS["contradiction sometimes"]])
    assert lives(both, b"x.aa")
    assert not lives(both, b"@x.")
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    both.fill_mask(both.advance_bytes(both.start, b"@"), row)
    assert not row[ord(".") >> 5] >> (ord(".") & 31) & 1


def test_three_kinds_of_constraints_together():
    source = "self.path is os.path, self.app is app; os.up"
    dots = monitored(Behind(b".", ["path", "app", "append"]), VOCABULARY)
    pieces = substring(source, VOCABULARY)
    words = guided.compile(guided.regex("(?:self|os)[.][a-z]+(?: is)?", dialect="python"), VOCABULARY)
    all_three = joint([dots, pieces, words])
    accepted = {
        piece
        for begin in range(len(source))
        for end in range(begin + 1, len(source) + 1)
        if accepts(dots, piece := source[begin:end].encode()) and accepts(words, piece)
    }
    assert b"self.path is" in accepted and b"os.path" in accepted and b"os.up" not in accepted
    rng = random.Random(0)
    assert {random_text(all_three, rng, 20) for _ in range(60)} == accepted
    check_constraint(all_three, walks=4, length=10, full_states=3)


def test_a_grammar_and_a_monitor():
    dots = monitored(Behind(b".", ["path", "app"]), VOCABULARY)
    schema = guided.json_schema(
        {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
            "additionalProperties": False,
        },
        whitespace=None,
    )
    both = joint([dots, guided.compile(schema, VOCABULARY)])
    assert accepts(both, b'{"code":"self.path"}')
    assert not lives(both, b'{"code":"self.x')
    # Nothing closes the string in time, and no break character can stand in for a name.
    assert not lives(both, b'{"code":"self."')
    rng = random.Random(1)
    for _ in range(5):
        text = random_text(both, rng, 30)
        assert accepts(dots, text) and accepts(guided.compile(schema, VOCABULARY), text)
    check_constraint(both, walks=2, length=8, full_states=2)


NAMES = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4)


@settings(max_examples=15)
@given(NAMES, NAMES, st.booleans())
def test_agreed_verdicts_are_intersections(left, right, assignable):
    verdicts = [Names.of(left, LETTERS, assignable=assignable).begin(), Names.of(right, LETTERS).begin()]

    def over(verdict, text):
        """Where a verdict stands after a text: dead, may it end, or free."""
        for byte in text:
            verdict = verdict.step(byte) if verdict is not FREE else FREE
            if verdict is None:
                return "dead"
        return "free" if verdict is FREE else "end" if verdict.may_end else "open"

    ends = [
        bytes(letters)
        for n in range(4)
        for letters in itertools.product(b".:=ab", repeat=n)
        if all(over(verdict, letters) in ("end", "free") for verdict in verdicts)
    ]
    if not ends:
        with pytest.raises(UnsatisfiableError):
            Agreed.of(verdicts)
        return
    agreed = Agreed.of(verdicts)
    assert agreed.rest == ends[0]
    for n in range(4):
        for letters in itertools.product(b"ab.", repeat=n):
            each, found = [over(verdict, letters) for verdict in verdicts], over(agreed, letters)
            if "dead" in each:
                assert found == "dead"
            elif found == "dead":
                assert not any(
                    all(over(verdict, (*letters, *more)) in ("end", "free") for verdict in verdicts)
                    for m in range(4)
                    for more in itertools.product(b"ab=", repeat=m)
                )
            else:
                assert (found == "free") == (each == ["free", "free"])
                assert (found in ("end", "free")) == all(one in ("end", "free") for one in each)


def test_monitors_that_agree():
    monitor = Agreeing([Behind(b".@", ["a", "ab", "b"], when=b"x"), Behind(b".", ["ab", "c"])])
    constraint = monitored(monitor, VOCABULARY, before="x")
    for text, alive in {
        b"x.ab": True,
        b"x.a": True,
        b"x.b": False,
        b"x.c": False,
        b"x@q": True,
        b"x.ab.": True,
    }.items():
        assert lives(constraint, text) is alive, text
    assert lives(monitored(monitor, VOCABULARY), b"y.q"), "one of them knows nothing"
    check_constraint(constraint, walks=4, length=15)
    assert constraint.notes == ()
    contrary = Agreeing([Behind(b".", ["a"]), Behind(b".", ["b"])])
    free = monitored(contrary, VOCABULARY)
    assert lives(free, b"x.zz")
    assert "contradicted each other" in free.notes[0]
    with pytest.raises(GuidedError, match="never trigger at the same place"):
        Agreeing([Behind(b".", ["a"]), Behind(b"@", ["a"])])
    with pytest.raises(GuidedError, match="no monitors"):
        Agreeing([])


def test_what_is_refused():
    dots = monitored(Behind(b".", ["a"]), VOCABULARY)
    with pytest.raises(UnsatisfiableError, match="no text satisfies all"):
        joint([substring("abc", VOCABULARY), guided.compile(guided.choice(["xyz"]), VOCABULARY)])
    with pytest.raises(VocabularyError):
        joint([dots, monitored(Behind(b".", ["a"]), Words.with_special())])
    with pytest.raises(UnsupportedError, match="substring instead of ngrams"):
        joint([dots, ngrams([[1, 2, 3]], VOCABULARY)])
    with pytest.raises(GuidedError, match="of nothing"):
        joint([])


class Longer(WatchedText):
    """A text that may end only behind a thousand letters of another kind each time: no common end is near."""

    def may_end(self, at):
        return False

    def rest(self, at):
        return b"z" * 10


def test_a_search_without_end_is_stopped():
    endless = LiveConstraint(Longer(Behind(b".", ["a"])), VOCABULARY)
    with pytest.raises(LimitError, match="is open after 51 texts"):
        Joint([endless.language, monitored(Behind(b".", ["a"]), VOCABULARY).language], 50)


def test_parts_are_left_alone():
    part = monitored(Behind(b".", ["a"]), VOCABULARY)
    state = part.advance_bytes(part.start, b"x")
    both = joint([part, part])
    assert both.advance_bytes(both.start, b"y.a")
    assert part.language.text(part._states.value(state)) == b"x"
