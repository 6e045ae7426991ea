"""Random grammars as users write them: each compiles or is refused, no text meets an error, masks are the twins'.

The 10^5 of each kind are run by ``python -m tests.twin.trials`` (see there), or by the slow test here, half by half:
``GUIDED_TRIALS=0:50000 GUIDED_TRIALS_LOG=trials pytest -m slow tests/laws/test_random_sources.py``.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from guided.automata.rules.analysis import productive_rules
from guided.constraint.engine import answers
from guided.errors import UnsatisfiableError
from guided.grammar.ir import Lexing
from tests.amounts import crossed, mostly_slow, some
from tests.twin.earley import Recogniser
from tests.twin.lexed import LexedRecogniser
from tests.twin.sentences import Sampler
from tests.twin.trials import Trial, fresh_vocabulary, run, summary

KINDS = ["lark", "gbnf"]
REFUSED = {"lark": 0.06, "gbnf": 0.01}
"""The most that limits may refuse.  Of Lark's, nearly all are rules that Lark itself would multiply out for minutes;
one in two hundred has terminals of thousands of states that overlap."""


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_meets_an_error(kind: str) -> None:
    vocabulary = fresh_vocabulary()
    entries = []
    n = some(60, 4)
    for seed in range(n):
        tried = Trial(kind, seed, vocabulary)
        tried.write(2, 25)
        entries.append(tried.entry())
    found = summary(entries)
    assert not found["errors"]
    assert found["outcomes"]["compiled"] > n // 2
    assert len(found["limits"]) <= 1 + REFUSED[kind] * len(entries)


@pytest.mark.parametrize("seed", mostly_slow([63957, 61480, 87180, 94659], 1))
def test_what_compiled_is_decided_later_however_many_steps_it_takes(seed: int) -> None:
    """Threads owe more together than any one of them: more than the steps that compiling had left."""
    tried = Trial("lark", seed, fresh_vocabulary())
    tried.write()
    assert (tried.outcome, tried.error) == ("compiled", "")


@pytest.mark.slow
@pytest.mark.timeout(86_400)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_thousand(kind: str, tmp_path: Path) -> None:
    first, stop = map(int, os.environ.get("GUIDED_TRIALS", "0:100000").split(":"))
    log = Path(f"{os.environ.get('GUIDED_TRIALS_LOG', tmp_path / 'trials')}.{kind}.{first}.jsonl")
    found = run(kind, first, stop, log)
    print(found)
    assert not found["errors"]
    assert not found["late"]
    assert len(found["limits"]) <= 1 + REFUSED[kind] * found["seeds"]


def _compare_lark(seed: int) -> str:
    """What the engine says of texts that begin like sentences, against a lexer and a parser over whole texts."""
    tried = Trial("lark", seed, fresh_vocabulary())
    grammar, constraint = tried.grammar, tried.constraint
    if grammar is None or tried.outcome not in ("compiled", UnsatisfiableError.__name__) or len(grammar.rules) > 60:
        return tried.outcome
    if len(productive_rules(grammar.rules)) < len(grammar.rules):
        return "endless"  # no sentences can be drawn
    twin, sampler, rng = LexedRecogniser(grammar), Sampler(grammar, seed), random.Random(seed)
    for _ in range(12):
        text = sampler.text()[:14]
        accepted = twin.accepts(text)
        if constraint is None:
            assert not accepted, (tried.source, text)
            continue
        state = constraint.advance_bytes(constraint.start, text.encode())
        assert constraint.is_accepting(state) == accepted, (tried.source, text)
        begun = text[: rng.randint(0, len(text))]
        state = constraint.advance_bytes(constraint.start, begun.encode())
        assert state or not accepted, (tried.source, begun)
        if state and len(rest := constraint.shortest_text(state)) < 12:
            assert twin.accepts(begun + rest.decode()), (tried.source, begun, rest)
    return tried.outcome


def _compare_gbnf(seed: int) -> str:
    """Random texts byte by byte: which of some bytes are alive, and may the text end?"""
    tried = Trial("gbnf", seed, fresh_vocabulary())
    grammar, constraint = tried.grammar, tried.constraint
    if grammar is None or "000" in tried.source or "200" in tried.source or "{100}" in tried.source:
        return tried.outcome
    assert grammar.lexing is Lexing.NONE
    twin, rng = Recogniser(grammar), random.Random(seed)
    if constraint is None:
        assert not twin.table.rules[twin.start], tried.source
        return tried.outcome
    state, text = constraint.start, b""
    for _ in range(6):
        assert constraint.is_accepting(state) == twin.accepting, (tried.source, text)
        possible = constraint.possible_bytes(state)
        for byte in (*b"a0,(", rng.randrange(256)):
            alive = Recogniser(grammar).feed(text + bytes([byte])).alive
            assert alive == (constraint.advance_bytes(state, bytes([byte])) != 0), (tried.source, text, byte)
        following = [byte for byte in range(256) if possible[byte]]
        if not following:
            break
        byte = rng.choice(following)
        text += bytes([byte])
        state = constraint.advance_bytes(state, bytes([byte]))
        twin.feed(bytes([byte]))
    return tried.outcome


@pytest.mark.parametrize(("kind", "most_items"), crossed(KINDS, [1, answers.MANY_ITEMS], share=6))
def test_masks_are_the_twins(kind: str, most_items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MANY_ITEMS", most_items)
    compare = _compare_lark if kind == "lark" else _compare_gbnf
    first = 1000 if most_items > 1 else 3088
    found = [compare(seed) for seed in range(first, first + some(30, 4))]
    assert found.count("compiled") > some(8, 4)


@pytest.mark.slow
@pytest.mark.timeout(86_400)
@pytest.mark.parametrize("kind", KINDS)
def test_masks_of_many_are_the_twins(kind: str) -> None:
    compare = _compare_lark if kind == "lark" else _compare_gbnf
    first, stop = map(int, os.environ.get("GUIDED_TRIALS", "0:2000").split(":"))
    found = [compare(seed) for seed in range(first, stop)]
    assert found.count("compiled") > (stop - first) / 4
