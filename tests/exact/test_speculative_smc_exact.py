"""Particles with drafts: weights stay proper, every random choice summed over; and each run is that without drafts."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

import guided
from guided.draft import (
    Beam,
    BestFirst,
    Branching,
    Chain,
    Drafting,
    Fixed,
    ForcedBytes,
    Goodput,
    Group,
    MaskCounts,
    Model,
    NGrams,
    PromptLookup,
    Proposal,
    Recycling,
    Staged,
    auto,
)
from guided.infer import AWRS, Direct, importance, smc
from guided.infer.populations.resampling import multinomial, residual, systematic
from guided.infer.potentials.potential import Potential, as_potential
from guided.infer.token_samplers.awrs import Estimator
from guided.lm.table import TableModel
from guided.steer import Contrastive, Stack
from guided.testing.enumeration import enumerate_choices
from tests.amounts import each
from tests.tolerances import SUMS

WIDTH, END = 4, 3
VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[END])
MODEL = TableModel.random(5, width=WIDTH, eos_ids=[END])
SMALL = TableModel.random(6, width=WIDTH, eos_ids=[END])
CONSTRAINT = guided.compile(guided.regex("(ab|ba|aa)?b*"), VOCABULARY)
PROMPT = (0, 1, 0, 2, 1, 0)


class Soft(Potential[int]):
    """Weighs the number of tokens."""

    vocabulary = VOCABULARY

    def start(self):
        return 0

    def advance(self, state, token):
        return state + 1 + token

    def prefix_at(self, state):
        return 0.3 * state - 0.1 * state * state

    def complete_at(self, state):
        return 0.3 * state - 0.1 * state * state - 0.5


class Everything:
    """Drafts every token after every node, as deep as the budget goes."""

    def draft(self, chance, contexts):
        found = []
        for context in contexts:
            proposal, nodes = Proposal(), [-1]
            while nodes and len(proposal) < context.budget:
                nodes += proposal.add(nodes.pop(0), Group(tuple(range(WIDTH))))
            found.append(proposal)
        return found

    def learn(self, observed):
        for seen in observed:
            grown = len(seen.emitted)
            assert not grown or tuple(seen.context.tokens[-grown:]) == seen.emitted
            assert len(seen.logits) == len(seen.tree)

    def leave(self, rows):
        pass


DRAFTS = {
    "everything": lambda: Drafting(Everything(), Fixed(30)),
    "lookup": lambda: Drafting(PromptLookup(), Fixed(2)),
    "recycling": lambda: Drafting(Recycling(), Fixed(6)),
    "guessers": lambda: Drafting(BestFirst(ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), floor=0.0), Fixed(4)),
    "model": lambda: Drafting(Model(SMALL, Branching((2, 1))), Fixed(4)),
    "the target itself": lambda: Drafting(Model(MODEL, Chain(2)), Fixed(2)),
    "staged": lambda: Drafting(Staged(SMALL, PromptLookup(), 3), Fixed(3)),
    "beam": lambda: Drafting(Model(SMALL, Beam(3, 2)), Fixed(6)),
    "auto": auto,
    "goodput": lambda: Drafting(PromptLookup(), Goodput((1, 3))),
}


def truth(model, potential, max_tokens):
    """The unnormalised target of each text of at most so many tokens, its end counted."""
    goal = as_potential(potential)
    found = {}
    for length in range(max_tokens):
        for text in itertools.product(range(END), repeat=length):
            weight = goal.complete(text)
            if weight > -math.inf:
                logs = sum(model.logprobs((*PROMPT, *text[:t]))[token] for t, token in enumerate((*text, END)))
                found[(*text, END)] = math.exp(logs + weight)
    return found


def expected(run):
    """The expected mean weight of each text, and of the evidence."""
    weights = defaultdict(float)
    evidence = 0.0
    for probability, population in enumerate_choices(run):
        evidence += probability * math.exp(population.log_ml)
        for particle in population:
            if particle.logw > -math.inf:
                weights[particle.tokens] += probability * math.exp(particle.logw) / len(population)
    return weights, evidence


POTENTIALS = {"hard": CONSTRAINT, "soft": Soft(), "both": as_potential(CONSTRAINT) * Soft()}


@pytest.mark.parametrize(
    ("name", "potential"),
    each([*((name, "hard") for name in DRAFTS), *itertools.product(["everything", "model"], ["soft", "both"])], 5),
)
def test_weights_are_proper(name, potential):
    potential = POTENTIALS[potential]
    target = truth(MODEL, potential, 3)
    weights, evidence = expected(
        lambda chance: smc(
            chance, MODEL, PROMPT, potential, n=2, max_tokens=3, sampler=Direct(), ess_threshold=1.0,
            draft=DRAFTS[name](),
        )
    )  # fmt: skip
    assert set(weights) == set(target)
    for text, value in target.items():
        assert weights[text] == pytest.approx(value, abs=SUMS)
    assert evidence == pytest.approx(sum(target.values()), abs=SUMS)


@pytest.mark.parametrize("sampler", [Direct(), AWRS(estimator=Estimator.RECURSIVE)], ids=["direct", "awrs"])
def test_importance_weights_are_proper(sampler):
    target = truth(MODEL, CONSTRAINT, 3)
    weights, _ = expected(
        lambda chance: importance(
            chance, MODEL, PROMPT, CONSTRAINT, n=1, max_tokens=3, sampler=sampler, draft=DRAFTS["guessers"]()
        )
    )
    assert weights == pytest.approx(target, abs=SUMS)


def table(*, tree=True, crop=True, seed=5, width=WIDTH):
    found = TableModel.random(seed, width=width, eos_ids=[END])
    found.can = type(found.can)(crop=crop, tree=tree)
    return found


def facts(population):
    return (
        [(particle.tokens, particle.logw, particle.increments) for particle in population],
        population.log_ml,
        population.resampled,
    )


@pytest.mark.parametrize("name", each(DRAFTS, 2))
def test_a_run_is_that_without_drafts(name):
    """To the last digit, with forks and resampling; models with and without trees."""
    forks = passes = plain_passes = 0
    drafting = DRAFTS[name]()
    abilities, resamplers = [(True, True), (False, True), (False, False)], [systematic, multinomial, residual]
    for seed, ((tree, crop), resample) in enumerate(itertools.product(abilities, resamplers)):
        model, plain_model = table(tree=tree, crop=crop, seed=seed), table(seed=seed)
        options = {"n": 9, "max_tokens": 12, "ess_threshold": 0.9, "resample": resample}
        plain = smc(seed, plain_model, PROMPT, CONSTRAINT, **options)
        drafted = smc(seed, model, PROMPT, CONSTRAINT, draft=drafting, **options)
        assert facts(plain) == facts(drafted)
        assert drafted.cost.drafted >= drafted.cost.met
        passes, plain_passes = passes + model.calls.passes, plain_passes + plain_model.calls.passes
        forks += len({particle.tokens for particle in plain}) > 1 and bool(plain.resampled)
    assert forks
    assert passes <= plain_passes
    if name == "everything":
        assert passes < 0.7 * plain_passes


def test_steered_models_critics_and_proposals():
    steered = Stack([Contrastive(SMALL)]).over(table())
    for options in ({"critic": Soft()}, {"proposal": table(seed=9)}, {"sampler": Direct()}):
        for model in (MODEL, steered):
            plain, drafted = (
                smc(3, model, PROMPT, CONSTRAINT, n=6, max_tokens=9, ess_threshold=0.8, draft=draft, **options)
                for draft in (None, DRAFTS["everything"]())
            )
            assert facts(plain) == facts(drafted)


def test_a_run_goes_on_from_a_checkpoint_with_or_without_drafts(tmp_path):
    path = tmp_path / "run.json"
    options = {"n": 6, "max_tokens": 9, "ess_threshold": 0.9}

    def stop(step):
        if step.number == 3:
            raise KeyboardInterrupt

    whole = smc(4, MODEL, PROMPT, CONSTRAINT, **options)
    drafting = Drafting(Model(SMALL, Chain(2)), Fixed(3))
    for first, second in ((None, drafting), (drafting, None), (drafting, drafting)):
        with pytest.raises(KeyboardInterrupt):
            smc(4, MODEL, PROMPT, CONSTRAINT, save=path, save_every=1, progress=stop, draft=first, **options)
        resumed = smc(0, MODEL, PROMPT, CONSTRAINT, resume=path, draft=second, **options)
        assert facts(resumed) == facts(whole)
    assert drafting.drafter._sequences is None, "nothing is left of runs that were stopped"


def test_models_wider_and_narrower_than_the_vocabulary():
    for width in (4, 7):
        plain, drafted = (
            smc(1, table(width=width, seed=2), PROMPT, CONSTRAINT, n=5, max_tokens=7, draft=draft)
            for draft in (None, DRAFTS["everything"]())
        )
        assert facts(plain) == facts(drafted)


def test_nothing_that_fits_and_one_token():
    long = guided.compile(guided.regex("a{9}"), VOCABULARY)
    for max_tokens in (1, 3):
        for constraint in (long, CONSTRAINT):
            plain, drafted = (
                smc(1, MODEL, PROMPT, constraint, n=5, max_tokens=max_tokens, draft=draft)
                for draft in (None, DRAFTS["everything"]())
            )
            assert facts(plain) == facts(drafted)
    assert np.isneginf(smc(1, MODEL, PROMPT, long, n=5, max_tokens=3, draft=auto()).log_ml)


def test_forced_tokens_cost_no_pass_of_their_own():
    """Their weights are known from the pass before."""
    constraint = guided.compile(
        guided.regex("[ab]{2}(aaaaaaaa|bbbbbbbb)"),
        guided.Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_ids=[END]),
    )
    model, plain_model = table(), table()
    plain = smc(2, plain_model, PROMPT, constraint, n=4, max_tokens=12)
    drafted = smc(2, model, PROMPT, constraint, n=4, max_tokens=12, draft=Drafting(PromptLookup(), Fixed(0)))
    assert facts(plain) == facts(drafted)
    assert plain_model.calls.passes == 11
    assert model.calls.passes == 4
