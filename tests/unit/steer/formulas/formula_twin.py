"""The naive side of the formulas: one row at a time, lists of floats; and random logits to compare them on.

A sum with -inf is taken as a pair (how often -L, rest).  Random logits have ties from a grid, -inf, one token, steep
and flat rows.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given as given_all
from hypothesis import settings
from hypothesis import strategies as st

INF = math.inf


def given(*strategies):
    """Fewer examples than elsewhere, since each has several rows."""
    return lambda test: settings(max_examples=20)(given_all(*strategies)(test))


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


def cut(row, kept):
    return [value if keep else -INF for value, keep in zip(row, kept)]


def naive_head(row, alpha):
    p = softmax(row)
    return [value >= alpha * max(p) * (1 - 1e-12) for value in p]


def kl(p, q):
    return sum(a * (math.log(a) - log(b)) if b > 0 else INF for a, b in zip(p, q) if a > 0)


def close(ours, theirs, tolerance=1e-5):
    assert ours.dtype in (torch.float32, torch.float64)
    assert not torch.isnan(ours).any()
    got = [softmax(row) for row in ours.double().tolist()]
    np.testing.assert_allclose(got, theirs, atol=tolerance)


def same(ours, logits, tolerance=1e-9):
    close(ours, [softmax(row) for row in logits.tolist()], tolerance)


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
