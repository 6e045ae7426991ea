"""The process that runs jedi: one method, ``complete``, over the framing of `guided.monitor.json_rpc`.

A process of its own, because an inference can take minutes, recurse until the interpreter gives up, or import a broken
extension; whoever asks can then kill it.  Run as ``python -m guided.monitor.jedi_worker``.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pickle import UnpicklingError
from typing import Any

from guided.monitor.jedi_knowledge import Unknown, names_of_owner
from guided.monitor.json_rpc import read_message, write_message

__all__ = ["complete", "main"]


def complete(parameters: dict[str, Any]) -> dict[str, Any]:
    """The names that may stand behind ``source``, with ``suffix`` behind the cursor, or why they are not known."""
    # Neither is typed, nor needed by anything else.
    jedi: Any = import_module("jedi")
    split_lines = import_module("parso.utils").split_lines
    source, suffix = parameters["source"], parameters["suffix"]
    project = jedi.Project(parameters["project"], environment_path=parameters["environment"])
    owner = source.rstrip(".")
    path = parameters["path"]
    try:
        names = names_of_owner(jedi.Script(owner, path=path, project=project), owner, parameters["environment"] is None)
    except Unknown as why:
        return {"names": [], "why": str(why)}
    lines = split_lines(source)
    script = jedi.Script(source + suffix, path=path, project=project)
    found = {item.name for item in script.complete(len(lines), len(lines[-1])) if item.type != "keyword"}
    return {"names": sorted(found | names) if found else [], "why": None if found else "not found"}


def main() -> None:
    """Serve until standard input ends."""
    stream_in, stream_out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What analysed code prints at import must not end up between messages.
    os.dup2(2, 1)
    while True:
        message = read_message(stream_in)
        if message is None:
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            try:
                answer["result"] = complete(message["params"])
            except (EOFError, UnpicklingError):
                # Another process was writing what is cached of a module.
                answer["result"] = complete(message["params"])
        except Exception as error:  # whatever jedi raises on half-written code is the caller's to count
            answer["error"] = {"code": -32000, "message": f"{type(error).__name__}: {error}"}
        write_message(stream_out, answer)


if __name__ == "__main__":
    main()
