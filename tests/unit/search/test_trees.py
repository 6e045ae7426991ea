"""Monte Carlo tree search and A*: brute force where they are exact, what a budget leaves, and tuning."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

import guided
from guided.errors import GuidedError, LimitError
from guided.infer import Potential, TextScorer, UnitTest
from guided.lm import TableModel
from guided.search import a_star_search, beam_search, mcts_search, tuned
from guided.search.open_frontier import OpenFrontier
from tests.amounts import each
from tests.tolerances import DOUBLE
from tests.twin.slow_search import END, PROMPT, VOCABULARY, anything, every_text, total

PATTERN = "(ab|c|a)*b?"
LANGUAGE = guided.compile(guided.regex(PATTERN), VOCABULARY)
TEXTS = list(every_text(re.compile(PATTERN).fullmatch, 4))


def text_of(tokens):
    return "".join(("a", "b", "c", "ab")[token] for token in tokens[:-1])


def liking(text):
    """A reward that has nothing to do with the model."""
    return -abs(math.sin(7.0 * text.count("a") + 3.0 * len(text) + text.count("c")))


LIKED = TextScorer(VOCABULARY, lambda texts: [liking(text) for text in texts])


@pytest.mark.parametrize("seed", range(4))
def test_a_whole_tree_is_brute_force(seed):
    """With all ways and roll-outs enough for every prefix, the best rewards of all texts, in order."""
    model = TableModel.random(seed, width=5)
    expected = sorted(TEXTS, key=lambda t: (-liking(text_of(t)), -total(model, t), len(t), t))
    found = mcts_search(
        model, PROMPT, LANGUAGE, reward=LIKED, rollouts=10_000, expand=9, n_best=len(TEXTS), max_tokens=4
    )
    assert found.complete and found.evaluated == len(TEXTS)
    assert [each.tokens for each in found] == expected
    assert [each.rank_score for each in found] == pytest.approx([math.exp(liking(text_of(t))) for t in expected])
    assert [each.score for each in found] == pytest.approx([total(model, t) for t in expected], abs=DOUBLE)
    prefixes = {text[:n] for text in TEXTS for n in range(len(text))}
    assert found.expanded == len(prefixes)


def slow_mcts(model, texts, reward, rollouts, ways, c=4.0, base=10.0):
    """P-UCB as the paper words it, over a finite set of texts; visits and values by prefix."""
    prefixes = {text[:n] for text in texts for n in range(len(text) + 1)}
    visits, values, children, order = {}, {}, {}, []

    def likely(prefix):
        grown = [(*prefix, t) for t in range(END + 1) if (*prefix, t) in prefixes]
        return sorted(grown, key=lambda p: (-model.logprobs((*PROMPT, *prefix))[p[-1]], p[-1] == END, p[-1]))

    def done(prefix):
        if prefix[-1:] == (END,):
            return prefix in visits
        return prefix in children and all(map(done, children[prefix]))

    for _ in range(rollouts):
        if done(()):
            break
        path = [()]
        while path[-1] in children:
            here = path[-1]
            beta = math.log((visits[here] + base + 1) / base) + c

            def bonus(p, here=here, beta=beta):
                prior = math.exp(model.logprobs((*PROMPT, *here))[p[-1]])
                return values.get(p, 0) + beta * prior * math.sqrt(math.log(visits[here])) / (1 + visits.get(p, 0))

            path.append(max((p for p in children[here] if not done(p)), key=bonus))
        leaf = path[-1]
        if leaf[-1:] != (END,):
            children[leaf] = likely(leaf)[:ways]
            while leaf[-1:] != (END,):
                leaf = likely(leaf)[0]
        order.append(leaf)
        for prefix in path:
            visits[prefix] = visits.get(prefix, 0) + 1
            values[prefix] = max(values.get(prefix, 0), reward(leaf))
    return order


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ways", [2, 3])
def test_roll_outs_are_those_of_the_plain_twin(seed, ways, monkeypatch):
    model = TableModel.random(seed, width=5)
    asked = []
    from guided.search import mcts

    of = mcts.Rewards.of
    monkeypatch.setattr(mcts.Rewards, "of", lambda self, node: (asked.append(node.tokens), of(self, node))[1])
    mcts_search(model, PROMPT, LANGUAGE, reward=LIKED, rollouts=25, expand=ways, max_tokens=4)
    assert asked == slow_mcts(model, TEXTS, lambda t: math.exp(liking(text_of(t))), 25, ways)
    assert len(set(asked)) >= ways


def test_a_budget_is_kept_and_a_test_found():
    """A test that few texts pass: planning passes it where beams of the same cost do not."""

    def three_of_c(text):
        assert text.count("c") == 3 and text.endswith("b")

    model = TableModel.random(5, width=5)
    test = UnitTest(VOCABULARY, three_of_c)
    graded = TextScorer(
        VOCABULARY, lambda texts: [-abs(text.count("c") - 3) - (not text.endswith("b")) for text in texts]
    )
    found = mcts_search(model, PROMPT, anything(), reward=graded, rollouts=40, expand=4, max_tokens=6)
    assert found[0].text is not None and test.complete_at(found[0].data) == 0.0
    assert not found.complete and found.expanded <= 40 and found.evaluated <= 40
    beams = beam_search(model, PROMPT, anything(), width=8, n_best=8, max_tokens=6)
    assert all(test.complete_at(each.data) == -math.inf for each in beams)
    nothing = mcts_search(model, PROMPT, LANGUAGE, reward=UnitTest(VOCABULARY, fails), rollouts=5, max_tokens=4)
    assert len(nothing) == 0 and nothing.evaluated


def fails(text):
    raise ValueError(text)


class Bound(Potential):
    """A reward of letters, and of prefixes the most that can still come: admissible."""

    vocabulary = VOCABULARY
    limit = 8

    def start(self):
        return ()

    def advance(self, state, token):
        return (*state, token)

    def complete_at(self, state):
        text = text_of((*state, END))
        return 0.8 * text.count("c") - 0.5 * text.count("b")

    def prefix_at(self, state):
        return self.complete_at(state) + 0.8 * max(3 - len(state), 0)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("judge", [None, LANGUAGE, Bound()], ids=["alone", "constraint", "bound"])
@pytest.mark.parametrize("seed", each(range(3), 2))
def test_a_star_is_brute_force(seed, judge, batch):
    model = TableModel.random(seed, width=5)
    worth = {t: total(model, t) + 0.7 * (judge.complete_at(t[:-1]) if isinstance(judge, Bound) else 0) for t in TEXTS}
    expected = sorted(TEXTS, key=lambda t: -worth[t])[:5]
    from guided.infer import as_potential

    found = a_star_search(
        model, PROMPT, LANGUAGE, judge=None if judge is None else as_potential(judge), weight=0.7, batch=batch,
        n_best=5, max_tokens=4,
    )  # fmt: skip
    assert found.complete and [each.tokens for each in found] == expected
    assert [each.rank_score for each in found] == pytest.approx([worth[t] for t in expected], abs=DOUBLE)
    prefixes = {text[:n] for text in TEXTS for n in range(len(text))}
    assert found.expanded <= len(prefixes)
    if batch == 1 and judge is None:
        # Nothing is expanded that is worth less than the last text found.
        assert found.expanded == sum(total(model, p) > worth[expected[-1]] for p in prefixes)


def test_a_budget_says_that_it_was_used_up():
    model = TableModel.random(2, width=5)
    cut = a_star_search(model, PROMPT, LANGUAGE, n_best=50, max_expanded=6, batch=4, max_tokens=5)
    assert cut.expanded == 6 and not cut.complete and len(cut) < 50
    scores = [each.rank_score for each in cut]
    assert scores == sorted(scores, reverse=True)
    narrow = a_star_search(model, PROMPT, LANGUAGE, expand=1, n_best=9, max_tokens=5)
    assert narrow.complete and len(narrow) == 1
    # A bonus for each token is not exact, but the first text comes at once.
    long = TableModel(lambda tokens: model.logprobs(tokens) - 9.0 * (np.arange(5) == END), width=5, eos_ids=[END])
    deep = a_star_search(long, PROMPT, anything(), per_token=9.0, max_tokens=9)
    assert len(deep[0].tokens) == 9 and deep.expanded <= 12


def test_nodes_may_lie_anywhere():
    model = TableModel.random(1, width=5)
    far = OpenFrontier(model, PROMPT, anything(), 6)
    rng = np.random.default_rng(0)
    order = [far.root]
    for _ in range(40):
        some = [order[i] for i in rng.integers(0, len(order), 3)]
        for node, choices in zip(some, far.expand(some), strict=True):
            np.testing.assert_allclose(choices.logprobs[:5], model.logprobs((*PROMPT, *node.tokens)), atol=DOUBLE)
            if node.length < 4:
                child = choices.child(int(rng.choice(choices.tokens)))
                order.append(child)
    assert max(node.length for node in order) == 4


def test_numbers_that_mean_nothing():
    model = TableModel.random(1, width=5)
    for options in ({"rollouts": 0}, {"expand": 0}, {"base": 0.0}):
        with pytest.raises(GuidedError):
            mcts_search(model, PROMPT, LANGUAGE, reward=LIKED, **options)
    for options in ({"batch": 0}, {"weight": -1.0}, {"expand": 0}):
        with pytest.raises(GuidedError, match="at least"):
            a_star_search(model, PROMPT, LANGUAGE, **options)
    long = guided.compile(guided.regex("a{9}"), VOCABULARY)
    for search in (a_star_search, lambda *a, **k: mcts_search(*a, reward=LIKED, **k)):
        with pytest.raises(LimitError):
            search(model, PROMPT, long, max_tokens=4)


def test_settings_are_tuned_on_examples():
    models = [TableModel.random(seed, width=5) for seed in range(3)]
    options = {"expand": [1, 3], "weight": [0.0, 2.0]}

    def run(model, **chosen):
        return a_star_search(model, PROMPT, LANGUAGE, judge=Bound(), max_tokens=4, **chosen)

    def metric(model, found):
        return Bound().complete_at(found[0].tokens[:-1])

    settings = tuned(run, options, models, metric)
    by_hand = {
        (expand, weight): np.mean([metric(m, run(m, expand=expand, weight=weight)) for m in models])
        for expand, weight in itertools.product(*options.values())
    }
    assert {tuple(each.options.values()): each.mean for each in settings} == pytest.approx(by_hand)
    assert settings[0].mean == max(by_hand.values()) and settings[0].mean > settings[-1].mean
    assert all(a.mean >= b.mean for a, b in itertools.pairwise(settings))
    with pytest.raises(GuidedError, match="nothing to tune"):
        tuned(run, options, [], metric)
