"""What the model is trained to write is what its grammars accept, to the byte; and the card says what was measured."""

from __future__ import annotations

import itertools
import sys

import pytest

import guided
from tests import vocabularies
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "examples" / "train_nano"))

pytest.importorskip("torch")

from card import model_card
from constrained import grammar_of
from evaluate import SETS, examples


@pytest.fixture(scope="module")
def letters() -> guided.Vocabulary:
    return vocabularies.of_bytes()


def accepts(constraint: guided.Constraint, text: str) -> bool:
    state = constraint.start
    for byte in text.encode():
        state = constraint.advance(state, byte)
    return state != 0 and constraint.is_accepting(state)


@pytest.mark.parametrize("held_out", [False, True])
def test_the_sql_grammar_accepts_every_reference_statement(letters: guided.Vocabulary, held_out: bool):
    for example in itertools.islice(examples("sql", seed=21, held_out=held_out), 8):
        constraint = guided.compile(grammar_of(example), letters)
        assert accepts(constraint, example.answer), example.answer
        assert accepts(constraint, example.answer + ";")
        assert not accepts(constraint, example.answer + ";;")


@pytest.mark.parametrize("name", ["records", "familiar"])
def test_the_json_grammar_accepts_every_reference_record(letters: guided.Vocabulary, name: str):
    for example in itertools.islice(examples(name, seed=22), 12):
        constraint = guided.compile(grammar_of(example), letters)
        assert accepts(constraint, example.answer), example.answer
        assert not accepts(constraint, example.answer[:-1])


def test_the_card_holds_the_figures():
    config = {"num_hidden_layers": 6, "hidden_size": 256, "num_attention_heads": 8, "vocab_size": 2048}
    facts = {
        "tasks": 12345,
        "step": 678,
        "seconds": 99,
        "clock": 4620,
        "device": "cpu",
        "places": 9_100_000,
        "loss": 0.0421,
    }
    scores = {name: {"right": 0.753, "of": 200, "examples": 200} for name in SETS}
    card = model_card(config, 4_459_776, facts, scores, None)
    for figure in ("75.3 % of 200", "12,345", "678 steps", "77 minutes", "9.1 million", "0.0421", "4.5 million"):
        assert figure in card
    assert "not measured" in card
    assert "not measured" not in model_card(config, 4_459_776, facts, scores, scores)
