"""What is no function of logits: entropy adaptive decoding, best of blocks, DeAL, and the prefix scorer's trainer."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from guided.errors import GuidedError, UnsupportedError, VocabularyError
from guided.lm import Needs, TableModel, Tree, next_logits
from guided.steer import ControlledDecoding, ModelReward, RewardError, Stack, TextReward
from guided.steer.adaptive import EntropyAdaptive
from guided.steer.blocks import best_of_blocks
from guided.steer.lookahead import deal
from guided.steer.rewards.scorer import Example, Target, train_scorer
from guided.testing import check_language_model
from tests.unit.steer.steering_twin import AMATEUR, BASE, WIDTH, agree, random_model, text_of

# --- entropy adaptive decoding ---------------------------------------------------------------------------------------


def entropy(p):
    return -sum(value * math.log2(value) for value in p if value > 0)


def naive_adaptive(small, large, prompt, tokens, threshold, window, least):
    """Which model scores after each token, and the last distribution, step by step from the prompt's end."""
    current, since, entropies, choices = small, 0, [], []
    for length in range(len(tokens) + 1):
        if length:
            since += 1
            mean = sum(entropies[-window:]) / len(entropies[-window:])
            wanted = large if mean > threshold else small
            if since >= least and wanted is not current:
                current, since = wanted, 0
        logits = next_logits(current, [prompt + tokens[:length]])[0]
        entropies.append(entropy(torch.softmax(logits, -1).tolist()))
        choices.append(current is large)
    return choices, logits


@settings(max_examples=25)
@given(st.data())
def test_switching_like_the_naive_loop_whatever_happens_to_the_rows(data):
    threshold = data.draw(st.sampled_from([0.5, 1.5, 1.8, 2.0]))
    window, least = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 3))
    model = EntropyAdaptive(AMATEUR, threshold, window, least).over(BASE)
    tokens = st.integers(0, WIDTH - 1)
    rows = [(tuple(data.draw(st.lists(tokens, min_size=1, max_size=3))), ()) for _ in range(2)]
    sequences = model.start([prompt for prompt, _ in rows])
    for _ in range(data.draw(st.integers(1, 4))):
        action = data.draw(st.sampled_from(["extend", "select", "crop", "join"]))
        if action == "extend":
            added = [tuple(data.draw(st.lists(tokens, max_size=4))) for _ in rows]
            answers = sequences.extend(added)
            for (prompt, before), new, scores in zip(rows, added, answers):
                assert len(scores) == len(new)
                for n in range(len(new)):
                    _, wanted = naive_adaptive(AMATEUR, BASE, prompt, before + new[: n + 1], threshold, window, least)
                    agree(scores.logits[n], wanted)
            rows = [(prompt, before + new) for (prompt, before), new in zip(rows, added)]
        elif action == "select":
            chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=3))
            sequences.select(chosen)
            rows = [rows[row] for row in chosen]
        elif action == "crop":
            kept = [data.draw(st.integers(0, len(text))) for _, text in rows]
            sequences.crop([len(prompt) + length for (prompt, _), length in zip(rows, kept)])
            rows = [(prompt, text[:length]) for (prompt, text), length in zip(rows, kept)]
        else:
            sequences.join([(1, 2)])
            rows.append(((1, 2), ()))
    last = sequences.last.logits
    for row, (prompt, text) in enumerate(rows):
        choices, wanted = naive_adaptive(AMATEUR, BASE, prompt, text, threshold, window, least)
        assert sequences.used_large(row) == choices
        assert sequences.tokens(row) == prompt + text
        agree(last[row], wanted)


def test_the_contract_of_language_models(monkeypatch):
    # Two models read each prompt, and what is computed is tested below.
    monkeypatch.setattr("guided.testing.language_model.check_sharing", lambda model, prompts: None)
    check_language_model(EntropyAdaptive(AMATEUR, 1.7).over(BASE), rows=4, length=9)


def test_thresholds_without_a_choice():
    text = (1, 2, 3, 4, 0, 1)
    for threshold, expected in ((math.inf, [False] * 7), (-1.0, [False] * 3 + [True] * 4)):
        sequences = EntropyAdaptive(AMATEUR, threshold, least=3).over(BASE).start([(1,)])
        sequences.extend([text])
        assert sequences.used_large(0) == expected


def test_the_model_that_is_not_asked_does_not_run():
    small, large = random_model(21), random_model(22)
    sequences = EntropyAdaptive(small, math.inf).over(large).start([(1,)])
    before = large.calls.positions
    sequences.extend([(1, 2, 3, 4)])
    assert large.calls.positions == before
    sequences = EntropyAdaptive(small, -1.0, least=2).over(large).start([(1,)])
    before = small.calls.positions, large.calls.positions
    sequences.extend([(1, 2, 3, 4)])
    assert small.calls.positions - before[0] == 1
    assert large.calls.positions - before[1] == 4, "it reads what the small model wrote once it is asked"


def test_adaptive_decoding_says_what_it_is():
    model = EntropyAdaptive(AMATEUR, 1.0)
    assert model.lossless is False
    with pytest.raises(GuidedError, match="not lossless"):
        EntropyAdaptive(AMATEUR, 1.0, lossless=True)
    with pytest.raises(VocabularyError):
        model.over(TableModel.random(0, width=WIDTH, eos_ids=[0]))
    pair = model.over(BASE)
    with pytest.raises(UnsupportedError):
        pair.start([(1,)]).extend_tree([Tree((1,), (-1,))])
    with pytest.raises(UnsupportedError):
        pair.start([(1,)], Needs(hidden=True))
    with pytest.raises(GuidedError, match="window"):
        EntropyAdaptive(AMATEUR, 1.0, window=0)


# --- best of blocks --------------------------------------------------------------------------------------------------


def count_a(texts):
    return [float(sum(token == 0 for token in text)) for text in texts]


def test_one_candidate_is_plain_sampling():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    result = best_of_blocks(BASE, (1, 2), count_a, rng, n_blocks=1, block_tokens=3, max_new_tokens=10)
    text = [1, 2]
    while len(text) < 12 and (len(text) == 2 or text[-1] not in BASE.eos_ids):
        p = torch.softmax(next_logits(BASE, [text])[0], -1).numpy()
        text.append(int(np.searchsorted(np.cumsum(p), twin.random() * p.sum(), side="right")))
    assert result.tokens == tuple(text[2:])


def test_long_blocks_are_best_of_k():
    for seed in range(10):
        result = best_of_blocks(
            BASE, (1, 2), count_a, np.random.default_rng(seed), n_blocks=5, block_tokens=50, max_new_tokens=6
        )
        assert len(result.block_values) == 1 and len(result.block_values[0]) == 5
        assert result.value == max(result.block_values[0]) == count_a([(1, 2, *result.tokens)])[0]


def test_more_blocks_are_worth_more():
    means = [
        np.mean(
            [
                best_of_blocks(
                    BASE, (1,), count_a, np.random.default_rng(seed), n_blocks=n, block_tokens=2, max_new_tokens=8
                ).value
                for seed in range(60)
            ]
        )
        for n in (1, 8)
    ]
    assert means[1] > means[0] + 0.5


def test_texts_end_and_budgets_hold():
    seen = set()
    for seed in range(30):
        found = best_of_blocks(
            BASE, (1,), count_a, np.random.default_rng(seed), n_blocks=3, block_tokens=4, max_new_tokens=7
        ).tokens
        assert len(found) <= 7
        assert not any(token in BASE.eos_ids for token in found[:-1])
        seen.add(found[-1] in BASE.eos_ids)
    assert seen == {True, False}


def test_values_that_fail_are_named():
    with pytest.raises(RewardError, match="raised ValueError"):
        best_of_blocks(BASE, (1,), lambda texts: int("x"), np.random.default_rng(0))
    with pytest.raises(RewardError, match="shape"):
        best_of_blocks(BASE, (1,), lambda texts: [1.0], np.random.default_rng(0), n_blocks=2)
    with pytest.raises(GuidedError, match="n_blocks"):
        best_of_blocks(BASE, (1,), count_a, np.random.default_rng(0), n_blocks=0)


# --- DeAL ------------------------------------------------------------------------------------------------------------


def naive_deal(model, prompt, heuristic, n_beams, top_k, look_ahead, weight, steps):
    beams = [((), 0.0, 0.0)]
    over = lambda tokens: bool(tokens) and tokens[-1] in model.eos_ids  # noqa: E731
    for _ in range(steps):
        if all(over(tokens) for tokens, _, _ in beams):
            break
        pool = [beam for beam in beams if over(beam[0])]
        for tokens, total, _ in beams:
            if over(tokens):
                continue
            logprobs = torch.log_softmax(next_logits(model, [prompt + tokens])[0], -1)
            for token in logprobs.topk(top_k).indices.tolist():
                text = rolled = (*tokens, token)
                if weight:
                    for _ in range(look_ahead):
                        if over(rolled):
                            break
                        rolled = (*rolled, int(next_logits(model, [prompt + rolled])[0].argmax()))
                value = heuristic([prompt + rolled])[0] if weight else 0.0
                score = total + float(logprobs[token])
                pool.append((text, score, score + weight * value))
        beams = sorted(pool, key=lambda beam: -beam[2])[:n_beams]
    return beams


@pytest.mark.parametrize("weight", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("look_ahead", [0, 2])
def test_deal_against_a_naive_search(weight, look_ahead):
    ours = deal(BASE, (1, 2), count_a, n_beams=3, top_k=4, look_ahead=look_ahead, weight=weight, max_new_tokens=5)
    theirs = naive_deal(BASE, (1, 2), count_a, 3, 4, look_ahead, weight, 5)
    assert [beam.tokens for beam in ours] == [tokens for tokens, _, _ in theirs]
    np.testing.assert_allclose([beam.log_probability for beam in ours], [total for _, total, _ in theirs])
    np.testing.assert_allclose([beam.score for beam in ours], [score for _, _, score in theirs])


def test_deal_without_weight_is_beam_search_and_asks_nothing():
    def never(texts):
        raise AssertionError

    found = deal(BASE, (1,), never, n_beams=WIDTH**3, top_k=WIDTH, weight=0.0, max_new_tokens=3)
    every = {}
    for text in itertools.product(range(WIDTH), repeat=3):
        cut = next((n + 1 for n, token in enumerate(text) if token in BASE.eos_ids), 3)
        total = 0.0
        for n in range(cut):
            total += float(torch.log_softmax(next_logits(BASE, [(1, *text[:n])])[0], -1)[text[n]])
        every[text[:cut]] = total
    assert found[0].tokens == max(every, key=every.get)
    assert len(found) == len(every), "a beam that holds everything is the whole tree"


# --- prefix scorers --------------------------------------------------------------------------------------------------


def states(tokens):
    """One-hot of the last token and of how many tokens there are: a linear head is then a table."""
    row = np.zeros(4 * 5)
    row[4 * min(len(tokens) - 1, 4) + tokens[-1]] = 1.0
    return row


MARKOV = {0: [0.1, 0.2, 0.3, 0.4], 1: [0.25, 0.25, 0.25, 0.25], 2: [0.7, 0.1, 0.1, 0.1], 3: [0.0, 0.0, 1.0, 0.0]}


def chain():
    return TableModel(lambda tokens: np.log(np.maximum(MARKOV[tokens[-1]], 1e-300)), width=4, hidden=states)


@pytest.mark.parametrize("target", list(Target))
def test_a_scorer_learns_the_expected_reward(target):
    """Every text of four tokens, as often as the model writes it: the value after a prefix is its expected reward."""
    model = chain()
    reward = lambda text: float(text.count(0))  # noqa: E731
    examples, exact, mass = [], {}, {}
    for text in itertools.product(range(4), repeat=3):
        whole = (0, *text)
        p = round(150 * np.prod([MARKOV[a][b] for a, b in itertools.pairwise(whole)]))
        examples += [Example(whole, reward(whole))] * p
        for n in range(1, 5):
            exact[whole[:n]] = exact.get(whole[:n], 0.0) + p * reward(whole)
            mass[whole[:n]] = mass.get(whole[:n], 0.0) + p
    scorer = train_scorer(model, examples, target=target, steps=600, learning_rate=0.05)
    # The reward counts over the whole text, which a table of the last token cannot know; but at the start it is exact.
    start = scorer(torch.from_numpy(states((0,)))[None])
    # Where training ends is not a matter of rounding.
    assert float(start) == pytest.approx(exact[(0,)] / mass[(0,)], abs=0.03)
    assert not any(parameter.requires_grad for parameter in scorer.parameters())
    one, two = (train_scorer(model, examples[:5], target=target, steps=5) for _ in range(2))
    assert torch.equal(one.head.weight, two.head.weight)


def test_a_scorer_steers_towards_reward():
    model = chain()
    examples = []
    rng = np.random.default_rng(0)
    for _ in range(300):
        text = [0]
        for _ in range(3):
            text.append(int(rng.choice(4, p=MARKOV[text[-1]])))
        examples.append(Example(tuple(text), float(text[-1] == 0)))
    scorer = train_scorer(model, examples, width=8)

    def expected(steered):
        """The exact probability that the fourth token is 0."""
        total = 0.0
        for text in itertools.product(range(4), repeat=2):
            p = 1.0
            for n in range(3):
                row = torch.softmax(next_logits(steered, [(0, *text[:n])])[0], -1)
                p *= float(row[text[n]]) if n < 2 else float(row[0])
            total += p
        return total

    steered = Stack([ControlledDecoding(ModelReward(scorer, model), beta=4.0)]).over(model)
    assert expected(steered) > expected(model) + 0.2


def test_what_a_trainer_refuses():
    with pytest.raises(GuidedError, match="no examples"):
        train_scorer(chain(), [])
    with pytest.raises(GuidedError, match="example 0"):
        train_scorer(chain(), [Example((1, 2), 1.0, prompt_length=3)])
    with pytest.raises(UnsupportedError, match="hidden"):
        train_scorer(TableModel.random(0), [Example((1, 2), 1.0)])


def test_text_rewards_value_blocks():
    reward = TextReward(lambda texts: [float(text.count("a")) for text in texts], text_of, prompt=False)
    result = best_of_blocks(BASE, (0, 0, 0), reward, np.random.default_rng(0), n_blocks=4, max_new_tokens=5)
    assert result.value == text_of(result.tokens).count("a")
