"""Every formula against a naive one in plain Python floats, its identity, and numbers at the edge."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given as given_all
from hypothesis import settings
from hypothesis import strategies as st

from guided.steer.formulas.combining import candidates, nucleus, plausible
from guided.steer.formulas.contrast import contrastive, contrastive_reasoning, dexperts, proxy_tuning
from guided.steer.formulas.experts import mixture, product
from guided.steer.formulas.history import (
    RESISTANCE,
    contrastive_search,
    entropy_bits,
    grad,
    momentum,
    repetitions,
    wants_large,
)
from guided.steer.formulas.layers import (
    Divergence,
    decore,
    divergences,
    dola,
    dynamic_focus,
    entropy,
    layers_over_layers,
)
from guided.steer.formulas.masked import masked_softmax
from guided.steer.formulas.prompts import classifier_free, context_aware, instructive, self_debiasing
from guided.steer.formulas.rewards import args, arm, controlled, fudge, rad

INF = math.inf


def given(*strategies):
    """Fewer examples than elsewhere, since each has several rows."""
    return lambda test: settings(max_examples=20)(given_all(*strategies)(test))


# --- the naive side: one row at a time, lists of floats; -inf is a pair (how often -L, rest) -------------------------


def softmax(row):
    high = max(row)
    if high == -INF:
        return [0.0] * len(row)
    exps = [math.exp(value - high) for value in row]
    return [value / sum(exps) for value in exps]


def log(p):
    return math.log(p) if p > 0 else -INF


def logs(row):
    high = max(row)
    if high == -INF:
        return list(row)
    total = math.log(sum(math.exp(value - high) for value in row))
    return [value - high - total for value in row]


def naive_sum(terms):
    """The softmax of sum w * row, the limit for L -> inf with -L for every -inf; the first row rules out."""
    width = len(terms[0][1])
    pairs = []
    for token in range(width):
        if terms[0][1][token] == -INF:
            pairs.append(None)
            continue
        level = -sum(weight for weight, row in terms if row[token] == -INF and weight)
        rest = sum(weight * row[token] for weight, row in terms if row[token] != -INF)
        pairs.append((level, rest))
    # A level below 0 is excluded by someone with a positive weight: never revived.
    top = max((level for level, _ in filter(None, pairs)), default=0)
    top = max(top, 0)
    least = top - 1e-5 * (1 + top)  # weights that are equal but for rounding, or next to none
    return softmax([pair[1] if pair is not None and pair[0] >= least else -INF for pair in pairs])


def restricted(probabilities, kept):
    part = [p if keep else 0.0 for p, keep in zip(probabilities, kept)]
    total = sum(part)
    return [p / total for p in part] if total else part


def naive_head(row, alpha):
    p = softmax(row)
    return [value >= alpha * max(p) * (1 - 1e-12) for value in p]


def close(ours, theirs, tolerance=1e-5):
    assert ours.dtype in (torch.float32, torch.float64)
    assert not torch.isnan(ours).any()
    got = [softmax(row) for row in ours.double().tolist()]
    np.testing.assert_allclose(got, theirs, atol=tolerance)


def same(ours, logits, tolerance=1e-9):
    close(ours, [softmax(row) for row in logits.tolist()], tolerance)


# --- random logits: ties from a grid, -inf, one token, steep and flat rows -------------------------------------------


@st.composite
def rows(draw, count=2, excluded=True):
    n = draw(st.integers(1, 3))
    width = draw(st.integers(1, 7))
    scale = draw(st.sampled_from([0.5, 3.0, 20.0]))
    number = st.integers(-6, 6).map(lambda value: scale * value / 6)
    real = st.floats(-scale, scale, allow_nan=False).map(lambda value: round(value, 3))
    value = st.one_of(number, real, *([st.just(-INF)] if excluded else []))
    found = []
    for _ in range(count):
        tensor = []
        for _ in range(n):
            row = draw(st.lists(value, min_size=width, max_size=width))
            if max(row) == -INF:
                row[draw(st.integers(0, width - 1))] = 0.0
            tensor.append(row)
        found.append(torch.tensor(tensor, dtype=torch.float64))
    return found


weights = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0])


@given(rows(), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.sampled_from([0.5, 1.0]))
def test_contrastive(pair, alpha, temperature):
    expert, amateur = pair
    expected = []
    for row, other in zip(expert.tolist(), amateur.tolist()):
        scaled = logs([value / temperature for value in other])
        contrast = naive_sum([(1, logs(row)), (-1, scaled)])
        # The plausible set cuts what the limit of infinite contrasts has left.
        kept = naive_head(row, alpha)
        expected.append(restricted(contrast, kept))
    got = contrastive(expert, amateur, alpha=alpha, temperature=temperature)
    for row, wanted in zip(got, expected):
        if sum(wanted):
            close(row[None], [wanted])


@given(rows(), st.sampled_from([0.0, 0.1, 0.5, 1.0]), weights)
def test_contrastive_reasoning(pair, alpha, beta):
    expert, amateur = pair
    for row, other, got in zip(
        expert.tolist(), amateur.tolist(), contrastive_reasoning(expert, amateur, alpha=alpha, beta=beta)
    ):
        wanted = restricted(naive_sum([(1 + beta, row), (-beta, other)]), naive_head(row, alpha))
        if sum(wanted):
            close(got[None], [wanted])


@given(rows(1), st.sampled_from([0.1, 0.5]))
def test_contrast_with_oneself(single, alpha):
    (logits,) = single
    head = [naive_head(row, alpha) for row in logits.tolist()]
    uniform = [[keep / sum(kept) for keep in kept] for kept in head]
    close(contrastive(logits, logits, alpha=alpha, temperature=1.0), uniform)
    own = [restricted(softmax(row), kept) for row, kept in zip(logits.tolist(), head)]
    close(contrastive_reasoning(logits, logits, alpha=alpha, beta=0.7), own)
    close(contrastive_reasoning(logits, logits, alpha=alpha, beta=0.0), own)
    same(contrastive_reasoning(logits, logits.flip(0), alpha=0.0, beta=0.0), logits)


@given(rows(3), weights, st.sampled_from([0.3, 0.9, 1.0]))
def test_dexperts(triple, alpha, top_p):
    base, expert, anti = triple
    got = dexperts(base, expert, anti, alpha=alpha, top_p=top_p)
    for row, plus, minus, ours in zip(base.tolist(), expert.tolist(), anti.tolist(), got):
        p = softmax(row)
        kept = [True] * len(row)
        if top_p < 1:
            ordered = sorted(p, reverse=True)
            sums = [sum(ordered[: n + 1]) for n in range(len(p))]
            if any(abs(total - top_p) < 1e-9 for total in sums):
                continue  # which side of the edge is a matter of rounding
            least = ordered[next(n for n, total in enumerate(sums) if total >= top_p)] - 1e-12
            kept = [value >= least for value in p]
        wanted = restricted(naive_sum([(1, row), (alpha, plus), (-alpha, minus)]), kept)
        if sum(wanted):
            close(ours[None], [wanted])


@given(rows(2))
def test_dexperts_and_proxies_are_the_identity(pair):
    base, other = pair
    same(dexperts(base, other, base, alpha=0.0, top_p=1.0), base)
    same(dexperts(base, other, other, alpha=2.0, top_p=1.0), base)
    same(proxy_tuning(base, other, other), base)
    same(proxy_tuning(base, other, base, alpha=0.0), base)


@given(rows(3), weights)
def test_proxy_tuning(triple, alpha):
    base, tuned, untuned = triple
    wanted = [
        naive_sum([(1, row), (alpha, plus), (-alpha, minus)])
        for row, plus, minus in zip(base.tolist(), tuned.tolist(), untuned.tolist())
    ]
    close(proxy_tuning(base, tuned, untuned, alpha=alpha), wanted)


@given(rows(3), st.lists(weights, min_size=3, max_size=3).filter(any))
def test_pools(triple, pool):
    ours = [each.tolist() for each in triple]
    n = len(ours[0])
    mixed = []
    for row in range(n):
        p = [softmax(each[row]) for each in ours]
        mixed.append([sum(w * one[token] for w, one in zip(pool, p)) / sum(pool) for token in range(len(p[0]))])
    close(mixture(triple[0], triple[1:], pool), mixed)
    multiplied = [naive_sum([(w, logs(each[row])) for w, each in zip(pool, ours)]) for row in range(n)]
    close(product(triple[0], triple[1:], pool), multiplied)
    same(mixture(triple[0], triple[1:], [1, 0, 0]), triple[0])
    same(product(triple[0], triple[1:], [1, 0, 0]), triple[0])


@given(rows(), weights)
def test_two_prompts(pair, amount):
    logits, other = pair
    own, theirs = logits.tolist(), other.tolist()
    close(
        context_aware(logits, other, alpha=amount),
        [naive_sum([(1 + amount, a), (-amount, b)]) for a, b in zip(own, theirs)],
    )
    close(
        classifier_free(logits, other, scale=amount),
        [naive_sum([(amount, logs(a)), (1 - amount, logs(b))]) for a, b in zip(own, theirs)],
    )
    close(instructive(logits, other, epsilon=amount), [naive_sum([(1, a), (-amount, b)]) for a, b in zip(own, theirs)])
    same(context_aware(logits, other, alpha=0.0), logits)
    same(context_aware(logits, logits, alpha=amount), logits)
    same(classifier_free(logits, other, scale=1.0), logits)
    same(classifier_free(logits, logits, scale=amount), logits)
    same(instructive(logits, other, epsilon=0.0), logits)


@given(rows(excluded=False))
def test_no_guidance_is_the_unconditional_model(pair):
    same(classifier_free(*pair, scale=0.0), pair[1])


@given(rows(1), st.sampled_from([0.1, 0.3, 0.9]))
def test_an_instruction_that_changes_nothing_keeps_the_order(single, epsilon):
    (logits,) = single
    got = instructive(logits, logits, epsilon=epsilon)
    same(got, torch.where(logits.isneginf(), -INF, (1 - epsilon) * logits))


@given(rows(3), st.sampled_from([0.0, 1.0, 50.0]), st.sampled_from([0.0, 0.01, 1.0]))
def test_self_debiasing(triple, decay, epsilon):
    logits, *biased = triple
    wanted = []
    for row in range(len(logits)):
        own = softmax(logits[row].tolist())
        others = [softmax(each[row].tolist()) for each in biased]
        scaled = []
        for token, p in enumerate(own):
            excess = max(0.0, max(one[token] for one in others) - p)
            scaled.append(p * max(epsilon, math.exp(-decay * excess)))
        wanted.append([value / sum(scaled) for value in scaled])
    close(self_debiasing(logits, biased, decay=decay, epsilon=epsilon), wanted)
    same(self_debiasing(logits, biased, decay=0.0), logits)
    same(self_debiasing(logits, []), logits)
    same(self_debiasing(logits, [logits]), logits)


def kl(p, q):
    return sum(a * (math.log(a) - log(b)) if b > 0 else INF for a, b in zip(p, q) if a > 0)


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
        np.testing.assert_allclose(got, found, atol=1e-9)
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


@given(rows(2), st.integers(1, 8), weights)
def test_rewards_on_candidates(pair, k, strength):
    logits, values = pair
    values = torch.where(values.isneginf(), 0.5, values)
    ids = candidates(logits, k)
    rewards = values.gather(-1, ids)

    def naive(row, worth, scale):
        order = sorted(range(len(row)), key=lambda token: (-row[token], token))[:k]
        return softmax(
            [
                row[token] + (scale * worth[token] if scale else 0) if token in order else -INF
                for token in range(len(row))
            ]
        )

    own, worth = logits.tolist(), values.tolist()
    close(
        rad(logits, ids, rewards, beta=strength),
        [naive(a, [min(max(value, 0), 1) for value in b], strength) for a, b in zip(own, worth)],
    )
    close(args(logits, ids, rewards, weight=strength), [naive(a, b, strength) for a, b in zip(own, worth)])
    close(controlled(logits, ids, rewards, beta=strength), [naive(a, b, strength) for a, b in zip(own, worth)])
    negative = rewards - 30
    close(
        fudge(logits, ids, negative, strength=strength),
        [naive(a, [value - 30 for value in b], strength) for a, b in zip(own, worth)],
    )
    same(controlled(logits, candidates(logits, 99), values.gather(-1, candidates(logits, 99)), beta=0.0), logits)


def test_rewards_of_minus_infinity_exclude_and_do_not_revive():
    logits = torch.tensor([[1.0, 2.0, -INF]])
    ids = candidates(logits, 3)
    assert ids.tolist() == [[1, 0, 2]]
    got = fudge(logits, ids, torch.tensor([[-INF, -1.0, 0.0]]))
    assert softmax(got[0].tolist()) == [1.0, 0.0, 0.0]
    assert fudge(logits, ids, torch.full((1, 3), -INF), strength=0.0).isfinite().tolist() == [[True, True, False]]


@given(rows(2), weights, st.sampled_from([None, 1, 3]))
def test_arm(pair, beta, k):
    logits, rewards = pair
    kept = None
    if k is not None:
        kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, candidates(logits, k), True)
    got = arm(logits, rewards, beta=beta, top_k=kept)
    for number, (row, worth) in enumerate(zip(logits.tolist(), rewards.tolist())):
        order = sorted(range(len(row)), key=lambda token: (-row[token], token))[:k]
        wanted = restricted(naive_sum([(1, logs(row)), (beta, worth)]), [token in order for token in range(len(row))])
        if sum(wanted):
            close(got[number : number + 1], [wanted])
    same(arm(logits, rewards, beta=0.0, top_k=None), logits)


# --- the text so far -------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2), max_size=25))
def test_repetitions_against_looking_at_every_ngram(text):
    found = repetitions(np.array(text, np.int64), [0, 1, 2, 3], 5)
    for token in range(4):
        whole = [*text, token]
        length = 0
        for n in range(1, 7):
            if n > len(whole):
                break
            gram = whole[len(whole) - n :]
            if any(text[start : start + n] == gram for start in range(len(text) - n + 1)):
                length = n
        assert found[token] == length, (text, token)


@given(rows(1), st.lists(st.integers(0, 8), min_size=7, max_size=7), st.sampled_from([0.0, 0.2, 5.0]))
def test_momentum(single, lengths, alpha):
    (logits,) = single
    ids = candidates(logits, 4)
    repeated = torch.tensor(lengths)[ids]
    got = momentum(logits, ids, repeated, alpha=alpha)
    for number, row in enumerate(logits.tolist()):
        p = softmax(row)
        scores = {}
        for token in ids[number].tolist():
            if row[token] > -INF:
                barred = lengths[token] > 5
                resistance = 0 if barred else RESISTANCE[lengths[token]]
                scores[token] = (-1 if barred and alpha else 0, p[token] - alpha * resistance)
        best = max(level for level, _ in scores.values())
        for token in range(len(row)):
            wanted = scores[token][1] if token in scores and scores[token][0] == best else -INF
            assert got[number, token].item() == pytest.approx(wanted, abs=1e-9)
    assert torch.equal(momentum(logits, ids, repeated, alpha=0.0).argmax(-1), logits.argmax(-1))


def test_momentum_prefers_the_new_and_keeps_a_sure_token():
    unsure = torch.log(torch.tensor([[0.4, 0.35, 0.25]]))
    ids = candidates(unsure, 3)
    assert momentum(unsure, ids, torch.tensor([[1, 0, 0]])).argmax() == 1
    sure = torch.log(torch.tensor([[0.8, 0.15, 0.05]]))
    assert momentum(sure, ids, torch.tensor([[1, 0, 0]])).argmax() == 0


@given(rows(2), st.sampled_from([0.0, 0.6, 1.0]))
def test_contrastive_search(pair, alpha):
    logits, other = pair
    similarity = torch.tanh(torch.where(other.isneginf(), 0.0, other))
    ids = candidates(logits, 3)
    got = contrastive_search(logits, ids, similarity.gather(-1, ids), alpha=alpha)
    for number, row in enumerate(logits.tolist()):
        p = softmax(row)
        for token in range(len(row)):
            inside = token in ids[number].tolist() and row[token] > -INF
            wanted = (1 - alpha) * p[token] - alpha * similarity[number, token].item() if inside else -INF
            assert got[number, token].item() == pytest.approx(wanted, abs=1e-9)
    one = candidates(logits, 1)
    assert contrastive_search(logits, one, similarity.gather(-1, one)).argmax(-1).tolist() == one[:, 0].tolist()


@given(rows(2), weights)
def test_grad(pair, weight):
    logits, other = pair
    evidence = torch.sigmoid(torch.where(other.isneginf(), 0.0, other))
    wanted = []
    for row, proof in zip(logits.tolist(), evidence.tolist()):
        unsure = -sum(p * math.log(p) for p in softmax(row) if p > 0) / math.log(max(len(row), 2))
        wanted.append(softmax([value + weight * unsure * e for value, e in zip(row, proof)]))
    close(grad(logits, evidence, weight=weight), wanted)
    same(grad(logits, evidence, weight=0.0), logits)
    same(grad(logits, torch.zeros_like(logits), weight=weight), logits)


@given(rows(1))
def test_entropies(single):
    wanted = [-sum(p * math.log2(p) for p in softmax(row) if p > 0) for row in single[0].tolist()]
    np.testing.assert_allclose(entropy_bits(single[0]), wanted, atol=1e-9)
    np.testing.assert_allclose(entropy(single[0])[:, 0] / math.log(2), wanted, atol=1e-9)


def test_switching():
    assert not wants_large([], 5, False, threshold=-1.0, least=0)
    assert wants_large([0.0], 5, False, threshold=-1.0, least=5)
    assert not wants_large([0.0], 4, False, threshold=-1.0, least=5)
    assert not wants_large([9.0, 9.0], 9, True, threshold=INF, least=0)
    assert wants_large([0.0], 1, True, threshold=INF, least=2), "a switch back waits, too"


# --- edges -----------------------------------------------------------------------------------------------------------


@given(rows(1), st.integers(1, 9))
def test_candidates_are_the_likeliest_and_lower_ids_win_ties(single, k):
    for row, ids in zip(single[0].tolist(), candidates(single[0], k).tolist()):
        assert ids == sorted(range(len(row)), key=lambda token: (-row[token], token))[:k]


def test_candidates_do_not_depend_on_the_batch():
    row = torch.zeros(1, 1000)
    assert torch.equal(candidates(row.expand(5, -1), 7), candidates(row, 7).expand(5, -1))


def test_plausible_keeps_a_least_number():
    logits = torch.tensor([[5.0, 1.0, 0.0, 0.0]])
    assert plausible(logits, 0.5).tolist() == [[True, False, False, False]]
    assert plausible(logits, 0.5, min_tokens_to_keep=2).tolist() == [[True, True, False, False]]
    assert plausible(logits, 0.5, min_tokens_to_keep=3).tolist() == [[True] * 4], "ties stay together"
    assert plausible(logits, 0.0).all()
    assert nucleus(torch.zeros(1, 4), 0.1).all(), "ties stay together"
    assert nucleus(logits, 0.0).tolist() == [[True, False, False, False]]


def test_a_model_that_excludes_everything_gives_no_nan():
    empty = torch.full((2, 3), -INF)
    some = torch.tensor([[0.0, 1.0, -INF], [-INF, -INF, 2.0]])
    for got in (
        contrastive(empty, some),
        contrastive_reasoning(empty, some),
        product(some, [empty], [1, 1]),
        classifier_free(empty, some),
        mixture(empty, [empty], [1, 1]),
        decore(empty, some),
        dynamic_focus(empty, some[None]),
        dola(empty, torch.stack([some, empty])),
        self_debiasing(empty, [some]),
        grad(empty, torch.zeros_like(empty)),
    ):
        assert got.isneginf().all()
    assert masked_softmax(some, torch.zeros_like(some, dtype=torch.bool)).isneginf().all()


def test_an_amateur_that_excludes_what_the_expert_says():
    expert, amateur = torch.tensor([[1.0, 1.0, 0.5]]), torch.tensor([[0.0, -INF, -INF]])
    got = contrastive_reasoning(expert, amateur, alpha=0.0, beta=0.5)
    assert got.isneginf().tolist() == [[True, False, False]], "the limit of an amateur that is ever surer"
    assert softmax(got[0].tolist()) == pytest.approx(softmax([-INF, 1.5, 0.75]))


def test_what_comes_in_excluded_stays_excluded():
    logits, other = torch.tensor([[0.0, -INF]]), torch.tensor([[-INF, 0.0]])
    for got in (
        contrastive(logits, other),
        proxy_tuning(logits, other, logits),
        context_aware(logits, other),
        classifier_free(logits, other, scale=0.0),
        instructive(logits, other),
        decore(logits, other),
    ):
        assert got[0, 1] == -INF


def test_masked_softmax_is_renormalisation():
    logits = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    allowed = torch.tensor([[True, False, True, True, False]] * 3)
    p = torch.softmax(logits, -1) * allowed
    wanted = (p / p.sum(-1, keepdim=True)).tolist()
    close(masked_softmax(logits, allowed), wanted)
    for temperature in (0.5, 2.0):
        cooled = torch.log(torch.tensor(wanted, dtype=torch.float64)) / temperature
        same(masked_softmax(logits / temperature, allowed), cooled)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 50])
def test_dtype_shape_and_inputs_are_kept(dtype, width):
    generator = torch.Generator().manual_seed(1)
    a, b, c = (torch.randn(3, width, generator=generator).to(dtype) for _ in range(3))
    ids = candidates(a, 4)
    values = b.gather(-1, ids)
    before = [each.clone() for each in (a, b, c)]
    results = [
        contrastive(a, b),
        contrastive_reasoning(a, b),
        dexperts(a, b, c),
        proxy_tuning(a, b, c),
        mixture(a, [b], [1, 1]),
        product(a, [b], [1, 1]),
        context_aware(a, b),
        classifier_free(a, b),
        instructive(a, b),
        self_debiasing(a, [b, c]),
        dola(a, torch.stack([b, c])),
        layers_over_layers(a, b, c, b),
        decore(a, b),
        dynamic_focus(a, torch.stack([b, c])),
        rad(a, ids, values),
        args(a, ids, values),
        fudge(a, ids, values),
        controlled(a, ids, values),
        arm(a, b, top_k=None),
        momentum(a, ids, torch.zeros_like(ids)),
        contrastive_search(a, ids, values),
        grad(a, b.sigmoid()),
        masked_softmax(a, b > 0),
    ]
    for got in results:
        assert got.dtype == dtype and got.shape == a.shape and not torch.isnan(got).any()
        assert got.data_ptr() != a.data_ptr()
    assert all(torch.equal(x, y) for x, y in zip(before, (a, b, c)))
