"""`LanguageServer`: completions from any server that speaks the Language Server Protocol over standard streams.

It opens one document, which need not exist on disk, replaces its text before each question, and asks for what may be
completed at the cursor.  What goes wrong (no such program, no answer in time, a crash, rubbish) is a `ServerError`,
which `guided.monitor.analyses` turns into a text that is free and a warning.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from guided.errors import GuidedError
from guided.monitor.json_rpc import Connection, ServerError

__all__ = ["LanguageServer", "language_server"]

_NO_NAMES = frozenset({1, 14, 15, 16, 17, 19})
"""Kinds of completion items that name nothing: plain text, keywords, snippets, colours, files, folders."""
_NAME = re.compile(r"[^\W\d][\w$]*")
_ROUNDS = 4
"""Questions in a row while the server calls its list incomplete."""


class LanguageServer:
    """One running server and one document in it; an `Engine` for `guided.monitor.analyses`."""

    def __init__(
        self, command: Sequence[str], root: str, path: str, language: str, options: Any, seconds: float
    ) -> None:
        self._uri = Path(path).as_uri()
        self._language = language
        self._version = 0
        self._connection = Connection(command, folder=Path(root), answer=self._answer)
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
                        "workspace": {"configuration": True, "workspaceFolders": True},
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
        """The names at the end of ``source``."""
        deadline = time.monotonic() + seconds
        self._show(source + suffix)
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
    ``seconds`` the time that it may take to start.  Raises `GuidedError` for a folder that does not exist; whether the
    program does shows when it is started.
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
