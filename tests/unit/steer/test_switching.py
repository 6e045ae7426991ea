"""Choosing between models token by token: formulas by loops over numbers, and the law of mixtures by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from guided.errors import GuidedError
from guided.lm import Likelihoods, Needs, TableModel, next_logits
from guided.steer import (
    FUDGE,
    Deferral,
    DomainMixture,
    Nudging,
    Product,
    RewardError,
    Stack,
    TextReward,
    best_of_blocks,
    train_deferral,
)
from guided.steer.formulas.experts import domain_mixture, nudged, routed
from guided.testing import check_language_model
from tests.amounts import each
from tests.tolerances import SUMS
from tests.unit.steer.formulas.formula_twin import INF, close, given, log, rows, same, softmax
from tests.unit.steer.steering_twin import AMATEUR, BASE, OTHER, WIDTH, text_of


def within(row, changed):
    """Without what was excluded before; the row itself where nothing is left."""
    kept = [each if mine > -INF else 0.0 for mine, each in zip(row, changed)]
    return [each / sum(kept) for each in kept] if sum(kept) else softmax(row)


@given(rows(), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_nudged(pair, threshold):
    logits, other = pair
    wanted = [
        softmax(row) if max(softmax(row)) >= threshold else within(row, softmax(theirs))
        for row, theirs in zip(logits.tolist(), other.tolist())
        if not math.isclose(max(softmax(row)), threshold, abs_tol=SUMS)
    ]
    keep = [not math.isclose(max(softmax(row)), threshold, abs_tol=SUMS) for row in logits.tolist()]
    close(nudged(logits, other, threshold=threshold)[keep], wanted)
    same(nudged(logits, other, threshold=0.0), logits)


@given(rows(), st.sampled_from([None, 0.0, 0.3, 1.0]), st.floats(-3, 3))
def test_routed(pair, threshold, odds):
    logits, other = pair
    gate = 1 / (1 + math.exp(-odds))
    wanted = []
    for row, theirs in zip(logits.tolist(), other.tolist()):
        if threshold is None:
            both = [(1 - gate) * a + gate * b for a, b in zip(softmax(row), softmax(theirs))]
            wanted.append(within(row, both))
        else:
            wanted.append(within(row, softmax(theirs)) if gate > threshold else softmax(row))
    close(routed(logits, other, torch.full((len(logits),), odds), threshold=threshold), wanted)


@given(rows(3), st.lists(st.sampled_from([-INF, -30.0, -1.0, 0.0]), min_size=3, max_size=3))
def test_domain_mixture(three, log_weights):
    logits, *others = three
    total = sum(math.exp(weight) for weight in log_weights)
    column = torch.tensor([log_weights] * len(logits), dtype=torch.float64)
    wanted = []
    for place in zip(*(part.tolist() for part in three)):
        rows_ = [softmax(row) for row in place]
        share = [math.exp(weight) / total if total else float(not n) for n, weight in enumerate(log_weights)]
        wanted.append(within(place[0], [sum(w * row[t] for w, row in zip(share, rows_)) for t in range(len(place[0]))]))
    close(domain_mixture(logits, others, column), wanted)


def test_a_model_with_its_likelihood_is_a_model():
    check_language_model(Likelihoods(BASE), needs=[Needs(hidden=True), Needs(hidden=True, layers=(1,)), Needs()])


def chance(model, text, start=1):
    """The log-probability of a text behind its first tokens, asked for one by one."""
    found = 0.0
    for at in range(start, len(text)):
        found += float(torch.log_softmax(next_logits(model, [text[:at]])[0], -1)[text[at]])
    return found


def test_the_likelihood_is_the_product_of_what_came():
    sequences = Likelihoods(BASE).start([(1, 2, 0), (3,), (2, 2)], Needs(hidden=True))
    sequences.extend([(1, 4), (0,), ()])
    sequences.select([1, 0, 0, 2])
    sequences.extend([(), (3,), (2, 2), (1,)])
    sequences.crop([2, 6, 6, 3])
    sequences.join([(0, 4, 4)])
    for row in range(5):
        wanted = chance(BASE, sequences.tokens(row))
        assert float(sequences.last.hidden[row, 0]) == pytest.approx(wanted, abs=SUMS)


PRIORS = [(1.0, 1.0, 1.0), (0.0, 0.3, 0.7), (0.2, 0.0, 0.8), (1.0, 0.0, 0.0)]


@pytest.mark.parametrize("prior", each(PRIORS, 2))
def test_the_law_is_the_mixture_of_laws(prior):
    """Weighing by the posterior token by token is the mixture of whole texts, behind the first token."""
    model = Stack([DomainMixture((AMATEUR, OTHER), prior)]).over(BASE)
    share = [each / sum(prior) for each in prior]
    for text in itertools.product(range(0, WIDTH, 2), repeat=3):
        whole = (1, *text)
        wanted = sum(
            weight * math.exp(chance(each, whole)) for weight, each in zip(share, (BASE, AMATEUR, OTHER)) if weight
        )
        assert chance(model, whole) == pytest.approx(math.log(wanted), abs=SUMS)


def test_the_posterior_is_bayes_over_the_prompt():
    """A prompt that one model cannot have written is answered by the other."""
    never = TableModel(lambda tokens: [log(0.5), log(0.5), -INF], width=3, eos_ids=[2])
    often = TableModel(lambda tokens: np.log([0.1, 0.2, 0.7]), width=3, eos_ids=[2])
    model = Stack([DomainMixture((often,), (1.0, 1.0))]).over(never)
    assert softmax(next_logits(model, [(0, 2)])[0].tolist()) == pytest.approx([1 / 3, 2 / 3, 0.0])
    found = softmax(next_logits(model, [(0, 1)])[0].tolist())
    weight = 0.5 / (0.5 + 0.2)
    # What the steered model excludes stays out, whatever the other says.
    wanted = [weight * 0.5 + (1 - weight) * 0.1, weight * 0.5 + (1 - weight) * 0.2]
    assert found == pytest.approx([each / sum(wanted) for each in wanted] + [0.0])


def test_a_router_is_learnt_from_what_both_models_say():
    """Of two models each knows one kind of context: the gate tells them apart, and texts become likelier."""
    rng = np.random.default_rng(0)
    low = TableModel(
        lambda tokens: np.log([0.45, 0.45, 0.05, 0.05]), width=4, eos_ids=[3],
        hidden=lambda tokens: [float(tokens[-1] < 2) if tokens else 0.0, 1.0],
    )  # fmt: skip
    high = TableModel(lambda tokens: np.log([0.05, 0.05, 0.45, 0.45]), width=4, eos_ids=[3])
    # After a low token comes a high one, and the other way round.
    texts = []
    for _ in range(30):
        text = [int(rng.integers(4))]
        for _ in range(5):
            text.append(int(rng.integers(2)) + (2 if text[-1] < 2 else 0))
        texts.append(text)
    gate = train_deferral(low, high, texts, steps=300, learning_rate=0.1)
    assert torch.equal(gate.head.weight, train_deferral(low, high, texts, steps=300, learning_rate=0.1).head.weight)
    odds = gate(torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
    assert odds[0] > 2 and odds[1] < -2
    soft = Stack([Deferral(high, gate, threshold=None)]).over(low)
    assert sum(chance(soft, text) for text in texts) > sum(chance(low, text) for text in texts) + 50
    hard = Stack([Deferral(high, gate)]).over(low)
    assert int(next_logits(hard, [(0,)])[0].argmax()) >= 2 > int(next_logits(hard, [(3,)])[0].argmax())


def test_what_is_wrong_is_said():
    for what, said in (
        (lambda: DomainMixture((AMATEUR,), (0.0, 0.0)), "prior="),
        (lambda: DomainMixture((AMATEUR,), (1.0,)), "prior="),
        (lambda: next_logits(Stack([Deferral(AMATEUR, lambda hidden: hidden)]).over(BASE), [(1,)]), "shape"),
        (lambda: next_logits(Stack([Deferral(AMATEUR, lambda hidden: 1 / 0)]).over(BASE), [(1,)]), "ZeroDivisionError"),
        (lambda: train_deferral(BASE, AMATEUR, [(1,)]), "text 0 has 1 tokens"),
        (lambda: train_deferral(BASE, AMATEUR, []), "0 texts"),
        (lambda: Nudging(AMATEUR, 1.5), "threshold=1.5"),
    ):
        with pytest.raises((GuidedError, RewardError), match=said):
            what()


# --- methods that others are under another name -----------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_genarm_is_a_product(beta):
    """GenARM: ``log p + (1 / beta) log p_r``, arXiv 2410.08193; of several objectives the sum over all."""
    model = Stack([Product((AMATEUR, OTHER), (1.0, 1 / beta, 0.25 / beta))]).over(BASE)
    for prompt in [(1, 2), (0,), (3, 3, 4)]:
        rows_ = [torch.log_softmax(next_logits(each, [prompt])[0], -1).tolist() for each in (BASE, AMATEUR, OTHER)]
        wanted = softmax([a + b / beta + 0.25 * c / beta for a, b, c in zip(*rows_)])
        assert softmax(next_logits(model, [prompt])[0].tolist()) == pytest.approx(wanted, abs=SUMS)


def test_grounded_decoding_is_fudge_with_affordances():
    """Grounded decoding: ``p(w) p_G(w | s)``, arXiv 2303.00855; here of actions that are more or less possible."""
    afford = {"aa": 0.9, "ab": 0.1, "ba": 0.5, "bcf": 0.0}

    def possible(texts):
        best = [max((value for action, value in afford.items() if action.startswith(text)), default=0.0)
                for text in texts]  # fmt: skip
        return [log(value) for value in best]

    model = Stack([FUDGE(TextReward(possible, text_of, prompt=False))]).over(BASE)
    for said in [(), (0,), (1,)]:
        prompt = (3, 2)
        sequences = model.start([prompt])
        if said:
            sequences.extend([said])
        plain = softmax(next_logits(BASE, [(*prompt, *said)])[0].tolist())
        worth = [math.exp(possible([text_of((*said, token))])[0]) for token in range(WIDTH)]
        wanted = [p * value for p, value in zip(plain, worth)]
        found = softmax(sequences.last.logits[0].tolist())
        assert found == pytest.approx([each / sum(wanted) for each in wanted], abs=SUMS)


# --- rewards of steps -------------------------------------------------------------------------------------------------


def test_blocks_end_where_steps_end():
    """A naive loop with the same draws: each candidate to the end of its step, the best one kept."""

    def worth(texts):
        return [float(sum(text) % 7) for text in texts]

    def step_ends(block):
        return block[-1] == 2

    for seed in range(12):
        result = best_of_blocks(
            BASE, (1,), worth, np.random.default_rng(seed), n_blocks=3, block_tokens=4, max_new_tokens=9, unit=step_ends
        )
        rng, text = np.random.default_rng(seed), [1]
        while len(text) < 10 and text[-1] not in BASE.eos_ids:
            blocks = [[], [], []]
            for _ in range(min(4, 10 - len(text))):
                for block in blocks:
                    if block and (block[-1] == 2 or block[-1] in BASE.eos_ids):
                        continue
                    p = torch.softmax(next_logits(BASE, [[*text, *block]])[0], -1).numpy()
                    block.append(int(np.searchsorted(np.cumsum(p), rng.random() * p.sum(), side="right")))
            text += max(blocks, key=lambda block: worth([[*text, *block]])[0])
        assert result.tokens == tuple(text[1:])
        assert result.value == worth([text])[0]
