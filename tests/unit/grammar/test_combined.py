"""`guided.sequence`, `either`, `repeat`, `optional`, `free_text`: languages against `re`, keys, contracts, refusals."""

from __future__ import annotations

import pickle
import random
import re
from typing import Any, Literal

import pytest

import guided
from guided.errors import GrammarError, GuidedError, UnsatisfiableError, UnsupportedError
from guided.testing import check_constraint
from tests import vocabularies

VOCABULARY = vocabularies.of_bytes()
DIGITS, LETTERS = guided.regex("[0-9]+"), guided.regex("[ab]*")
CASES: dict[str, tuple[guided.Grammar, str]] = {
    "sequence": (guided.sequence("<", DIGITS, ";", LETTERS), "<[0-9]+;[ab]*"),
    "nothing": (guided.sequence(), ""),
    "one": (guided.sequence(DIGITS), "[0-9]+"),
    "either": (guided.either("ab", DIGITS, guided.sequence(LETTERS, "<")), "ab|[0-9]+|[ab]*<"),
    "optional": (guided.optional(DIGITS), "(?:[0-9]+)?"),
    "repeat": (guided.repeat("ab"), "(?:ab)*"),
    "repeat, separated": (guided.repeat(DIGITS, 1, 3, separator=guided.choice([";", "<"])), "[0-9]+(?:[;<][0-9]+){0,2}"),
    "repeat what may be nothing": (guided.repeat(LETTERS, 2, 4, separator=";"), "[ab]*(?:;[ab]*){1,3}"),
    "repeat never": (guided.repeat(DIGITS, 0, 0), ""),
    "free text": (guided.free_text(excludes=["ab", "ab<", "b<"]), r"(?:(?!ab|b<)[\s\S])*"),
    "little free text": (guided.free_text(excludes=["<"], max_chars=3), "[^<]{0,3}"),
    "free text between": (
        guided.sequence(guided.free_text(excludes=["<"]), "<", DIGITS, guided.free_text()), r"[^<]*<[0-9]+[\s\S]*"
    ),
    "in each other": (
        guided.repeat(guided.either(guided.sequence("<", guided.optional(DIGITS), ">"), "ab"), 1), "(?:<[0-9]*>|ab)+"
    ),
}  # fmt: skip
PIECES = ["<1;", "<", ">", ";", "1", "23", "a", "b", "ab", "é", "\n"]


@pytest.mark.parametrize("name", CASES)
def test_language(name: str) -> None:
    grammar, pattern = CASES[name]
    constraint = guided.compile(grammar, VOCABULARY)
    seed = random.Random(name)
    oracle = re.compile(pattern)
    accepted = 0
    for _ in range(400):
        text = "".join(seed.choices(PIECES, k=seed.randrange(seed.choice((3, 7)))))
        state = constraint.advance_bytes(constraint.start, text.encode())
        found = bool(state) and constraint.is_accepting(state)
        assert found == bool(oracle.fullmatch(text)), text
        accepted += found
    assert accepted


@pytest.mark.parametrize("name", ["repeat, separated", "free text between", "in each other"])
def test_contracts(name: str) -> None:
    check_constraint(guided.compile(CASES[name][0], VOCABULARY), walks=3, length=10, full_states=4, threads=0)


def test_types_and_schemas_are_parts() -> None:
    grammar = guided.sequence("a: ", Literal["x", "y"], " b: ", {"type": "integer"})
    constraint = guided.compile(grammar, VOCABULARY)
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, b'a: "x" b: 3'))


def test_keys_and_pickles() -> None:
    keys = set()
    for grammar, _ in CASES.values():
        assert grammar.key is not None
        assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
        keys.add(grammar.key)
    assert len(keys) == len(CASES)
    assert guided.sequence("a", DIGITS).key != guided.sequence(DIGITS, "a").key
    assert guided.either("a", DIGITS).key != guided.sequence("a", DIGITS).key
    assert guided.repeat(DIGITS, 1).key != guided.repeat(DIGITS, 0, 1).key


def test_special_tokens_are_parts() -> None:
    assert guided.sequence("a", guided.special_token("<b>")).special_tokens == ("<b>",)


REFUSED: list[tuple[Any, type[GuidedError]]] = [
    (lambda: guided.sequence("a\ud800"), GrammarError),
    (lambda: guided.sequence(guided.lark('start: "a"')), UnsupportedError),
    (lambda: guided.either(), UnsatisfiableError),
    (lambda: guided.repeat("a", -1), GrammarError),
    (lambda: guided.repeat("a", 3, 2), GrammarError),
    (lambda: guided.free_text(excludes="ab"), GrammarError),
    (lambda: guided.free_text(excludes=[""]), GrammarError),
    (lambda: guided.free_text(excludes=["\udfff"]), GrammarError),
    (lambda: guided.free_text(max_chars=-1), GrammarError),
    (lambda: guided.tags([guided.Tag("a", None, {"b", ""})]), GrammarError),
    (lambda: guided.tags([guided.Tag("a", None, {"b", "ab"})]), GrammarError),
    (lambda: guided.tags([guided.Tag("a", DIGITS, set())]), GrammarError),
    (lambda: guided.tags([guided.Tag("ab", DIGITS)], excludes=["b"]), GrammarError),
    (lambda: guided.tags([guided.Tag("ab", DIGITS)], excludes=["xab"]), GrammarError),
    (lambda: guided.tags([guided.Tag("ab", DIGITS)], excludes="x"), GrammarError),
]


@pytest.mark.parametrize(("make", "kind"), REFUSED)
def test_refused(make: Any, kind: type[GuidedError]) -> None:
    with pytest.raises(kind):
        make()


def test_what_is_no_grammar() -> None:
    with pytest.raises(TypeError):
        guided.sequence(3)  # type: ignore[arg-type]
