"""`guided.choice`: finitely many texts."""

from __future__ import annotations

import pickle
import random

import pytest

from guided.errors import GrammarError, UnsatisfiableError
from guided.grammar.choice import choice
from guided.grammar.ir import Grammar
from guided.grammar.regular.decide import members
from guided.grammar.regular.derivative import matches
from guided.grammar.regular.expr import Expr


def language(grammar: Grammar) -> Expr:
    return grammar.rules[grammar.start].body.expr  # type: ignore[union-attr]


def test_exactly_the_options() -> None:
    options: list[str | bytes] = ["yes", "yellow", "no", "", "né", b"\xff\x00", "no"]
    found = members(language(choice(options)), 100)
    assert found is not None
    assert sorted(found) == sorted({option if isinstance(option, bytes) else option.encode() for option in options})


def test_ten_thousand_options() -> None:
    seed = random.Random(0)
    options = [f"{seed.choice('abc')}{seed.randrange(10**9)} é" for _ in range(10_000)]
    expr = language(choice(options))
    assert all(matches(expr, option.encode()) for option in options)
    known = set(options)
    for option in seed.sample(options, 500):
        for changed in (option[:-1], option + "x", option.replace("1", "2", 1)):
            assert matches(expr, changed.encode()) == (changed in known)


def test_options_as_deep_as_they_are_long() -> None:
    expr = language(choice(["a" * n + "b" for n in range(1500)]))
    assert matches(expr, b"a" * 1499 + b"b")
    assert not matches(expr, b"a" * 1500 + b"b")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], UnsatisfiableError),
        ([""], GrammarError),
        (["", b""], GrammarError),
        ("abc", GrammarError),
        (b"abc", GrammarError),
        (["a", 1], GrammarError),
        (["\ud800"], GrammarError),
    ],
)
def test_meaningless_choices(options: object, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        choice(options)  # type: ignore[arg-type]
    assert caught.value.remedy  # type: ignore[attr-defined]


def test_a_choice_survives_pickling_and_has_a_key_of_its_content() -> None:
    grammar = choice(["a", "b"])
    again = pickle.loads(pickle.dumps(grammar))
    assert language(again) is language(grammar)
    assert again.key == grammar.key == choice([b"a", "b"]).key
    assert len({choice(o).key for o in (["a", "b"], ["ab"], ["a"], ["b", "a", "c"])}) == 4


def test_the_label_names_the_options_and_stays_short() -> None:
    assert choice(["yes", "no"]).rules[0].name == "'yes' | 'no'"
    assert len(choice([f"option {n}" for n in range(1000)]).rules[0].name) < 120
