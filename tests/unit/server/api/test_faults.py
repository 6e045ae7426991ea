"""What goes wrong between a server and its clients: each fault is told, and none of them is anybody else's."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import httpx2
import pytest

from guided.hf.loading import LoadedModel
from guided.server.api.settings import Settings
from guided.server.scheduling import SchedulerLimits
from tests.unit.server.api.served import ADA, AS_PERSON, Served, served, until

LONG: dict[str, Any] = {
    "model": "nano", "prompt": "JSON", "max_tokens": 900, "guided": {"grammar": {"type": "regex", "text": "(a|b){300}"}},
}  # fmt: skip
SHORT: dict[str, Any] = {"model": "nano", "messages": ADA, "response_format": AS_PERSON, "temperature": 0}


def code_of(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"model": NaN}', "malformed_json"),
        (b"\xff\xfe", "malformed_json"),
        (b'{"a":' * 50_000, "malformed_json"),
        (b"[]", "invalid_value"),
        (b"null", "invalid_value"),
        (b"", "missing_required_parameter"),
        (b'{"model": "nano"}', "missing_required_parameter"),
    ],
)
def test_bodies_that_are_none(http: httpx2.Client, data: bytes, code: str) -> None:
    kind = {"content-type": "application/json"}
    assert code_of(http.post("/v1/chat/completions", content=data, headers=kind)) == (400, code)


def test_text_that_says_it_is_no_json_is_not_read(http: httpx2.Client) -> None:
    answer = http.post("/v1/chat/completions", content=json.dumps(SHORT), headers={"content-type": "text/plain"})
    assert code_of(answer) == (415, "unsupported_media_type")


def test_a_large_body_is_refused_before_it_is_read(server: Served) -> None:
    """10 MB: by its length at once, and without a length once it has grown too large."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {10 << 20}\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk, sent = b"x" * (1 << 16), 0
        connection.settimeout(10)
        try:
            for _ in range(160):
                connection.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                sent += len(chunk)
        except OSError:
            pass
        # What the system holds back between the two ends is no part of what was read.
        assert sent <= 10 << 20
        answer = http.client.HTTPResponse(connection)
        try:
            answer.begin()
            assert answer.status == 413
        except OSError:
            assert sent < 10 << 20


def test_a_client_that_goes_is_waited_for_no_more(server: Served) -> None:
    for stream in (True, False):
        before = server.scheduler.counters.ended.get("cancelled", 0)
        body = json.dumps({**LONG, "stream": stream}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        assert until(lambda: server.scheduler.counters.growing > 0)
        if stream:
            assert connection.getresponse().read(200)
        connection.close()
        assert until(lambda b=before: server.scheduler.counters.ended.get("cancelled", 0) > b)  # type: ignore[misc]
        assert until(lambda: server.scheduler.counters.growing == 0)


def test_only_names_of_this_machine_and_no_other_sites(http: httpx2.Client, server: Served) -> None:
    assert code_of(http.get("/v1/models", headers={"host": "evil.example"})) == (421, "wrong_host")
    assert http.get("/v1/models", headers={"host": f"localhost:{server.port}"}).status_code == 200
    answer = http.get("/v1/models", headers={"origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert code_of(http.get("/nothing")) == (404, "not_found")
    assert code_of(http.get("/v1/completions")) == (405, "method_not_allowed")


def test_keys_limits_and_the_end(loaded: LoadedModel, caplog: pytest.LogCaptureFixture) -> None:
    """One server: a key is asked for, more than it has room for is 429, and SIGTERM under load ends what runs."""
    settings = Settings(keys=("one", "two"), grace_seconds=30)
    limits = SchedulerLimits(rows=1, waiting=1)
    caplog.set_level(logging.INFO, "guided.server")
    logging.getLogger("guided.server").propagate = True
    with served(loaded, settings, limits) as server, httpx2.Client(base_url=server.url, timeout=60) as asked:
        assert asked.get("/health").json()["status"] == "ok"
        for key in (None, "three", "ONE", "one two"):
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            assert code_of(asked.get("/v1/models", headers=headers)) == (401, "invalid_api_key")
        assert asked.get("/v1/models", headers={"authorization": "Bearer two"}).status_code == 200
        asked.headers["authorization"] = "Bearer one"
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            running = pool.submit(asked.post, "/v1/completions", json=LONG)
            assert until(lambda: server.scheduler.counters.growing == 1)
            waiting = pool.submit(asked.post, "/v1/completions", json=LONG)
            assert until(lambda: server.scheduler.counters.waiting == 1)
            busy = asked.post("/v1/chat/completions", json=SHORT)
            assert code_of(busy) == (429, "busy") and int(busy.headers["retry-after"]) >= 1
            server.stop()
            assert code_of(asked.post("/v1/chat/completions", json=SHORT)) == (503, "closing")
            assert asked.get("/health").status_code == 503
            ended = running.result()
            assert ended.status_code == 200 and len(ended.json()["choices"][0]["text"]) == 300
            # What waited was never begun.
            assert code_of(waiting.result()) == (503, "closing")
        server.thread.join(30)
        assert not server.thread.is_alive()
        assert not server.checking.problems
        port = server.port
    # Nothing of what was said is in the log.
    assert "Ada" not in caplog.text and "a|b" not in caplog.text and "two" not in caplog.text
    with served(loaded, settings, limits, port) as again, httpx2.Client(base_url=again.url) as asked:
        assert asked.get("/health").status_code == 200


@pytest.mark.slow
def test_the_command_itself(tmp_path: Any) -> None:
    """`guided serve` as a process: the address is printed, and SIGTERM ends it with 0."""
    process = subprocess.Popen(
        [sys.executable, "-m", "guided", "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "GUIDED_API_KEY": "k"},
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    url = line.split()[-1]
    answer = httpx2.post(f"{url}/chat/completions", json=SHORT, headers={"authorization": "Bearer k"}, timeout=60)
    assert json.loads(answer.json()["choices"][0]["message"]["content"])["age"] == 36
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0 and time.monotonic() - started < 10
