"""Potentials answered by coroutines and in other processes: batches, time-outs, failures, and the same samples."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

import guided
from guided.infer import AsyncTextScorer, PotentialError, TextScorer, WorkerTextScorer, exact, smc
from guided.lm import TableModel
from guided.testing import check_potential

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
MODEL = TableModel.random(3, width=4)


def lengths(texts):
    return [-0.3 * len(text) for text in texts]


def hangs_on_b(texts):
    if any(text == "b" for text in texts):
        time.sleep(60)
    return [1.0 for _ in texts]


async def awaited(texts):
    await asyncio.sleep(0)
    return lengths(texts)


def test_a_coroutine_is_a_scorer():
    with AsyncTextScorer(VOCABULARY, awaited, scale=2.0) as scorer:
        check_potential(scorer)
        plain = TextScorer(VOCABULARY, lengths, scale=2.0)
        runs = [smc(7, MODEL, (), each, n=8, max_tokens=4) for each in (scorer, plain)]
        assert runs[0].particles == runs[1].particles
        whole = [exact(MODEL, (), each, max_tokens=4).log_ml for each in (scorer, plain)]
        assert whole[0] == pytest.approx(whole[1])


def test_batches_run_side_by_side_and_no_larger_than_asked():
    sizes, running, most = [], 0, 0

    async def ask(texts):
        nonlocal running, most
        sizes.append(len(texts))
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return [float(len(text)) for text in texts]

    with AsyncTextScorer(VOCABULARY, ask, batch=3, concurrency=2) as scorer:
        states = [b"a" * n for n in range(8)]
        assert scorer.complete_each(states) == [float(n) for n in range(8)]
        assert sizes == [3, 3, 2] and most == 2
        scorer.complete_each(states)
        assert len(sizes) == 3  # remembered


def test_answers_that_do_not_come():
    cancelled = []

    async def slow(texts):
        try:
            await asyncio.sleep(60 if "b" in texts else 0)
        except asyncio.CancelledError:
            cancelled.append(texts)
            raise
        return [0.0] * len(texts)

    with AsyncTextScorer(VOCABULARY, slow, timeout=0.05, batch=1) as scorer:
        assert scorer.complete_at(b"a") == 0.0
        with pytest.raises(PotentialError, match=r"did not answer in 0.05 s about 1 texts, 'b'"):
            scorer.complete_at(b"b")
    assert cancelled == [["b"]]
    with AsyncTextScorer(VOCABULARY, slow, timeout=0.05, batch=1, late=-4.0) as scorer:
        assert scorer.complete_each([b"a", b"b"]) == [0.0, -4.0]


@pytest.mark.parametrize("error", [RuntimeError("no route"), TimeoutError("theirs")])
def test_a_service_that_fails_is_an_error(error):
    async def broken(texts):
        raise error

    with (
        AsyncTextScorer(VOCABULARY, broken, late=0.0) as scorer,
        pytest.raises(PotentialError, match=str(error)) as caught,
    ):
        scorer.complete_at(b"a")
    assert caught.value.__cause__ is error
    with pytest.raises(PotentialError, match="closed"):
        scorer.complete_at(b"a")


def test_scores_of_another_number():
    async def short(texts):
        return [0.0]

    with AsyncTextScorer(VOCABULARY, short) as scorer, pytest.raises(PotentialError, match="1 scores for 2 texts"):
        scorer.complete_each([b"a", b"b"])


def test_it_works_where_a_loop_runs():
    async def inside():
        with AsyncTextScorer(VOCABULARY, awaited) as scorer:
            return scorer.complete_at(b"ab")

    assert asyncio.run(inside()) == pytest.approx(-0.6)


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0.0}, {"batch": 0}, {"scale": -1.0}, {"late": math.inf}, {"concurrency": 0}],
    ids=lambda options: next(iter(options)),
)
def test_options_that_mean_nothing(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        AsyncTextScorer(VOCABULARY, awaited, **options)


@pytest.mark.slow
def test_another_process_is_a_scorer_and_may_hang():
    with WorkerTextScorer(VOCABULARY, lengths, processes=2, batch=2) as scorer:
        check_potential(scorer, walks=5, length=5)
        plain = TextScorer(VOCABULARY, lengths)
        runs = [smc(7, MODEL, (), each, n=8, max_tokens=4) for each in (scorer, plain)]
        assert runs[0].particles == runs[1].particles
    with WorkerTextScorer(VOCABULARY, hangs_on_b, batch=1, timeout=1.0, late=-9.0) as scorer:
        assert scorer.complete_each([b"a", b"b", b"aa"]) == [1.0, -9.0, 1.0]
        # Others were started.
        assert scorer.complete_at(b"ab") == 1.0
    with WorkerTextScorer(VOCABULARY, hangs_on_b, timeout=1.0) as scorer, pytest.raises(PotentialError, match="1 s"):
        scorer.complete_at(b"b")
    with pytest.raises(PotentialError, match="closed"):
        scorer.complete_at(b"b")


def test_a_process_answers_and_raises_what_its_function_raises():
    with WorkerTextScorer(VOCABULARY, list, scale=2.0) as scorer:
        assert scorer.complete_each([b"3", b"-1"]) == [6.0, -2.0]
        with pytest.raises(PotentialError, match="could not convert"):
            scorer.complete_at(b"a")
