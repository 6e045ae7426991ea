"""Draft models beside a target: heads padded to other widths, temperature and truncation, other tokenizers."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.draft import Branching, Chain, Drafting, Fixed, Model, PromptLookup, Staged, reward_guided, speculate
from guided.errors import VocabularyError
from guided.infer import smc
from guided.lm import TableModel, transformed
from guided.lm.table import normalised
from guided.testing.enumeration import enumerate_choices
from tests.amounts import ALL, each
from tests.tolerances import SUMS

WIDTH, END = 6, 5


def table(width, seed=1):
    """The first ids as in every other width, and in wide ones a little mass above them."""

    def logprobs(tokens):
        row = 2 * np.random.default_rng([seed, *tokens[-2:]]).standard_normal(width)
        row[WIDTH:] -= 2
        return normalised(row)

    return TableModel(logprobs, width=width, eos_ids=[END])


class Tokenizer:
    """Says which ids there are."""

    def __init__(self, *more):
        self.ids = {name: number for number, name in enumerate(("a", "b", "c", "d", "e", "</s>", *more))}

    def get_vocab(self):
        return self.ids


def with_tokenizer(model, *more):
    model.tokenizer = Tokenizer(*more)
    return model


@pytest.mark.parametrize("widths", [(6, 9), (9, 6), (9, 12)], ids=["wide draft", "narrow draft", "both padded"])
@pytest.mark.parametrize("greedy", [True, False])
def test_heads_padded_to_other_widths(widths, greedy):
    """Ids that the draft lacks are read by the target alone; those that the target lacks are never drafted."""
    target, small = (with_tokenizer(table(width)) for width in widths)
    for drafter in (
        Model(small, Chain(3), by_rule=greedy, target=target),
        Model(small, Branching((2, 1)), target=target),
        Staged(small, PromptLookup(), 3, target=target),
    ):
        prompts = [[0, 1], [2], [0, 3, 1], [4, 0]]
        texts, counts = speculate(
            3, target, prompts, [None] * 4, drafter, max_tokens=12, greedy=greedy, policy=Fixed(4)
        )
        plain, _ = speculate(3, target, prompts, [None] * 4, max_tokens=12, greedy=greedy)
        if greedy:
            assert [text.tokens for text in texts] == [text.tokens for text in plain]
        assert counts.accepted > 0


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.5, "top_k": 3}], ids=["plain", "truncated"])
def test_the_law_under_a_narrower_draft(settings):
    """A group that names fewer ids than the target has takes nothing from the others."""
    target, small = transformed(table(7), **settings), table(6, seed=2)
    length = 3 if ALL else 2
    laws = []
    for drafter in (None, Model(small, Chain(2)), Model(small, Branching((2,)))):
        found = {}

        def run(chance, drafter=drafter):
            return speculate(chance, target, [[0]], [None], drafter, max_tokens=length, policy=Fixed(2))[0][0].tokens

        for probability, tokens in enumerate_choices(run):
            found[tokens] = found.get(tokens, 0.0) + probability
        laws.append(found)
    for other in laws[1:]:
        assert other == pytest.approx(laws[0], abs=SUMS)


def test_other_tokenizers_are_refused_and_other_widths_without_any():
    target = with_tokenizer(table(6))
    with pytest.raises(VocabularyError, match=r"tokenizers give different ids.*OtherVocabulary"):
        Model(with_tokenizer(table(6), "f"), target=target)
    with pytest.raises(VocabularyError, match=r"scores 6 ids, the other 9.*OtherVocabulary"):
        Model(table(9), target=target)
    with pytest.raises(VocabularyError):
        reward_guided(0, target, table(9), [0], None, lambda before, step: 1.0, lambda step: True)
    text = reward_guided(
        0, target, with_tokenizer(table(9)), [0], None, lambda before, step: 1.0, lambda step: True, max_tokens=9
    )
    assert max(text.tokens) < 6


@pytest.mark.parametrize(
    "settings", each([{"temperature": 0.3}, {"temperature": 2.5}, {"top_k": 2}, {"top_p": 0.5}], 2)
)
def test_temperature_and_truncation_reach_a_drawn_draft(settings):
    """The model as its own draft is then accepted whenever the target would draw it."""
    model = table(6)
    target = transformed(model, **settings)
    _, counts = speculate(0, target, [[0, 1]] * 20, [None] * 20, Model(model, Chain(3)), max_tokens=16, policy=Fixed(3))
    # What comes after an end of text, and beyond the last token, is drafted in vain.
    assert counts.accepted >= 0.85 * counts.drafted
    assert counts.drafted > 50
    own, _ = (
        speculate(0, target, [[0, 1]] * 20, [None] * 20, Model(draft, Chain(3)), max_tokens=16, policy=Fixed(3))[1]
        for draft in (transformed(model, temperature=1.0), transformed(model, **settings))
    )
    assert own.accepted == counts.accepted


def test_temperature_reaches_drafts_of_particles():
    """A draft model that is transformed itself draws by its own rule, and meets fewer particles."""
    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b"e", None], eos_ids=[END])
    constraint = guided.compile(guided.regex("[a-e]*"), vocabulary)
    model = table(6)
    met = {}
    for name, small in (("shaped", model), ("its own", transformed(model, temperature=1.0 + 1e-9))):
        draft = Drafting(Model(small, Chain(3)), Fixed(3))
        target = transformed(model, temperature=0.2)
        costs = [smc(seed, target, (0,), constraint, n=2, max_tokens=16, draft=draft).cost for seed in range(8)]
        met[name] = sum(cost.met for cost in costs) / sum(cost.drafted for cost in costs)
    assert met["shaped"] > 1.2 * met["its own"]
