"""GenARM's trainer: its loss by hand, and that what it learns is the reward that made the preferences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from guided.errors import GuidedError
from guided.lm.table import TableModel
from guided.steer import Product, Stack
from guided.steer.rewards.autoregressive import Preference, fit_preferences, preference_loss

WIDTH, END, START = 4, 3, 0
TEXTS = [(*text, END) for n in (1, 2) for text in itertools.product((1, 2), repeat=n)]
REWARDS = dict(zip(TEXTS, np.random.default_rng(4).normal(0, 1, len(TEXTS)).tolist(), strict=True))


class Table(torch.nn.Module):
    """A model with free scores for every prefix: any law of texts up to three tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.prefixes = {text[:n]: 0 for text in TEXTS for n in range(len(text))}
        self.prefixes = {prefix: number for number, prefix in enumerate(self.prefixes)}
        self.scores = torch.nn.Parameter(torch.zeros(len(self.prefixes) + 1, WIDTH))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        rows = [
            [self.prefixes.get(tuple(row[1 : n + 1]), len(self.prefixes)) for n in range(len(row))]
            for row in tokens.tolist()
        ]
        return self.scores[torch.tensor(rows)]

    def reward(self, text: tuple[int, ...]) -> float:
        laws = self.scores.detach().double().log_softmax(-1)
        return sum(float(laws[self.prefixes[text[:n]], token]) for n, token in enumerate(text))


def preferences(copies: int) -> list[Preference]:
    """Pairs as often as Bradley and Terry's law says."""
    found = []
    for one, other in itertools.permutations(TEXTS, 2):
        share = 1 / (1 + math.exp(REWARDS[other] - REWARDS[one]))
        found += [Preference((START,), one, other)] * round(copies * share)
    return found


def test_the_loss_is_its_equation() -> None:
    torch.manual_seed(1)
    network = Table()
    torch.nn.init.normal_(network.scores)
    pairs = [Preference((START,), TEXTS[0], TEXTS[4]), Preference((START,), TEXTS[3], TEXTS[1])]
    gaps = [network.reward(pair.preferred) - network.reward(pair.other) for pair in pairs]
    wanted = np.mean([math.log(1 + math.exp(-0.3 * gap)) for gap in gaps])
    # Sums of six log-probabilities in float32.
    assert float(preference_loss(network, pairs, 0.3)) == pytest.approx(wanted, abs=1e-5)


def test_it_learns_the_reward_behind_preferences() -> None:
    """By Bradley and Terry's model rewards are known up to a constant, and the table can hold any of them."""
    network, pairs = Table(), preferences(40)
    first = float(preference_loss(network, pairs, 1.0))
    fit_preferences(network, network, pairs, epochs=25, batch=120, rate=0.1)
    assert float(preference_loss(network, pairs, 1.0)) < first - 0.05
    learned = np.array([network.reward(text) for text in TEXTS])
    wanted = np.array([REWARDS[text] for text in TEXTS])
    # Preferences are counted in fortieths: of a difference of 2 that is 0.1.
    np.testing.assert_allclose(learned - learned.mean(), wanted - wanted.mean(), atol=0.15)


def test_a_product_with_it_prefers_what_is_preferred() -> None:
    """The law of a text under `Product` is that of the formula, token by token."""
    network = Table()
    fit_preferences(network, network, preferences(20), epochs=10, batch=100, rate=0.1)

    def table(scores: torch.Tensor) -> TableModel:
        laws = scores.detach().double().log_softmax(-1).numpy()
        return TableModel(
            lambda tokens: laws[network.prefixes.get(tuple(tokens[1:]), len(laws) - 1)], width=WIDTH, eos_ids=[END]
        )

    flat = torch.zeros_like(network.scores)
    both = Stack([Product((table(network.scores),), (1.0, 2.0))]).over(table(flat))
    found = both.start([[START]]).last.logits[0].double().log_softmax(-1)
    wanted = (2 * network.scores.detach().double().log_softmax(-1))[network.prefixes[()]].log_softmax(-1)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_nothing_to_learn_from_is_refused() -> None:
    network = Table()
    for pairs in ([], [Preference((), (1,), (2,))], [Preference((0,), (1,), ())]):
        with pytest.raises(GuidedError, match="no preference"):
            fit_preferences(network, network, pairs)
