"""How events cross from threads to readers."""

from __future__ import annotations

import asyncio
import threading

import pytest

from guided.errors import GuidedError
from guided.server.scheduling import Event, Failed, Finished, Job, Reason, Stream, Token
from guided.server.scheduling.stream import deliver

END = Finished(Reason.STOP, "", 1, 0, 0, whole=True)


def token(number: int) -> Token:
    return Token(number, b"", "", 0.0, 0.0, 0.0)


async def read(stream: Stream) -> list[Event]:
    return [event async for event in stream]


def test_events_come_in_order_and_the_last_one_ends_the_iteration() -> None:
    async def run() -> None:
        streams = [Stream(lambda: None) for _ in range(3)]
        readers = [asyncio.create_task(read(stream)) for stream in streams]
        await asyncio.sleep(0)

        def write() -> None:
            for number in range(50):
                deliver([(stream, [token(number)]) for stream in streams])
            deliver([(streams[0], [END]), (streams[1], [Failed(GuidedError("no"))]), (streams[2], [token(50), END])])

        thread = threading.Thread(target=write)
        thread.start()
        found = await asyncio.gather(*readers)
        thread.join()
        assert [len(events) for events in found] == [51, 51, 52]
        assert [event.id for event in found[2][:-1]] == list(range(51))  # type: ignore[union-attr]
        assert found[0][-1] is END and isinstance(found[1][-1], Failed)
        assert await read(streams[0]) == []

    asyncio.run(run())


def test_a_reader_that_was_cancelled_loses_nothing() -> None:
    async def run() -> None:
        stream = Stream(lambda: None)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(stream), 0.01)
        deliver([(stream, [token(1), END])])
        assert await read(stream) == [token(1), END]

    asyncio.run(run())


def test_leaving_a_stream_cancels_its_job() -> None:
    cancelled: list[bool] = []

    async def run() -> None:
        with pytest.raises(KeyError):
            async with Stream(lambda: cancelled.append(True)):
                raise KeyError
        assert cancelled == [True]

    asyncio.run(run())


def test_events_of_a_loop_that_is_gone_cancel_the_job() -> None:
    cancelled: list[bool] = []

    async def make() -> Stream:
        return Stream(lambda: cancelled.append(True))

    stream = asyncio.run(make())
    deliver([(stream, [token(1)])])
    assert cancelled == [True]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt", ()),
        ("max_new_tokens", 0),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_p", float("nan")),
        ("top_k", -1),
        ("seed", -1),
        ("stop", ("a", "")),
        ("alternatives", -1),
    ],
)
def test_numbers_that_make_no_sense_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(GuidedError) as caught:
        Job(**{"prompt": (1,), field: value})  # type: ignore[arg-type]
    assert caught.value.where == field
