"""Formulas of two models: contrasts, experts and pools, each against a naive one, with its identity."""

from __future__ import annotations

from hypothesis import strategies as st

from guided.steer.formulas.contrast import contrastive, contrastive_reasoning, dexperts, proxy_tuning
from guided.steer.formulas.experts import mixture, product
from tests.unit.steer.formulas.formula_twin import (
    close,
    cut,
    given,
    logs,
    naive_head,
    naive_sum,
    restricted,
    rows,
    same,
    softmax,
    weights,
)


@given(rows(), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.sampled_from([0.5, 1.0]))
def test_contrastive(pair, alpha, temperature):
    expert, amateur = pair
    expected = []
    for row, other in zip(expert.tolist(), amateur.tolist()):
        scaled = logs([value / temperature for value in other])
        # The softmax is over the plausible set, so its limit is, too: no infinite contrast outside of it wins.
        expected.append(naive_sum([(1, cut(logs(row), naive_head(row, alpha))), (-1, scaled)]))
    close(contrastive(expert, amateur, alpha=alpha, temperature=temperature), expected)


@given(rows(), st.sampled_from([0.0, 0.1, 0.5, 1.0]), weights)
def test_contrastive_reasoning(pair, alpha, beta):
    expert, amateur = pair
    for row, other, got in zip(
        expert.tolist(), amateur.tolist(), contrastive_reasoning(expert, amateur, alpha=alpha, beta=beta)
    ):
        wanted = naive_sum([(1 + beta, cut(row, naive_head(row, alpha))), (-beta, other)])
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
        wanted = naive_sum([(1, cut(row, kept)), (alpha, plus), (-alpha, minus)])
        if sum(wanted):  # else the expert excludes all that is left
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
