"""`LanguageServer`: completions from any server that speaks the Language Server Protocol over standard streams.

It opens one document, which need not exist on disk, replaces its text before each question, and asks for what may be
completed at the cursor.  What goes wrong (no such program, no answer in time, a crash, rubbish) is a `ServerError`,
which `guided.monitor.analyses` turns into a text that is free and a warning.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from guided.errors import GuidedError
from guided.monitor.json_rpc import Connection, NotReadyError, ServerError

__all__ = ["LanguageServer", "language_server"]

_NO_NAMES = frozenset({1, 14, 15, 16, 17, 19})
"""Kinds of completion items that name nothing: plain text, keywords, snippets, colours, files, folders."""
_NAME = re.compile(r"[^\W\d][\w$]*")
_ROUNDS = 4
"""Questions in a row while the server calls its list incomplete."""
_SETTLING = 2.0
"""Seconds for which a server that has never named anything is asked again where it names nothing: some answer before
they have read the project, and do not say that they are reading."""
_PAUSE = 0.05
"""Seconds before a server that is not ready is asked again, doubled each time up to a second."""


class LanguageServer:
    """One running server and one document in it; an `Engine` for `guided.monitor.analyses`.

    Raises `ServerError` where the server does not answer as one.
    """

    def __init__(
        self, command: Sequence[str], root: str, path: str, language: str, options: Any, seconds: float
    ) -> None:
        self._uri = Path(path).as_uri()
        self._language = language
        self._version = 0
        self._ready = _Readiness()
        self._has_named = False
        self._connection = Connection(command, folder=Path(root), answer=self._answer, told=self._ready.hear)
        root_uri = Path(root).as_uri()
        completion = {
            "completionItem": {"snippetSupport": False, "insertReplaceSupport": False},
            "contextSupport": True,
        }
        try:
            said = self._connection.call(
                "initialize",
                {
                    "processId": os.getpid(),
                    "rootUri": root_uri,
                    "rootPath": root,
                    "workspaceFolders": [{"uri": root_uri, "name": Path(root).name}],
                    "initializationOptions": options,
                    "capabilities": {
                        "general": {"positionEncodings": ["utf-32", "utf-16"]},
                        "textDocument": {"completion": completion, "synchronization": {"didSave": False}},
                        "window": {"workDoneProgress": True},
                        "workspace": {"configuration": True, "workspaceFolders": True},
                        # What rust-analyzer says when it has read the project.
                        "experimental": {"serverStatusNotification": True},
                    },
                },
                seconds,
            )
            self._encoding = said.get("capabilities", {}).get("positionEncoding") or "utf-16"
            self._connection.notify("initialized", {})
        except (AttributeError, TypeError) as error:
            self._connection.close()
            raise ServerError(f"the server's greeting is not understood: {error}") from error
        except ServerError:
            self._connection.close()
            raise

    def complete(self, source: str, suffix: str, seconds: float) -> frozenset[str] | None:
        """The names at the end of ``source``; a server that is still reading the project is waited for."""
        began = time.monotonic()
        deadline, at_rest = began + seconds, began + seconds / 2
        self._show(source + suffix)
        pause = _PAUSE
        while True:
            # Some servers never tell the end of their work, and answer all the same.
            self._ready.wait(at_rest)
            try:
                found = self._listed(source, deadline)
            except NotReadyError:
                if time.monotonic() + pause >= deadline:
                    raise
            else:
                # What is listed before the project is read is not all there is.
                enough = self._has_named or bool(found)
                until = at_rest if self._ready.is_busy else began if enough else began + min(_SETTLING, seconds / 2)
                if time.monotonic() >= until:
                    self._has_named = enough
                    return found
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _listed(self, source: str, deadline: float) -> frozenset[str] | None:
        lines = re.split(r"\r\n|\r|\n", source)
        position = {"line": len(lines) - 1, "character": self._units(lines[-1])}
        parameters = {"textDocument": {"uri": self._uri}, "position": position}
        found: set[str] = set()
        for again in range(_ROUNDS):
            context = {"triggerKind": 3} if again else {"triggerKind": 2, "triggerCharacter": source[-1:]}
            left = max(deadline - time.monotonic(), 0.0)
            result = self._connection.call("textDocument/completion", {**parameters, "context": context}, left)
            try:
                items = (result.get("items") or []) if isinstance(result, dict) else (result or [])
                found.update(name for item in items if (name := _name(item)))
                if not (isinstance(result, dict) and result.get("isIncomplete")):
                    return frozenset(found) or None
            except (AttributeError, TypeError) as error:
                raise ServerError(f"completions that are not understood: {error}") from error
        # A list that stays incomplete does not say what does not exist.
        return None

    def close(self) -> None:
        """Kill the server."""
        self._connection.close()

    def _show(self, text: str) -> None:
        self._version += 1
        if self._version == 1:
            document = {"uri": self._uri, "languageId": self._language, "version": 1, "text": text}
            self._connection.notify("textDocument/didOpen", {"textDocument": document})
            return
        document = {"uri": self._uri, "version": self._version}
        self._connection.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
        )

    def _units(self, line: str) -> int:
        if self._encoding == "utf-8":
            return len(line.encode("utf-8", "replace"))
        return len(line) if self._encoding == "utf-32" else len(line.encode("utf-16-le", "replace")) // 2

    @staticmethod
    def _answer(method: str, parameters: Any) -> Any:
        if method == "workspace/configuration":
            items = parameters.get("items", []) if isinstance(parameters, dict) else []
            return [None] * len(items)
        if method in ("client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create"):
            return None
        return NotImplemented


class _Readiness:
    """What a server has said about the work that it is doing."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working: set[Any] = set()

    @property
    def is_busy(self) -> bool:
        """Has it begun work whose end it has not told?"""
        return bool(self._working)

    def wait(self, until: float) -> None:
        """Until it is at rest, or for so long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._working, max(until - time.monotonic(), 0.0))

    def hear(self, method: str, parameters: Any) -> None:
        """Take note of what the server says unasked."""
        if not isinstance(parameters, dict):
            return
        if method == "$/progress":
            value = parameters.get("value")
            kind = value.get("kind") if isinstance(value, dict) else None
            self._note(str(parameters.get("token")), {"begin": True, "end": False}.get(str(kind)))
        elif method == "experimental/serverStatus":
            self._note("status", not parameters.get("quiescent", True))
        elif method == "language/status":
            # The Java server's.
            self._note(
                "status", {"Starting": True, "ServiceReady": False, "Error": False}.get(str(parameters.get("type")))
            )

    def _note(self, work: str, begun: bool | None) -> None:
        with self._changed:
            if begun:
                self._working.add(work)
            elif begun is not None:
                self._working.discard(work)
            self._changed.notify_all()


def _name(item: dict[str, Any]) -> str | None:
    """The identifier that an item would insert."""
    if item.get("kind") in _NO_NAMES:
        return None
    edit = item.get("textEdit")
    inserted = edit.get("newText") if isinstance(edit, dict) else None
    for text in (inserted, item.get("insertText"), item.get("label")):
        found = _NAME.match(text.strip()) if isinstance(text, str) else None
        if found is not None:
            return found.group()
    return None


def language_server(
    command: Sequence[str],
    root: str | Path,
    *,
    path: str | Path | None = None,
    language: str = "python",
    options: Any = None,
    seconds: float = 30.0,
) -> partial[LanguageServer]:
    """What starts a language server, for the ``engine`` of `guided.monitor.python_identifiers.python_identifiers`.

    ``command`` is the program and its arguments (``["jedi-language-server"]``, ``["pylsp"]``); ``root`` the workspace;
    ``path`` the file being written, in which nothing is written; ``options`` the server's initialization options;
    ``seconds`` the time that it may take to start.  Work that the server announces (reading the project, an index) is
    waited for, up to half of the time of a question.  Raises `GuidedError` for a folder that does not exist; whether
    the program does shows when it is started.
    """
    folder = Path(root).absolute()
    if not folder.is_dir():
        raise GuidedError(
            "there is no such workspace folder", where=str(folder), remedy="Give the root of the project."
        )
    if isinstance(command, str) or not command:
        raise GuidedError("the command is a list of a program and its arguments", remedy='Give ["pylsp"], say.')
    file = folder / "written_now.py" if path is None else Path(path).absolute()
    return partial(LanguageServer, tuple(command), str(folder), str(file), language, options, seconds)
