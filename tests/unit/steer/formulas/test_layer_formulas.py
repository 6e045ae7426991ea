"""Formulas of inner layers and masked heads, each against a naive one, with its identity."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import strategies as st

from guided.steer.formulas.layers import Divergence, decore, divergences, dola, dynamic_focus, layers_over_layers
from tests.tolerances import SUMS
from tests.unit.steer.formulas.formula_twin import (
    INF,
    close,
    given,
    kl,
    logs,
    naive_head,
    naive_sum,
    restricted,
    rows,
    same,
    softmax,
    weights,
)


@given(rows(4), st.sampled_from(list(Divergence)))
def test_dola(four, divergence):
    logits, *early = four
    for number in range(len(logits)):
        row = logits[number].tolist()
        layers = [each[number].tolist() for each in early]
        found = []
        for layer in layers:
            p, q = softmax(row), softmax(layer)
            middle = [(a + b) / 2 for a, b in zip(p, q)]
            if divergence is Divergence.OFFICIAL:
                found.append((kl(middle, p) + kl(middle, q)) / 2)
            else:
                found.append((kl(p, middle) + kl(q, middle)) / 2)
        stacked = torch.stack(early)[:, number : number + 1]
        got = divergences(logits[number : number + 1], stacked, divergence)[:, 0]
        np.testing.assert_allclose(got, found, atol=SUMS)
        best = sorted(found)
        if len(best) > 1 and best[-1] != INF and best[-1] - best[-2] < 1e-9:
            continue  # which layer is a matter of rounding
        chosen = layers[int(np.argmax(found))]
        wanted = restricted(naive_sum([(1, logs(row)), (-1, logs(chosen))]), naive_head(row, 0.1))
        if sum(wanted):
            close(dola(logits[number : number + 1], stacked, divergence=divergence), [wanted])


@given(rows(2))
def test_dola_with_one_layer_or_an_equal_one(pair):
    logits, early = pair
    head = [naive_head(row, 0.1) for row in logits.tolist()]
    close(dola(logits, logits[None].clone()), [[keep / sum(kept) for keep in kept] for kept in head])
    single = dola(logits, early[None], divergence=Divergence.OFFICIAL)
    assert torch.equal(single, dola(logits, early[None], divergence=Divergence.JENSEN_SHANNON))


def test_the_two_divergences_pick_different_layers():
    rng = np.random.default_rng(0)
    different = 0
    for _ in range(400):
        logits = torch.from_numpy(3 * rng.standard_normal((1, 8)))
        early = torch.from_numpy(3 * rng.standard_normal((4, 1, 8)))
        picked = {each: int(divergences(logits, early, each).argmax()) for each in Divergence}
        different += len(set(picked.values())) > 1
    assert 20 < different < 380


@given(rows(5), weights, weights, weights)
def test_layers_over_layers(five, beta, weight, truth):
    names = [each.tolist() for each in five]
    wanted = []
    for row in range(len(names[0])):
        own, amateur, early, amateur_early, truthful = (logs(each[row]) for each in names)
        wanted.append(
            naive_sum(
                [
                    (1 + beta - truth, own),
                    (-beta, amateur),
                    (weight * (1 + beta), early),
                    (-weight * beta, amateur_early),
                    (truth, truthful),
                ]
            )
        )
    close(layers_over_layers(*five, beta=beta, weight=weight, truth=truth), wanted, 1e-5)
    same(layers_over_layers(*five, beta=0.0, weight=0.0, truth=0.0), five[0])
    same(layers_over_layers(*five[:4], beta=0.0, weight=0.0, truth=0.7), five[0])


@given(rows(), st.sampled_from([None, 0.3]), st.booleans())
def test_decore(pair, cap, normalise):
    logits, masked = pair
    wanted = []
    for row, other in zip(logits.tolist(), masked.tolist()):
        amount = -sum(p * math.log(p) for p in softmax(row) if p > 0)
        if normalise:
            amount /= math.log(max(len(row), 2))
        if cap is not None:
            amount = min(amount, cap)
        wanted.append(naive_sum([(1 + amount, row), (-amount, other)]))
    close(decore(logits, masked, cap=cap, normalise=normalise), wanted)
    same(decore(logits, masked, cap=0.0), logits)
    same(decore(logits, logits, normalise=normalise), logits)


@given(rows(3), st.sampled_from([0.25, 4.0, INF]), st.sampled_from([0.7, 1.0, 1.1]))
def test_dynamic_focus(triple, sigma, temperature):
    logits, *early = triple
    got = dynamic_focus(logits, torch.stack(early), sigma=sigma, temperature=temperature)
    for number, row in enumerate(logits.tolist()):
        p = softmax(row)
        if any(abs(value / max(p) - 0.1) < 1e-9 for value in p):
            continue
        focus = [value > 0.1 * max(p) for value in p]
        cut = [value if keep else -INF for value, keep in zip(row, focus)]
        distances = []
        for each in early:
            other = [value if keep else -INF for value, keep in zip(each[number].tolist(), focus)]
            distances.append(kl(softmax(cut), softmax(other)))
        divisor = temperature * 0.5 ** (sum(distances) / len(distances) / sigma) if sigma < INF else temperature
        if divisor > 1e-3:
            close(got[number : number + 1], [softmax([value / divisor for value in row])])
        assert row[int(got[number].argmax())] == max(row)
    same(dynamic_focus(logits, torch.stack([logits, logits]), temperature=1.0), logits)
