"""Formulas of one model on two prompts, each against a naive one, with its identity."""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st

from guided.steer.formulas.prompts import (
    classifier_free,
    context_aware,
    instructive,
    prefix_adaptive,
    self_debiasing,
)
from tests.unit.steer.formulas.formula_twin import INF, close, given, logs, naive_sum, rows, same, softmax, weights


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
    close(
        prefix_adaptive(logits, other, alpha=amount),
        [naive_sum([(1 - amount, logs(a)), (amount, logs(b))]) for a, b in zip(own, theirs)],
    )
    same(context_aware(logits, other, alpha=0.0), logits)
    same(context_aware(logits, logits, alpha=amount), logits)
    same(prefix_adaptive(logits, other, alpha=0.0), logits)
    same(prefix_adaptive(logits, logits, alpha=amount), logits)
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
