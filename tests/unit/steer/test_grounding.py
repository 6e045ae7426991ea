"""What a model said in reference texts: the formula by loops over numbers, and the space against a model asked alone."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import strategies as st

from guided.errors import GuidedError, VocabularyError
from guided.lm import Needs, TableModel, next_logits
from guided.steer import ContextAdaptive, ReferenceSpace, Stack
from guided.steer.formulas.grounding import context_adaptive
from tests.tolerances import SUMS
from tests.unit.steer.formulas.formula_twin import close, given, logs, naive_sum, rows, same
from tests.unit.steer.steering_twin import BASE, OTHER

TEXTS = [(1, 2, 3, 1, 4), (0, 0, 2)]


@given(rows(3), st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=2), st.integers(1, 3))
def test_the_formula(three, similar, top_n):
    logits, *others = three
    for row, *remembered in zip(*(part.tolist() for part in three)):
        near = sorted(zip((max(0.0, each) for each in similar), remembered), key=lambda pair: -pair[0])[:top_n]
        if similar[0] == similar[1] and top_n == 1:
            continue  # which of two equals is taken nobody says
        total, amount = sum(each for each, _ in near), 0.75 * near[0][0]
        terms = [(1 - amount, logs(row))]
        terms += [(amount * each / total, logs(other)) for each, other in near if total]
        found = context_adaptive(
            torch.tensor([row]), torch.tensor([similar]), torch.tensor([logs(other) for other in remembered]),
            weight=0.75, top_n=top_n,
        )  # fmt: skip
        close(found, [naive_sum(terms)])
    same(context_adaptive(logits, torch.ones(len(logits), 1), others[0][:1], weight=0.0, top_n=1), logits)


def contexts():
    """The contexts of the texts, one by one: the state and what comes next."""
    for text in TEXTS:
        for end in range(1, len(text)):
            scores = BASE.start([text[:end]], Needs(hidden=True)).last
            yield scores.hidden[0].tolist(), torch.log_softmax(scores.logits[0], -1).tolist()


def cosine(one, two, mean):
    one, two = ([a - m for a, m in zip(each, mean)] for each in (one, two))
    return sum(a * b for a, b in zip(one, two)) / math.sqrt(sum(a * a for a in one) * sum(b * b for b in two))


def test_a_steered_model_reads_the_likest_contexts():
    space = ReferenceSpace.of(BASE, TEXTS)
    known = list(contexts())
    assert len(space) == len(known) == 6
    mean = [sum(column) / len(known) for column in zip(*(state for state, _ in known))]
    prompts = [(2, 2), (1, 2, 3), (4, 0, 1, 1)]
    found = next_logits(Stack([ContextAdaptive(space, 0.6, 2)]).over(BASE), prompts)
    for row, prompt in enumerate(prompts):
        scores = BASE.start([prompt], Needs(hidden=True)).last
        likest = sorted(
            ((max(0.0, cosine(scores.hidden[0].tolist(), state, mean)), said) for state, said in known),
            key=lambda pair: -pair[0],
        )[:2]
        total, amount = sum(each for each, _ in likest), 0.6 * likest[0][0]
        own = torch.log_softmax(scores.logits[0], -1).tolist()
        wanted = [(1 - amount) * a for a in own]
        for each, said in likest:
            wanted = [a + amount * each / total * b if total else a for a, b in zip(wanted, said)]
        torch.testing.assert_close(
            torch.softmax(found[row], -1), torch.softmax(torch.tensor(wanted, dtype=torch.float64), -1),
            atol=SUMS, rtol=0,
        )  # fmt: skip


def test_a_context_of_the_space_is_nearest_to_itself():
    space = ReferenceSpace.of(BASE, TEXTS, prompt_lengths=[2, 1])
    assert len(space) == 5
    state = BASE.start([(1, 2, 3)], Needs(hidden=True)).last.hidden
    assert int(space.similarities(state).argmax()) == 1
    assert float(space.similarities(state).max()) == pytest.approx(1.0)


def test_what_is_wrong_is_said():
    space = ReferenceSpace.of(BASE, TEXTS)
    for what, said in (
        (lambda: ReferenceSpace.of(BASE, []), "no reference texts"),
        (lambda: ReferenceSpace.of(BASE, [(1,)]), "a text of 1 tokens"),
        (lambda: ContextAdaptive(space, 1.5), "weight=1.5"),
    ):
        with pytest.raises(GuidedError, match=said):
            what()
    narrow = TableModel.random(0, width=4)
    with pytest.raises(VocabularyError, match="scores of 6 ids, the model of 4"):
        Stack([ContextAdaptive(space)]).over(narrow)
    assert next_logits(Stack([ContextAdaptive(space)]).over(OTHER), [(1,)]).shape == (1, 6)
