"""The interpreter changes hands sooner as long as anybody in there works, and then as before."""

from __future__ import annotations

import asyncio
import sys

import pytest

from guided.hf import LoadedModel
from guided.server.scheduling import Finished, Scheduler
from guided.server.scheduling.handing_over import SECONDS, handing_over
from tests.unit.server.scheduling.test_scheduler import job, model, serve

__all__ = ["model"]


def test_the_last_to_leave_gives_back_what_was_usual() -> None:
    usual = sys.getswitchinterval()
    with handing_over():
        with handing_over():
            assert sys.getswitchinterval() == pytest.approx(SECONDS)
        assert sys.getswitchinterval() == pytest.approx(SECONDS)
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_nothing_is_lost_of_what_was_usual() -> None:
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.0043)
        begun = sys.getswitchinterval()
        for _ in range(5):
            with handing_over():
                pass
        assert sys.getswitchinterval() == pytest.approx(begun)
    finally:
        sys.setswitchinterval(usual + 5e-7)


def test_what_somebody_set_lower_stays() -> None:
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(SECONDS / 4)
        lower = sys.getswitchinterval()  # whole microseconds
        assert lower < SECONDS
        with handing_over():
            assert sys.getswitchinterval() == pytest.approx(lower)
        assert sys.getswitchinterval() == pytest.approx(lower)
    finally:
        sys.setswitchinterval(usual + 5e-7)


def test_a_scheduler_hands_over_while_texts_grow(model: LoadedModel) -> None:
    usual = sys.getswitchinterval()

    async def work(scheduler: Scheduler) -> None:
        async with await scheduler.submit(job(model, 1)) as stream:
            await anext(stream)
            assert sys.getswitchinterval() == pytest.approx(SECONDS)
            rest = [event async for event in stream]
        assert isinstance(rest[-1], Finished)
        for _ in range(200):
            if sys.getswitchinterval() > SECONDS * 2:
                break
            await asyncio.sleep(0.01)
        assert sys.getswitchinterval() == pytest.approx(usual)

    serve(model, work)
