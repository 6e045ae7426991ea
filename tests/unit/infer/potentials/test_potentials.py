"""Potentials of every kind through their laws; adapters over text; products; and potentials that break the laws."""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import pytest

import guided
from guided.errors import GuidedError, VocabularyError
from guided.infer.errors import PotentialError
from guided.infer.potentials.anything import Anything
from guided.infer.potentials.potential import ConstraintPotential, Potential, Product, as_potential
from guided.infer.potentials.text_potentials import TextPredicate, TextScorer, UnitTest
from guided.testing import check_potential
from tests import vocabularies

# "é" is C3 A9: tokens can end inside of it.
TOKENS = [b"a", b"b", b"ab", b"\xc3", b"\xa9", b"\xc3\xa9", b"1", b" ", None, None, b"\xff"]
VOCABULARY = guided.Vocabulary.from_tokens(TOKENS, eos_ids=[8])
NAMED = guided.Vocabulary.from_tokens([b"a", b"b", None, None], eos_ids=[3], special_tokens={"<t>": 2})


def is_short(text):
    return len(text) <= 4


def constraint(pattern="(ab|é)*1?"):
    return guided.compile(guided.regex(pattern), VOCABULARY)


def potentials():
    words = TextPredicate(VOCABULARY, lambda text: is_short(text) and text.count("a") == text.count("b"), is_short)
    scorer = TextScorer(
        VOCABULARY,
        lambda texts: [len(text) / 3 for text in texts],
        lambda texts: [-0.1 * text.count("é") for text in texts],
        scale=2.0,
    )
    return {
        "anything": Anything(VOCABULARY),
        "constraint": ConstraintPotential(constraint()),
        "special tokens": ConstraintPotential(
            guided.compile(guided.lark('start: "a" <t> "b"*', special_tokens=True), NAMED)
        ),
        "predicate": words,
        "predicate of whole texts": TextPredicate(VOCABULARY, is_short),
        "scorer": scorer,
        "test": UnitTest(VOCABULARY, lambda text: 1 / (len(text) % 2), failing=-2.0),
        "constraint and constraint": as_potential(constraint()) * constraint("(ab){0,3}é*"),
        "constraint and scorer": as_potential(constraint()) * scorer,
        "three": scorer * words * constraint(),
    }


def test_laws():
    for potential in potentials().values():
        check_potential(potential, walks=12, length=8)


def test_prefixes_and_texts_of_a_constraint():
    potential = as_potential(constraint("ab|é"))
    assert potential.boolean
    assert potential.prefix([]) == potential.prefix([0]) == potential.prefix([3]) == 0.0
    assert potential.prefix([1]) == potential.complete([0]) == potential.complete([0, 1, 1]) == -math.inf
    assert potential.complete([0, 1]) == potential.complete([2]) == potential.complete([3, 4]) == 0.0
    weights = potential.logw_next([0])
    assert np.flatnonzero(weights == 0).tolist() == [1] and weights.size == VOCABULARY.size


def test_bytes_inside_a_character():
    seen = []
    potential = TextPredicate(VOCABULARY, lambda text: True, lambda text: seen.append(text) or True)
    assert potential.prefix([0, 3]) == 0.0 and seen == ["a"]
    assert potential.complete([0, 3]) == -math.inf  # the text would end inside a character
    assert potential.complete([0, 3, 4]) == 0.0
    assert potential.prefix([0, 4]) == potential.prefix([3, 0]) == potential.prefix([10]) == -math.inf
    assert not potential.usable[9] and potential.logw_next([])[9] == -math.inf


def test_equal_texts_are_asked_about_once_and_in_one_batch():
    batches = []

    def score(texts):
        batches.append(list(texts))
        return [float(len(text)) for text in texts]

    potential = TextScorer(VOCABULARY, score, score)
    states = [potential.state_of(tokens) for tokens in ([0, 1], [2], [0], [3])]
    assert potential.prefix_each(states) == [2.0, 2.0, 1.0, 0.0]
    assert batches == [["ab", "a", ""]]
    potential.logw_next([])
    assert len(batches) == 3  # one for the prefixes, without those known, and one for the end
    assert not set(batches[1]) & {"ab", "a", ""}
    assert batches[2] == [""]


def test_a_product_asks_later_factors_only_what_is_left():
    asked = []
    slow = TextPredicate(VOCABULARY, lambda text: True, lambda text: asked.append(text) or True)
    product = as_potential(constraint("ab1")) * slow
    assert np.flatnonzero(product.logw_next([]) > -math.inf).tolist() == [0, 2]
    assert set(asked) == {"", "a", "ab"}
    assert [type(factor) for factor in (product * Anything(VOCABULARY)).factors] == [
        ConstraintPotential,
        TextPredicate,
        Anything,
    ]
    assert product.boolean and not (product * TextScorer(VOCABULARY, lambda t: [0.0] * len(t))).boolean
    with pytest.raises(VocabularyError, match="different vocabularies"):
        Product(product, Anything(NAMED))
    with pytest.raises(ValueError):
        Product()


def test_unit_tests():
    def test(text):
        assert text == "ab"

    assert [UnitTest(VOCABULARY, test).complete(tokens) for tokens in ([2], [0])] == [0.0, -math.inf]
    assert UnitTest(VOCABULARY, test, failing=-1.0).complete([0]) == -1.0
    with pytest.raises(ZeroDivisionError):
        UnitTest(VOCABULARY, lambda text: 1 / 0, failures=AssertionError).complete([0])
    with pytest.raises(ValueError):
        UnitTest(VOCABULARY, test, failing=1.0)


def test_sql(tmp_path):
    pytest.importorskip("sqlalchemy")
    path = tmp_path / "pets.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE pet (name TEXT, age INTEGER)")
        database.execute("INSERT INTO pet VALUES ('Rex', 3)")
    database.close()
    from guided.infer.potentials.sql_potential import SqlDryRun

    letters = vocabularies.of_bytes()
    good = ["SELECT name FROM pet", "SELECT 1", "WITH x AS (SELECT age FROM pet) SELECT max(age) FROM x;", "VALUES (1)"]
    bad = [
        "", " ", "-- SELECT 1", "SELECT nam FROM pet", "SELECT name FROM pets", "SELECT", "QUERY PLAN SELECT name FROM pet",
        "SELECT 1; SELECT 2", "DELETE FROM pet", "DROP TABLE pet", "PRAGMA query_only = OFF", "ATTACH 'x' AS y",
        "SELECT load_extension('x')", "CREATE TABLE a (b)", "EXPLAIN SELECT nam FROM pet", "SELECT sum(1, 2) FROM pet", "a\0b",
    ]  # fmt: skip
    with SqlDryRun(letters, path) as potential:
        assert potential.boolean
        assert {text: potential.complete(text.encode()) for text in good} == dict.fromkeys(good, 0.0)
        assert {text: potential.complete(text.encode()) for text in bad} == dict.fromkeys(bad, -math.inf)
        assert potential.prefix(b"anything") == 0.0
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT * FROM pet").fetchall() == [("Rex", 3)]
    database.close()
    with SqlDryRun(letters, path, failing=-3.0) as soft:
        assert soft.complete(b"SELECT nam FROM pet") == -3.0 and not soft.boolean
    with pytest.raises(GuidedError, match="no such database"):
        SqlDryRun(letters, tmp_path / "none.db")


class Broken(Potential):
    """The weight of a tuple of tokens, by any function."""

    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])

    def __init__(self, prefix=lambda tokens: 0.0, complete=lambda tokens: 0.0, boolean=False):
        self.of_prefix, self.of_text, self._boolean = prefix, complete, boolean

    @property
    def boolean(self):
        return self._boolean

    def start(self):
        return ()

    def advance(self, state, token):
        return (*state, token)

    def prefix_at(self, state):
        return self.of_prefix(state)

    def complete_at(self, state):
        return self.of_text(state)


class WrongNext(Broken):
    def logw_next_at(self, state):
        return super().logw_next_at(state) + 0.5


class WrongStep(Broken):
    def step(self, state, token):
        return state, 0.0


class WrongBatch(Broken):
    def prefix_each(self, states):
        return [0.1] * len(states)


class WrongMask(Broken):
    def allowed_each(self, states):
        return np.zeros((len(states), 3), np.bool_)


class WrongPossible(Broken):
    def possible_at(self, state):
        return np.array([True, False, True])


BREACHES = {
    "possible": (WrongPossible(), "called impossible"),
    "nothing at all": (Broken(lambda t: -math.inf, lambda t: -math.inf), "empty prefix"),
    "text of a forbidden prefix": (Broken(lambda t: -math.inf if t[-1:] == (1,) else 0.0), "whose prefix is forbidden"),
    "prefix of a forbidden prefix": (
        Broken(lambda t: -math.inf if t[-1:] == (1,) else 0.0, lambda t: -math.inf if 1 in t else 0.0), "allowed again",
    ),
    "not boolean": (Broken(complete=lambda t: -1.0, boolean=True), "boolean"),
    "next": (WrongNext(), "add up|differ"),
    "step": (WrongStep(lambda t: -0.1 * len(t)), "differ|elsewhere"),
    "batch": (WrongBatch(), "differ"),
    "mask": (WrongMask(complete=lambda t: -1.0), "differ|add up"),
    "NaN": (Broken(complete=lambda t: math.nan if t else 0.0), "nan|NaN"),
    "plus infinity": (Broken(lambda t: math.inf if t else 0.0), "inf"),
    "change of mind": (Broken(complete=lambda t, seen=[0]: seen.append(0) or 0.001 * len(seen)), "depends|differ|add up"),
}  # fmt: skip


@pytest.mark.parametrize("name", BREACHES)
def test_breaches_are_found(name):
    potential, message = BREACHES[name]
    with pytest.raises((AssertionError, PotentialError), match=message):
        check_potential(potential, walks=20, length=6)
    check_potential(Broken(lambda t: 0.25 * len(t), lambda t: -1.0))


def test_wrong_numbers_of_answers():
    with pytest.raises(PotentialError, match="1 weights for 2 prefixes"):
        TextScorer(VOCABULARY, len, lambda texts: [0.0]).prefix_each([b"a", b"b"])
    with pytest.raises(PotentialError, match="nan"):
        TextScorer(VOCABULARY, lambda texts: [math.nan for _ in texts]).complete([0])
    with pytest.raises(ValueError, match="scale"):
        TextScorer(VOCABULARY, len, scale=math.inf)
