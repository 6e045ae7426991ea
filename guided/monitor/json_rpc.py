"""JSON-RPC 2.0 with a child process over its standard streams, framed by Content-Length as language servers are.

A small client of its own, not pygls': masks are asked for synchronously, so what matters is that every call ends within
its time limit whatever the process does (hang, crash, write rubbish, stop reading).  One thread for each direction and
a condition variable give that in a page, without an event loop.  This file knows no language and no analysis.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from guided.errors import GuidedError

__all__ = ["AnswerError", "Connection", "NotReadyError", "ServerError", "read_message", "write_message"]

MAX_MESSAGE_BYTES = 64 << 20
"""A completion list of 100,000 items is about 20 MB."""
_MAX_HEADERS = 32
_MAX_HEADER_BYTES = 4096
_METHOD_NOT_FOUND = -32601
_NOT_NOW = frozenset({-32002, -32800, -32801, -32802})
"""LSP's codes for: not initialized, cancelled, the content was modified, cancelled by the server."""
_ERROR_TAIL = 2_000
"""Characters of the process's standard error that messages may quote from."""
_LAST_WORDS_SECONDS = 1.0
"""How long a process whose stream closed may take to end and to have its last words read; mostly it takes 2 ms."""


class ServerError(GuidedError):
    """The process did not answer: it is missing, hangs, crashed, or answered with an error or with rubbish."""


class AnswerError(ServerError):
    """The process answered with an error, and can be asked again."""


class NotReadyError(AnswerError):
    """The process says that it cannot answer yet, or not any more since the text changed: ask again."""


def read_message(stream: IO[bytes]) -> Any:
    """The next message of a stream, None at its end; `ServerError` for what is no message."""
    length = None
    for number in range(_MAX_HEADERS):
        line = stream.readline(_MAX_HEADER_BYTES)
        if not line and number == 0:
            return None
        if line in (b"\r\n", b"\n"):
            break
        name, colon, value = line.partition(b":")
        if not colon or not line.endswith(b"\n"):
            raise ServerError(f"a header that is none: {line[:60]!r}")
        if name.strip().lower() == b"content-length":
            if not value.strip().isdigit() or int(value) > MAX_MESSAGE_BYTES:
                raise ServerError(f"a message of {value.strip()[:20]!r} bytes")
            length = int(value)
    else:
        raise ServerError("more headers than a message has")
    if length is None:
        raise ServerError("a message without Content-Length")
    data = stream.read(length)
    if len(data) < length:
        raise ServerError("a message that ends early")
    try:
        return json.loads(data)
    except ValueError as error:
        raise ServerError(f"a message that is not JSON: {error}") from None


def write_message(stream: IO[bytes], message: Mapping[str, Any]) -> None:
    """Write one message and flush."""
    data = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
    stream.flush()


class Connection:
    """A running process and the calls to it; every call ends in time with a result or a `ServerError`.

    ``answer(method, parameters)`` serves what the process itself asks; without it, or when it returns NotImplemented,
    the process is told that the method does not exist.  ``told(method, parameters)`` hears what it says unasked.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        answer: Callable[[str, Any], Any] | None = None,
        told: Callable[[str, Any], None] | None = None,
    ) -> None:
        self._answer = answer
        self._told = told
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=dict(environment) if environment is not None else None,
            )
        except (OSError, ValueError) as error:
            raise ServerError(
                f"{command[0]!r} cannot be started: {error}" if command else "an empty command",
                remedy="Install it, or give the path of the program.",
            ) from error
        self._changed = threading.Condition()
        self._results: dict[int, Any] = {}
        self._waiting: set[int] = set()
        self._broken: str | None = None
        self._next = 0
        self._said = ""
        self._outgoing: queue.Queue[Mapping[str, Any] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        readers = [threading.Thread(target=work, daemon=True) for work in (self._read, self._write)]
        self._threads = [self._listener, *readers]
        for thread in self._threads:
            thread.start()

    @property
    def broken(self) -> str | None:
        """Why no call can succeed any more, None while they can."""
        return self._broken

    def call(self, method: str, parameters: Any, seconds: float) -> Any:
        """The result of a request; `ServerError` when it fails or is not there in time."""
        with self._changed:
            self._next += 1
            number = self._next
            self._waiting.add(number)
        self._outgoing.put({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})
        deadline = time.monotonic() + seconds
        with self._changed:
            while number not in self._results and self._broken is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    self._waiting.discard(number)
                    raise ServerError(f"no answer to {method} within {seconds:g} s", remedy="Raise the time limit.")
                self._changed.wait(left)
            self._waiting.discard(number)
            if number not in self._results:
                raise ServerError(f"the process {self._broken}{self._quoted()}")
            message = self._results.pop(number)
        error = message.get("error")
        if error:
            said = error.get("message", error) if isinstance(error, dict) else error
            code = error.get("code") if isinstance(error, dict) else None
            kind = NotReadyError if code in _NOT_NOW else AnswerError
            raise kind(f"{method} failed: {str(said)[:300]}")
        return message.get("result")

    def notify(self, method: str, parameters: Any) -> None:
        """Tell the process something that it does not answer; `ServerError` when it is gone."""
        if self._broken is not None:
            raise ServerError(f"the process {self._broken}{self._quoted()}")
        self._outgoing.put({"jsonrpc": "2.0", "method": method, "params": parameters})

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._break("was closed")
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(1.0)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            # What could not be written to a process that is gone stays unwritten.
            with contextlib.suppress(OSError, ValueError):
                if stream is not None:
                    stream.close()

    def _break(self, why: str) -> None:
        with self._changed:
            if self._broken is None:
                self._broken = why
            self._changed.notify_all()
        self._outgoing.put(None)

    def _quoted(self) -> str:
        lines = [line for line in self._said.splitlines() if line.strip()]
        return f" ({lines[-1].strip()[:200]})" if lines else ""

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                message = read_message(self._process.stdout)
                if message is None:
                    self._listener.join(_LAST_WORDS_SECONDS)
                    self._break("ended")
                    return
                if not isinstance(message, dict):
                    raise ServerError("a message that is no object")
                self._received(message)
        except ServerError as error:
            self._break(f"wrote {error.what}")
        except (OSError, ValueError) as error:
            self._break(f"cannot be read: {error}")

    def _received(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if "method" in message:
            if number is not None:
                self._outgoing.put(self._answered(number, str(message["method"]), message.get("params")))
            elif self._told is not None:
                self._told(str(message["method"]), message.get("params"))
            return
        with self._changed:
            # Answers that came too late have nobody waiting.
            if isinstance(number, int) and number in self._waiting:
                self._results[number] = message
                self._changed.notify_all()

    def _answered(self, number: Any, method: str, parameters: Any) -> Mapping[str, Any]:
        result = NotImplemented if self._answer is None else self._answer(method, parameters)
        if result is NotImplemented:
            return {"jsonrpc": "2.0", "id": number, "error": {"code": _METHOD_NOT_FOUND, "message": method}}
        return {"jsonrpc": "2.0", "id": number, "result": result}

    def _write(self) -> None:
        assert self._process.stdin is not None
        while True:
            message = self._outgoing.get()
            if message is None:
                return
            try:
                write_message(self._process.stdin, message)
            except (OSError, ValueError) as error:
                # A process that ended cannot be written to either: whether this thread or the reader sees it first
                # does not change what is said.
                self._break("ended" if self._has_ended() else f"does not listen: {error}")
                return

    def _has_ended(self) -> bool:
        try:
            self._process.wait(_LAST_WORDS_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        self._listener.join(_LAST_WORDS_SECONDS)
        return True

    def _listen(self) -> None:
        assert self._process.stderr is not None
        try:
            for line in self._process.stderr:
                self._said = (self._said + line.decode("utf-8", "replace"))[-_ERROR_TAIL:]
        except (OSError, ValueError):
            return
