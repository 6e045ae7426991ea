"""Best spans against scoring every span by itself; greedy answers can be worse."""

from __future__ import annotations

import numpy as np
import pytest

import guided.search.spans as spans
from guided.errors import GuidedError
from guided.lm.table import TableModel
from guided.search.spans import Span, best_spans
from tests.amounts import each


def naive(model: TableModel, prompt, passage, ends, opening=()) -> dict[tuple[int, int], float]:
    """Every span's score, one conditional probability at a time."""

    def logprob(text, tokens):
        row = model.logprobs(tuple(text))
        row = row - np.logaddexp.reduce(row)
        return np.logaddexp.reduce([row[token] for token in tokens])

    found = {}
    for start in range(len(passage)):
        for stop in range(start + 1, len(passage) + 1):
            text, score = [*prompt, *opening], 0.0
            for token in passage[start:stop]:
                score += logprob(text, [token])
                text.append(token)
            found[start, stop] = score + logprob(text, ends)
    return found


@pytest.mark.parametrize("seed", each(range(6), 2))
@pytest.mark.parametrize("positions", [1, 3, 7, 10_000])
def test_against_every_span_by_itself(seed, positions, monkeypatch):
    model = TableModel.random(seed, width=6)
    monkeypatch.setattr(spans, "SCORED_BYTES", positions * 8 * model.width)
    rng = np.random.default_rng(seed)
    passage = rng.integers(0, 5, 9).tolist()
    scores = naive(model, [1, 2], passage, [5, 3], [0])
    found = best_spans(model, [1, 2], passage, end_ids=[3, 5], opening=[0], n_best=100)
    assert len(found) == len(scores) == 45
    for span in found:
        assert abs(span.score - scores[span.start, span.stop]) < 1e-9
    assert [span.score for span in found] == sorted((span.score for span in found), reverse=True)
    (best,) = best_spans(model, [1, 2], passage, end_ids=[3, 5], opening=[0])
    assert best == found[0] and abs(best.score - max(scores.values())) < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_bounds(seed):
    model = TableModel.random(seed, width=5)
    passage = np.random.default_rng(seed).integers(0, 4, 10).tolist()
    scores = naive(model, [0], passage, model.eos_ids)
    for longest, starts, stops in (
        (3, None, None),
        (None, [0, 4, 7, 99], [3, 4, 10]),
        (2, [1, 2], [3]),
        (1, None, [5]),
    ):
        allowed = {
            span: score
            for span, score in scores.items()
            if (longest is None or span[1] - span[0] <= longest)
            and (starts is None or span[0] in starts)
            and (stops is None or span[1] in stops)
        }
        found = best_spans(model, [0], passage, longest=longest, starts=starts, stops=stops, n_best=99)
        assert {(span.start, span.stop) for span in found} == set(allowed)
        assert abs(found[0].score - max(allowed.values())) < 1e-9


def test_the_greedy_span_can_be_worse():
    # Greedy takes 0 (0.6) and then has little to end with; the span [1] is the better answer.
    model = TableModel.of(
        {(9,): _row({0: 0.6, 1: 0.4}), (9, 1): _row({2: 0.9, 0: 0.1})}, otherwise=_row({2: 0.1, 0: 0.9})
    )
    assert best_spans(model, [9], [0, 1], end_ids=[2]) == [Span(1, 2, pytest.approx(np.log(0.4 * 0.9)))]


def test_equal_scores_go_to_the_first_span():
    model = TableModel(lambda tokens: np.zeros(4), width=4, eos_ids=[3])
    assert best_spans(model, [0], [1, 1, 1], longest=1, n_best=2) == [
        Span(0, 1, pytest.approx(-2 * np.log(4))),
        Span(1, 2, pytest.approx(-2 * np.log(4))),
    ]


def test_cost_is_one_row_for_each_start():
    model = TableModel.random(0, width=8)
    before = model.calls.positions
    best_spans(model, [1], list(range(7)) * 3, longest=4)
    assert model.calls.positions - before <= 1 + 21 * 4


def test_impossible_questions():
    model = TableModel.random(0, width=4)
    for keywords in (
        {"passage": []},
        {"passage": [1], "starts": [1]},
        {"passage": [1, 2], "starts": [1], "stops": [1]},
    ):
        with pytest.raises(GuidedError, match="no span"):
            best_spans(model, [0], **keywords)
    for keywords in ({"end_ids": []}, {"end_ids": [4]}, {"n_best": 0}, {"longest": 0}):
        with pytest.raises(GuidedError):
            best_spans(model, [0], [1], **keywords)


def _row(probabilities: dict[int, float]) -> list[float]:
    return [probabilities.get(token, 0.0) for token in range(10)]
