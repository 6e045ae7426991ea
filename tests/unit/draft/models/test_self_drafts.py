"""Drafts by a model's own layers, SpecDec++'s head, intersected vocabularies, judges and rewards: their parts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import guided
from guided.draft import (
    AcceptanceExamples,
    AcceptanceHead,
    Chain,
    Context,
    EarlyExit,
    Fixed,
    HeadStopped,
    Judge,
    Model,
    Part,
    Sublayer,
    acceptance_examples,
    fit_acceptance_head,
    fit_judge,
    intersected,
    reward_guided,
    search_skips,
    speculate,
)
from guided.draft.models.early_exit import tokens_per_layer
from guided.draft.models.skip_search import agreement
from guided.errors import GuidedError, UnsupportedError, VocabularyError
from guided.lm.table import TableModel
from guided.testing import check_language_model

WIDTH, END = 6, 5
TARGET = TableModel.random(1, width=WIDTH, eos_ids=[END], scale=3.0)


def mixed(model, other, share, seed=0):
    """A model that has the scores of one at a share of all prefixes, and else of the other."""

    def logprobs(tokens):
        chosen = np.random.default_rng([seed, *tokens]).random() < share
        return (model if chosen else other).logprobs(tokens)

    return TableModel(logprobs, width=WIDTH, eos_ids=[END])


NOISE = TableModel.random(2, width=WIDTH, eos_ids=[END], scale=3.0)


# --- layer skipping ---------------------------------------------------------------------------------------------------


@dataclass
class Skipping:
    """Every layer has a worth: the model without some agrees the less the more those are worth."""

    worth: tuple[float, ...]

    @property
    def sublayers(self):
        return tuple(Sublayer(block, part) for block in range(1, 1 + len(self.worth) // 2) for part in Part)

    def without(self, skipped):
        lost = sum(self.worth[self.sublayers.index(one)] for one in skipped)
        return mixed(TARGET, NOISE, 1.0 - lost)

    def first(self, blocks):
        raise NotImplementedError


def written(n=12, length=12):
    prompts = [[i % (WIDTH - 1), i % 3] for i in range(n)]
    found, _ = speculate(0, TARGET, prompts, [None] * n, max_tokens=length, greedy=True)
    return prompts, [list(text.tokens) for text in found]


def test_search_finds_the_layers_that_are_worth_least():
    model = Skipping((0.3, 0.02, 0.25, 0.03, 0.02, 0.3, 0.2, 0.04))
    prompts, texts = written()
    every = [frozenset(some) for some in itertools.combinations(model.sublayers, 4)]
    best = max(agreement(model.without(some), prompts, texts) for some in every)
    found = search_skips(0, model, prompts, texts, rounds=30, good=1.1)
    assert len(found.skipped) == 4 and found.tried == 30 < len(every)
    assert found.score == agreement(model.without(found.skipped), prompts, texts)
    assert found.score >= best - 0.05
    early = search_skips(0, model, prompts, texts, rounds=60, good=0.5)
    assert early.tried < 30 and early.score >= 0.5
    impatient = search_skips(0, model, prompts, texts, rounds=60, good=1.1, patience=3)
    assert impatient.tried < 60
    with pytest.raises(GuidedError, match="no set to search"):
        search_skips(0, model, prompts, texts, share=0.01)
    with pytest.raises(GuidedError, match="no set to search"):
        search_skips(0, Skipping(()), prompts, texts)


def test_agreement_is_the_share_of_greedy_tokens():
    prompts, texts = written()
    assert agreement(TARGET, prompts, texts) == 1.0
    counted = sum(
        int(NOISE.logprobs((*prompt, *text[:i])).argmax()) == token
        for prompt, text in zip(prompts, texts, strict=True)
        for i, token in enumerate(text)
    )
    assert agreement(NOISE, prompts, texts, batch=5) == pytest.approx(counted / sum(map(len, texts)))
    assert agreement(TARGET, [[1]], [[]]) == 0.0


# --- early exits ------------------------------------------------------------------------------------------------------


def exits(shares, blocks=4):
    """A target with exits that agree at these shares of all places, and a drafter with them."""
    own = {exit_: mixed(TARGET, NOISE, share, seed=exit_) for exit_, share in shares.items()}
    layers = [own[i].logprobs if i in own else NOISE.logprobs for i in range(blocks)]
    target = TableModel(TARGET.logprobs, width=WIDTH, eos_ids=[END], layers=layers)
    return target, own


@pytest.mark.parametrize("by_rule", [True, False])
def test_exits_are_judged_by_what_they_would_have_said(by_rule):
    target, own = exits({1: 0.3, 2: 0.95, 3: 0.97})
    drafter = EarlyExit(own, 4, by_rule=by_rule)
    speculate(
        0, target, [[i] for i in range(5)] * 8, [None] * 40, drafter, max_tokens=12, greedy=by_rule, policy=Fixed(8)
    )
    assert drafter.share(1) < 0.7 < drafter.share(2)
    chosen, length = drafter.choice()
    assert chosen != 1 or not by_rule
    value = {
        (e, n): tokens_per_layer(drafter.share(e), n, e, 4) for e in own for n in range(1, 9)
    }  # fmt: skip
    assert (chosen, length) == max(value, key=value.get) or max(value.values()) <= 1 / 4


def test_exits_that_know_nothing_are_not_used():
    target, own = exits({1: 0.0, 2: 0.0})
    drafter = EarlyExit(own, 4, by_rule=True, overhead=0.5)
    _, counts = speculate(
        0, target, [[i] for i in range(5)] * 6, [None] * 30, drafter, max_tokens=12, greedy=True, policy=Fixed(8)
    )
    assert drafter.choice()[1] == 0
    before = counts.drafted
    _, counts = speculate(0, target, [[1]], [None], drafter, max_tokens=8, greedy=True, policy=Fixed(8))
    assert counts.drafted == 0 < before


def test_tokens_per_layer():
    assert tokens_per_layer(1.0, 3, 1.0, 4.0) == pytest.approx(4 / 7)
    assert tokens_per_layer(0.0, 3, 1.0, 4.0) == pytest.approx(1 / 7)
    assert tokens_per_layer(0.5, 2, 2.0, 4.0) == pytest.approx((1 + 0.5 + 0.25) / 8)


def test_exits_are_checked():
    _, own = exits({1: 0.5})
    for bad, blocks in (({}, 4), (own, 1), ({0: NOISE}, 4)):
        with pytest.raises(GuidedError, match="no exits"):
            EarlyExit(bad, blocks)
    with pytest.raises(UnsupportedError):
        speculate(0, TARGET, [[1]], [None], EarlyExit(own, 4))  # a target without early layers


# --- SpecDec++ --------------------------------------------------------------------------------------------------------


def test_the_head_learns_which_tokens_are_refused_and_drafts_end_there(tmp_path):
    """Half of all states say that the draft is wrong there; after training drafts end at such places."""

    def wrong(tokens):
        return np.random.default_rng([7, *tokens]).random() < 0.35

    def hidden(tokens):
        return np.array([1.0 if wrong(tokens[:-1]) else -1.0, 0.3])  # after a token: whether it was wrong

    def logprobs(tokens):
        return NOISE.logprobs(tokens) if wrong(tokens) else TARGET.logprobs(tokens)

    draft = TableModel(logprobs, width=WIDTH, eos_ids=[END], hidden=hidden)
    prompts, texts = written(20)
    for greedy in (True, False):
        found = acceptance_examples(0, TARGET, draft, prompts, texts, greedy=greedy)
        assert found.hidden.shape == (found.accepted.numel(), 2) and found.accepted.numel() == sum(map(len, texts))
        right = found.accepted[found.hidden[:, 0] < 0]
        assert (right > 1 - 1e-6).all() and found.accepted.min() < 0.5
    head = AcceptanceHead(2)
    fit_acceptance_head(head, found, epochs=60, batch=16, rate=0.05)
    assert head.chance(torch.tensor([-1.0, 0.3])) > 0.9 > 0.5 > head.chance(torch.tensor([1.0, 0.3]))
    head.save(tmp_path / "head.safetensors")
    again = AcceptanceHead.load(tmp_path / "head.safetensors")
    # Files hold float16: a chance rounds by 0.004 at most.
    assert again.chance(torch.tensor([1.0, 0.3])) == pytest.approx(head.chance(torch.tensor([1.0, 0.3])), abs=0.01)

    drafter = HeadStopped(draft, again, threshold=0.3, least=1, most=8, by_rule=True)
    plain, _ = speculate(0, TARGET, prompts, [None] * 20, max_tokens=12, greedy=True)
    stopped, counts = speculate(0, TARGET, prompts, [None] * 20, drafter, max_tokens=12, greedy=True, policy=Fixed(8))
    always, longer = speculate(
        0,
        TARGET,
        prompts,
        [None] * 20,
        Model(draft, Chain(8), by_rule=True),
        max_tokens=12,
        greedy=True,
        policy=Fixed(8),
    )
    assert stopped == always == plain
    assert counts.passes <= 1.05 * longer.passes
    assert counts.drafted < 0.8 * longer.drafted
    with pytest.raises(GuidedError, match="no acceptance head"):
        AcceptanceHead.load(_other(tmp_path))


def _other(folder):
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, str(folder / "other.safetensors"))
    return folder / "other.safetensors"


def test_heads_need_hidden_states_and_sensible_lengths():
    with pytest.raises(UnsupportedError):
        HeadStopped(TARGET, AcceptanceHead(2))
    with pytest.raises(GuidedError):
        HeadStopped(TARGET, AcceptanceHead(2), least=5, most=2)
    with pytest.raises(GuidedError, match="no texts"):
        acceptance_examples(0, TARGET, TableModel(TARGET.logprobs, width=WIDTH, hidden=lambda t: [0.0]), [[1]], [[]])


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_lengths_are_kept_to(threshold):
    model = TableModel(TARGET.logprobs, width=WIDTH, hidden=lambda tokens: [0.0, 1.0])
    head = AcceptanceHead(2)
    drafter = HeadStopped(model, head, threshold=threshold, least=3, most=6)
    found = drafter.draft(guided.infer.chance.chance_of(0), [Context(0, [1], 1, None, 0, 20)])[0]
    assert len(found) == (3 if threshold == 0 else 6)
    assert len(drafter.draft(guided.infer.chance.chance_of(0), [Context(1, [1], 1, None, 0, 2)])[0]) == 2


def test_labels_weigh_refusals_more():
    """Six times: with as many of both and no information the head says one in seven."""
    examples = AcceptanceExamples(torch.zeros(100, 2), torch.tensor([0.0, 1.0] * 50))
    head = AcceptanceHead(2)
    fit_acceptance_head(head, examples, epochs=60, batch=50, rate=0.1)
    # Where training ends is not a matter of rounding; it is off by 0.0007.
    assert head.chance(torch.zeros(2)) == pytest.approx(1 / 7, abs=0.02)


# --- vocabularies -----------------------------------------------------------------------------------------------------

TARGET_WORDS = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", b"ba", None, None], eos_ids=[4])
OWN_WORDS = guided.Vocabulary.from_tokens([b"b", b"aa", b"a", None, b"ab", b"bb"], eos_ids=[3])
OWN = TableModel.random(4, width=6, eos_ids=[3])


def test_intersections_score_what_both_have():
    model = intersected(OWN, OWN_WORDS, TARGET_WORDS)
    assert model.shared == 3 and model.eos_ids == {4}
    # The prompt "abba" is read as the other tokenizer reads it, longest first: ab b a.
    (logits,) = model.start([[2, 3]]).last.logits
    inner = OWN.logprobs((4, 0, 2))
    for target, own in ((0, 2), (1, 0), (2, 4), (4, 3)):
        assert logits[target] == inner[own]
    assert logits[[3, 5]].tolist() == [-np.inf] * 2
    # Tokens after it one by one: "ba" is b a there, "ab" is ab; a special token is not shown.
    sequences = model.start([[2, 3]])
    found = sequences.extend([[3, 5, 2]])[0].logits
    for row, prefix in enumerate(((4, 0, 2, 0, 2), (4, 0, 2, 0, 2), (4, 0, 2, 0, 2, 4))):
        assert found[row][1] == OWN.logprobs(prefix)[0]
    sequences.crop([3])
    assert sequences.tokens(0) == (2, 3, 3)
    assert sequences.last.logits[0][1] == OWN.logprobs((4, 0, 2, 0, 2))[0]
    sequences.crop([1])
    assert sequences.last.logits[0][1] == OWN.logprobs((4,))[0]


def test_intersections_are_language_models():
    """Where the other tokenizer splits a text as its pieces: there a prompt is like text that came after it."""
    own = guided.Vocabulary.from_tokens([b"b", b"a", b"c", None, b"d", b"dd"], eos_ids=[3])
    target = guided.Vocabulary.from_tokens([b"a", b"b", b"c", b"ac", None], eos_ids=[4])
    check_language_model(intersected(OWN, own, target))
    with pytest.raises(VocabularyError, match="no token in common"):
        intersected(OWN, OWN_WORDS, guided.Vocabulary.from_tokens([b"x", None], eos_ids=[1]))


# --- lossy ------------------------------------------------------------------------------------------------------------


def test_judges_learn_a_line():
    rng = np.random.default_rng(0)
    hidden = torch.from_numpy(rng.standard_normal((300, 4))).float()
    right = hidden @ torch.tensor([1.0, -2.0, 0.0, 0.5]) > 0.8
    head = fit_judge(hidden, right)
    judge = Judge(head)
    assert np.mean([judge.holds(state) == bool(label) for state, label in zip(hidden, right, strict=True)]) > 0.93
    with pytest.raises(GuidedError, match="right tokens and wrong ones"):
        fit_judge(hidden, torch.ones(300))
    with pytest.raises(GuidedError):
        Judge(head, 0.0)
    with pytest.raises(GuidedError, match="another law"):
        speculate(0, TARGET, [[1]], [None], lossy=judge, greedy=True)


def test_rewards_see_the_text_and_steps():
    seen = []

    def reward(before, step):
        seen.append((tuple(before), tuple(step)))
        return float(len(seen) % 2)

    large, small = (TableModel.random(seed, width=WIDTH, eos_ids=[]) for seed in (1, 2))
    text = reward_guided(0, large, small, [1, 2], None, reward, lambda step: len(step) == 3, max_tokens=10, greedy=True)
    assert [step.by_draft for step in text.steps] == [bool(step.reward) for step in text.steps]
    assert {step.by_draft for step in text.steps} == {True, False}
    written: list[int] = []
    for (before, proposed), step in zip(seen, text.steps, strict=True):
        assert before == (1, 2, *written)
        assert (proposed == step.tokens) or not step.by_draft
        model = small if step.by_draft else large
        for token in step.tokens:
            assert token == int(model.logprobs((1, 2, *written)).argmax())
            written.append(token)
    assert tuple(written) == text.tokens
    assert text.share_by_draft == sum(len(s.tokens) for s in text.steps if s.by_draft) / len(text.tokens)
    with pytest.raises(VocabularyError):
        reward_guided(0, TARGET, TableModel.random(0, width=3), [1], None, reward, lambda step: True)
