"""`step_rows` against one step and one mask at a time: schemas, patterns, budgets, known and new states, other threads."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

import guided
from guided.constraint import stepping
from guided.constraint.constraint import Constraint
from guided.constraint.effects.shared_rows import with_address
from tests.twin.slow_constraint import SlowConstraint

VOCABULARY = guided.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b'{"', b'": ', b"ab", b'", "', b"12", b"]}", b"yes", None, None],
    eos_ids=[263],
)
SCHEMA = {
    "type": "object",
    "properties": {"ab": {"type": "string", "maxLength": 3}, "n": {"type": "array", "items": {"enum": [1, 12, "a"]}}},
    "required": ["ab"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "additionalProperties": {"type": "boolean"}}  # Names must not repeat: another machine.


def step_rows(*asked):
    return stepping.step_rows(*asked, [with_address(np.zeros(VOCABULARY.n_words, np.uint32)) for _ in asked[0]])


def constraints():
    lexed = 'start: ("ab" | NAME)+\nNAME: /[a-z]{3}/\n%ignore " "'
    grammars = (
        guided.json_schema(SCHEMA),
        guided.regex("(yes|[0-9]{2,4}){1,9}"),
        guided.lark(lexed),
        guided.json_schema(OPEN),
    )
    return [Constraint(grammar, VOCABULARY) for grammar in grammars]


def ids(row):
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def allowed(constraint, state, budget):
    """The ids of a mask."""
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    if budget is None:
        constraint.fill_mask(state, row)
    else:
        constraint.fill_budget_mask(state, row, budget)
    return ids(row)


@pytest.mark.parametrize("seed", range(4))
def test_steps_are_those_of_advance_and_their_masks_too(seed):
    rng = random.Random(seed)
    owners, twins = constraints(), constraints()
    # Of each text which constraint, its state in either, and the tokens that are left.
    texts = []
    for _ in range(24):
        which = rng.choice([0, 0, 1, 1, 2, 3])
        texts.append([which, owners[which].start, twins[which].start, rng.choice([None, rng.randrange(30, 90)])])
    made = refused = 0
    for _ in range(14):
        tokens = [
            rng.choice([5, 200, 262] if budget is None and rng.random() < 0.1 else allowed(twins[which], twin, budget))
            for which, _, twin, budget in texts
        ]
        left = [None if budget is None else budget - 1 for *_, budget in texts]
        found = step_rows([owners[text[0]] for text in texts], [text[1] for text in texts], tokens, left)
        for text, token, budget, step in zip(texts, tokens, left, found, strict=True):
            which, state, twin, _ = text
            after = twins[which].advance(twin, token)
            wanted = allowed(twins[which], after, budget) if after else None
            if step is None:
                assert bool(now := owners[which].advance(state, token)) == bool(after)
                assert not after or allowed(owners[which], now, budget) == wanted
                refused += 1
            else:
                assert ids(step[1][1]) == wanted and step[0] == owners[which].advance(state, token)
                made += 1
            text[1:] = owners[which].advance(state, token), after, budget
        texts = [text for text in texts if text[2] > 1]
    assert made > 50 and refused > 9


def test_what_takes_long_is_left_to_the_caller(monkeypatch):
    constraint, twin, token = constraints()[1], constraints()[1], ord("1")
    monkeypatch.setattr(stepping, "MOMENT", 0)
    assert step_rows([constraint], [constraint.start], [token], [None]) == [None]
    after = constraint.advance(constraint.start, token)
    assert after and allowed(constraint, after, None) == allowed(twin, twin.advance(twin.start, token), None)
    monkeypatch.undo()
    assert step_rows([constraints()[1]], [constraint.start], [token], [None]) != [None]


def test_what_another_thread_works_in_is_left_to_the_caller():
    constraint = constraints()[1]
    held, done = threading.Event(), threading.Event()

    def hold():
        with constraint._machine.lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    asked = [constraint], [constraint.start], [ord("1")], [None]
    assert step_rows(*asked) == [None]
    done.set()
    thread.join()
    assert step_rows(*asked)[0] is not None


def test_other_constraints_and_the_ends_of_texts_are_left_to_the_caller():
    slow = SlowConstraint(guided.regex("ab*"), VOCABULARY)
    constraint = Constraint(guided.regex("ab*"), VOCABULARY)
    after = constraint.advance(constraint.start, ord("a"))
    ends = [(slow, slow.start, 97), (constraint, after, 263), (constraint, constraint.end, 263), (constraint, 0, 65)]
    assert step_rows(*map(list, zip(*ends, strict=True)), [None] * 4) == [None] * 4


def test_a_mask_is_kept_when_its_state_comes_again():
    constraint = constraints()[1]
    asked = [constraint], [constraint.start], [ord("1")], [None]
    first, second, third = (step_rows(*asked)[0] for _ in range(3))
    assert first[0] == second[0] == third[0] and (first[1][1] == third[1][1]).all()
    assert constraint.remembered_row(third[0]) is third[1]
