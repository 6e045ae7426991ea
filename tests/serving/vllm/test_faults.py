"""What goes wrong around a server: hostile schemas, users who leave, processes that are killed, and a new beginning."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: make test-serving")

from guided.serving.vllm.asked import WHOLE
from tests.serving.vllm.cases import numbered, valid
from tests.serving.vllm.conftest import serving
from tests.serving.vllm.hostile import hostile

HOSTILE = 200
PATIENCE = 240
"""Seconds after which a request counts as hanging."""


@pytest.fixture(scope="module")
def running(model_path, tmp_path_factory):
    """A server of this file's own, and its process: the tests leave it as others should not find it."""
    with serving(model_path, tmp_path_factory.mktemp("faults") / "log") as found:
        yield found


def body(schema, max_tokens=60, **more):
    return json.dumps(more | {
        "model": "nano", "max_tokens": max_tokens, "temperature": 0, "messages": [{"role": "user", "content": "Record:"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    }).encode()  # fmt: skip


def answered(address, schema, max_tokens=60, **more):
    """The status of an answer, its text, and the seconds that it took."""
    url, began = f"{address}/v1/chat/completions", time.perf_counter()
    request = urllib.request.Request(url, body(schema, max_tokens, **more), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            status, data = answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), time.perf_counter() - began
    return status, data["choices"][0]["message"]["content"], time.perf_counter() - began


def family(pid):
    """A process and all that it started."""
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in task.read_text().split()]
    return found


def memory(pid):
    """Bytes that a process and all that it started hold, each with what it shares."""
    pages = 0
    for each in family(pid):
        with contextlib.suppress(OSError):
            pages += int(Path(f"/proc/{each}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def ordinary(address, numbers):
    """The seconds that ordinary requests take, one after the other; all of them are right."""
    seconds = []
    for n in numbers:
        # The packaged model may write white space until it is cut off.
        status, text, took = answered(address, numbered(n), vllm_xargs={WHOLE: 1})
        assert status == 200 and valid(numbered(n), text), text
        seconds.append(took)
    return sorted(seconds)


def test_hostile_schemas_at_once(running):
    """Each is answered, the others are right and wait no longer than for those before them, and memory is bounded.

    vLLM checks requests in their order, on one thread unless it is told otherwise (``--renderer-num-workers``).
    """
    address, process = running
    alone = ordinary(address, range(20))
    before = memory(process.pid)
    with concurrent.futures.ThreadPoolExecutor(HOSTILE) as pool:
        hostiles = [pool.submit(answered, address, hostile(n), 8) for n in range(HOSTILE)]
        beside, n = [], 100
        while not all(each.done() for each in hostiles):
            beside += ordinary(address, [n])
            n += 1
    statuses = Counter(each.result()[0] for each in hostiles)
    after = memory(process.pid)
    longest = max(each.result()[2] for each in hostiles)
    figures = {
        "alone": alone[len(alone) // 2], "beside": max(beside), "hostile": longest, "MB": (after - before) >> 20,
        "statuses": dict(statuses),
    }  # fmt: skip
    print(figures)
    assert set(statuses) <= {200, 400} and statuses[400] > 50, figures
    assert all("guided: " in each.result()[1] for each in hostiles if each.result()[0] == 400)
    assert after - before < 2 << 30, figures
    # What waits behind them all, and a second for its own text on a slow machine.
    assert max(beside) < longest + max(1.0, 4 * alone[-1]), figures
    again = ordinary(address, range(400, 420))
    assert again[len(again) // 2] < max(1.0, 4 * alone[-1]), (figures, again)


def test_users_who_leave(running):
    """A connection is closed before, while and after its schema is compiled: the next request is served."""
    address, _ = running
    place = urlsplit(address)
    for n in range(24):
        data = body(hostile(1000 + 8 * (n % 3) + (0, 3, 4)[n % 3]) if n % 2 else numbered(300 + n))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        with socket.create_connection((place.hostname, place.port), 20) as connection:
            connection.sendall(head.encode() + data)
            time.sleep(0.03 * (n % 8))
    ordinary(address, range(350, 360))
    until = time.monotonic() + PATIENCE
    while running_requests(address) and time.monotonic() < until:
        time.sleep(0.2)
    assert running_requests(address) == 0


def running_requests(address):
    with urllib.request.urlopen(f"{address}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(names) and "{" in line)


N_KILLED = 16
"""Requests that run when the engine is killed."""


def test_a_killed_engine_and_a_new_beginning(model_path, tmp_path):
    """Requests that run fail and do not hang, the server ends, and another serves the same schemas."""
    with serving(model_path, tmp_path / "first") as (address, process):
        before = answered(address, numbered(7))
        engine = [pid for pid in family(process.pid) if "EngineCore" in Path(f"/proc/{pid}/cmdline").read_text()]
        assert engine
        # Alone, one such request may be answered before anybody sees that it runs.
        long = {"type": "array", "items": {"type": "integer"}, "minItems": 300}
        with concurrent.futures.ThreadPoolExecutor(N_KILLED) as pool:
            ended = [pool.submit(answered, address, long, 400) for _ in range(N_KILLED)]
            while running_requests(address) < N_KILLED / 2 and not all(one.done() for one in ended):
                time.sleep(0.02)
            os.kill(engine[0], signal.SIGKILL)
            failed = 0
            for one in ended:
                try:
                    failed += one.result(PATIENCE)[0] == 500
                except OSError:
                    failed += 1
        assert failed
        assert process.wait(PATIENCE) is not None
    with serving(model_path, tmp_path / "second") as (address, _):
        assert answered(address, numbered(7))[:2] == before[:2]
