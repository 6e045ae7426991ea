"""Every draft keeps the law of the target: all random choices of drafting and verification summed over."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

import guided
from guided.draft import (
    Beam,
    Branching,
    Chain,
    Context,
    Fixed,
    Independent,
    Judge,
    Model,
    OtherVocabulary,
    Overlapped,
    ParallelPrompts,
    PromptLookup,
    Typical,
    Union,
    reward_guided,
    speculate,
)
from guided.errors import GuidedError, VocabularyError
from guided.lm.retokenized import retokenized
from guided.lm.table import TableModel
from guided.steer import Contrastive, Stack
from guided.testing.enumeration import enumerate_choices
from tests.amounts import crossed, each
from tests.tolerances import SUMS
from tests.twin.tiny_drafts import (
    CONSTRAINT,
    DRAFTS,
    END,
    HIDDEN,
    OTHER,
    OTHERS,
    PROMPT,
    SMALL,
    TARGET,
    VOCABULARY,
    WIDTH,
    random_module,
)


def law(make, constraint, *, model=TARGET, max_tokens=3, budget=3, prompt=PROMPT, **settings):
    found = Counter()

    def run(chance):
        (text,), statistics = speculate(
            chance, model, [prompt], [constraint], make(), max_tokens=max_tokens, policy=Fixed(budget), **settings
        )
        assert statistics.tokens == len(text.tokens)
        return text.tokens

    for probability, tokens in enumerate_choices(run):
        found[tokens] += probability
    assert sum(found.values()) == pytest.approx(1.0, abs=SUMS)
    return found


def distance(left, right):
    return sum(abs(left[text] - right[text]) for text in {*left, *right}) / 2


@pytest.fixture(scope="module")
def plain():
    return {constraint: law(lambda: None, constraint) for constraint in (None, CONSTRAINT)}


@pytest.mark.parametrize(("constraint", "name"), crossed([None, CONSTRAINT], DRAFTS, share=9))
def test_law_is_kept(name, constraint, plain):
    assert distance(plain[constraint], law(DRAFTS[name], constraint)) < 1e-9


@pytest.mark.parametrize("name", each(["chain", "chain, confidence", "staged", "intersection"], 2))
@pytest.mark.parametrize("constraint", [None, CONSTRAINT], ids=["free", "constrained"])
def test_law_is_kept_by_block(name, constraint, plain):
    assert distance(plain[constraint], law(DRAFTS[name], constraint, by_block=True)) < 1e-9


@pytest.mark.parametrize(
    ("shape", "by_block"),
    [(Chain(2), False), (Chain(2), True), pytest.param(Independent(2, 2), False, marks=pytest.mark.slow)],
    ids=["chain", "block", "k"],
)
def test_the_law_of_texts_of_several_rounds(shape, by_block):
    """What one round leaves in the caches is what the next one goes on from; two tokens, so that this can be summed."""
    target, small = (TableModel.random(seed, width=2, eos_ids=[]) for seed in (3, 4))
    asked = {"model": target, "max_tokens": 5, "prompt": [0, 1]}
    found = law(lambda: Model(small, shape), None, budget=2, by_block=by_block, **asked)
    assert distance(law(lambda: None, None, **asked), found) < 1e-9


@pytest.mark.parametrize("pre_verify", [False, True])
def test_the_law_of_texts_whose_lines_are_drafted_meanwhile(pre_verify):
    """A line is verified by a token that was drawn without it, then by the pass over what is left of it."""
    target, small = (TableModel.random(seed, width=2, eos_ids=[]) for seed in (3, 4))
    asked = {"model": target, "max_tokens": 6, "prompt": [0, 1]}
    hits = []

    def overlapped():
        hits.append(Overlapped(Model(small, Chain(2), by_rule=True), pre_verify=pre_verify))
        return hits[-1]

    assert distance(law(lambda: None, None, **asked), law(overlapped, None, budget=2, **asked)) < 1e-9
    assert {drafter.hits for drafter in hits} >= {0, 1}


@pytest.mark.parametrize("among_others", [False, True])
def test_the_law_of_texts_drafted_by_prompt_tokens(among_others):
    """What stands for later tokens is read behind candidates that are accepted or not, in trees of several nodes."""
    table = TableModel.random(3, width=2, eos_ids=[])
    target = TableModel(table.logprobs, width=2, prompt_tokens=2)
    asked = {"model": target, "max_tokens": 5, "prompt": [0, 1]}
    sizes = []

    class Counted(ParallelPrompts):
        def learn(self, observed):
            sizes.extend((len(seen.proposal), len(seen.prompted)) for seen in observed)
            super().learn(observed)

    def make():
        drafter = Counted([[0.6, 0.3], [0.5, 0.4]])
        return Union(drafter, PromptLookup(1)) if among_others else drafter

    assert distance(law(lambda: None, None, **asked), law(make, None, budget=6, **asked)) < 1e-9
    assert max(nodes for nodes, _ in sizes) >= 3
    assert max(prompted for _, prompted in sizes) >= 2
    steered = Stack([Contrastive(TableModel.random(4, width=2, eos_ids=[]), alpha=0.0)]).over(target)
    _, counts = speculate(0, steered, [[0, 1]], [None], make(), max_tokens=5, policy=Fixed(6))
    assert among_others or counts.drafted == 0, "a steered model reads no prompt tokens"


@pytest.mark.parametrize("name", each(list(DRAFTS)[:10], 2))
def test_trained_drafts_draft_and_keep_weights_and_steering(name):
    """What they propose is scored; importance weights and a steered target are as without them."""
    _, counts = speculate(0, TARGET, [PROMPT] * 20, [CONSTRAINT] * 20, DRAFTS[name](), max_tokens=6, policy=Fixed(3))
    assert counts.drafted > counts.accepted > 0
    # alpha 0: no token is implausible, so that the limit of two tokens leaves some.
    steered = Stack([Contrastive(SMALL, alpha=0.0)]).over(TARGET)
    for model in (TARGET, steered):
        weights = []
        for make in (lambda: None, DRAFTS[name]):
            found = Counter()

            def run(chance, make=make, model=model):
                (text,), _ = speculate(
                    chance, model, [PROMPT], [CONSTRAINT], make(), max_tokens=2, policy=Fixed(2), weigh=True
                )
                return text.tokens, text.logw

            for probability, (tokens, logw) in enumerate_choices(run):
                found[tokens] += probability * np.exp(logw)
            weights.append(found)
        assert distance(*weights) < 1e-9


@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("name", ["constant branching", "dynamic", "union"])
def test_law_is_kept_where_budgets_cut_trees(name, budget, plain):
    assert distance(plain[CONSTRAINT], law(DRAFTS[name], CONSTRAINT, budget=budget)) < 1e-9


def test_models_without_trees_take_chains(plain):
    model = TableModel(lambda tokens: TARGET.logprobs(tokens), width=WIDTH, eos_ids=[END])
    model.can = type(model.can)(crop=True, tree=False)
    for name in ("chain", "constant branching", "guessers"):
        assert distance(plain[CONSTRAINT], law(DRAFTS[name], CONSTRAINT, model=model)) < 1e-9


@pytest.mark.parametrize("n", [1_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_stochastic_beams_keep_the_law(plain, n):
    """Their keys are continuous: a chi-square test of many texts, at one in a million."""
    drafter = Model(SMALL, Beam(3, 2))
    rng = np.random.default_rng(n)
    found = Counter()
    for _ in range(n // 500):
        texts, _ = speculate(rng, TARGET, [PROMPT] * 500, [CONSTRAINT] * 500, drafter, max_tokens=3, policy=Fixed(6))
        found.update(text.tokens for text in texts)
    expected = {text: n * p for text, p in plain[CONSTRAINT].items() if p > 0}
    assert set(found) <= set(expected)
    common = [text for text, count in expected.items() if count >= 5]
    square = sum((found[text] - expected[text]) ** 2 / expected[text] for text in common)
    # Wilson and Hilferty's approximation of the quantile at 1 - 1e-6 (4.753 standard deviations).
    k = len(common) - 1
    assert square < k * (1 - 2 / (9 * k) + 4.753 * (2 / (9 * k)) ** 0.5) ** 3
    assert len(common) > 4


def test_a_draft_that_lies_is_found_out(plain):
    """Drafts that claim another distribution than the one they come from are found out by the enumeration."""

    class Liar(Model):
        """Claims to draw evenly."""

        def draft(self, chance, contexts):
            proposals = super().draft(chance, contexts)
            for proposal in proposals:
                for groups in proposal.groups.values():
                    for group in groups:
                        object.__setattr__(group, "probabilities", np.full(WIDTH, 1 / WIDTH))
            return proposals

    assert distance(plain[None], law(lambda: Liar(SMALL, Chain(2)), None)) > 1e-3


def test_steered_targets_keep_their_law_with_the_amateur_as_draft():
    """Speculative contrastive decoding: what is verified against is the contrast, not the model."""
    steered = Stack([Contrastive(SMALL)]).over(TARGET)
    plain = law(lambda: None, CONSTRAINT, model=steered)
    assert distance(plain, law(lambda: None, CONSTRAINT)) > 1e-3
    for shape in (Chain(2), Branching((2, 1))):
        assert distance(plain, law(lambda shape=shape: Model(SMALL, shape), CONSTRAINT, model=steered)) < 1e-9


def test_drafts_in_another_vocabulary_keep_the_law(plain):
    other = OTHERS
    drafter = OtherVocabulary(other, OTHER, VOCABULARY)
    proposals = drafter.draft(None, [Context(0, PROMPT, 6, None, 0, 4)])
    assert len(proposals[0]) > 0
    for constraint in (None, CONSTRAINT):
        found = law(lambda: OtherVocabulary(other, OTHER, VOCABULARY, pieces=2), constraint)
        assert distance(plain[constraint], found) < 1e-9
        # The other way: drawn in the target's own ids from a view of the other model.
        view = retokenized(other, OTHER, VOCABULARY)
        assert distance(plain[constraint], law(lambda view=view: Model(view, Chain(1)), constraint)) < 1e-9
    with pytest.raises(VocabularyError):
        OtherVocabulary(other, guided.Vocabulary.from_tokens([b"x", None], eos_ids=[1]), VOCABULARY)
    with pytest.raises(VocabularyError):
        Model(other, target=TARGET)


def test_typical_acceptance_is_another_law_within_the_language(plain):
    found = law(DRAFTS["model by rule"], CONSTRAINT, lossy=Typical())
    assert {text for text, p in found.items() if p > 0} <= set(plain[CONSTRAINT])
    assert distance(plain[CONSTRAINT], found) > 1e-3
    assert distance(plain[CONSTRAINT], law(lambda: None, CONSTRAINT, lossy=Typical())) < 1e-9
    for settings in ({"weigh": True}, {"greedy": True}):
        with pytest.raises(GuidedError):
            speculate(0, TARGET, [PROMPT], [None], lossy=Typical(), **settings)
    with pytest.raises(GuidedError):
        Typical(epsilon=0.0)


def test_a_judge_is_another_law_within_the_language(plain):
    judge = Judge(random_module(torch.nn.Linear(HIDDEN, 1)), 0.4)
    found = law(DRAFTS["model by rule"], CONSTRAINT, lossy=judge)
    assert {text for text, p in found.items() if p > 0} <= set(plain[CONSTRAINT])
    assert distance(plain[CONSTRAINT], found) > 1e-3
    # One that takes nothing leaves the law alone, whatever the kind of draft.
    strict = Judge(torch.nn.Linear(HIDDEN, 1), 1.0)
    for name in ("model by rule", "constant branching"):
        assert distance(plain[CONSTRAINT], law(DRAFTS[name], CONSTRAINT, lossy=strict)) < 1e-9


@pytest.mark.parametrize("least", [0.0, 0.5, 1.1])
def test_reward_guided_texts_are_a_mixture_within_the_language(least, plain):
    """With every step kept it is the draft's law, with none the target's, and in between neither."""
    small = law(lambda: None, CONSTRAINT, model=SMALL)
    found = Counter()

    def run(chance):
        text = reward_guided(
            chance, TARGET, SMALL, PROMPT, CONSTRAINT, lambda before, step: step[0] == 0, lambda step: len(step) == 2,
            least=least, max_tokens=3,
        )  # fmt: skip
        assert sum(len(step.tokens) for step in text.steps) == len(text.tokens)
        return text.tokens

    for probability, tokens in enumerate_choices(run):
        found[tokens] += probability
    assert {text for text, p in found.items() if p > 0} <= set(plain[CONSTRAINT])
    assert (distance(found, small) < 1e-9) == (least == 0.0)
    assert (distance(found, plain[CONSTRAINT]) < 1e-9) == (least > 1)
