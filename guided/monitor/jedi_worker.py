"""The process that runs jedi: one method, ``complete``, over the framing of `guided.monitor.json_rpc`.

A process of its own, because an inference can take minutes, recurse until the interpreter gives up, or import a broken
extension; whoever asks can then kill it.  Run as ``python -m guided.monitor.jedi_worker``.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from guided.monitor.json_rpc import read_message, write_message

__all__ = ["complete", "main"]


def complete(parameters: dict[str, Any]) -> list[str]:
    """The names that jedi offers at the end of ``source``, with ``suffix`` standing behind the cursor."""
    # Neither is typed, nor needed by anything else.
    jedi: Any = import_module("jedi")
    split_lines = import_module("parso.utils").split_lines
    source, suffix = parameters["source"], parameters["suffix"]
    project = jedi.Project(parameters["project"], environment_path=parameters["environment"])
    lines = split_lines(source)
    script = jedi.Script(source + suffix, path=parameters["path"], project=project)
    found = script.complete(len(lines), len(lines[-1]))
    return sorted({item.name for item in found if item.type != "keyword"})


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
            answer["result"] = complete(message["params"])
        except Exception as error:  # whatever jedi raises on half-written code is the caller's to count
            answer["error"] = {"code": -32000, "message": f"{type(error).__name__}: {error}"}
        write_message(stream_out, answer)


if __name__ == "__main__":
    main()
