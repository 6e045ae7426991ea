"""The text of a ``.proto`` file to the schema of one of its messages: protoc reads it, ``protobuf`` has the mapping.

protoc comes with ``grpcio-tools`` and runs in a process of its own, which writes descriptors; no code is generated.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from guided.errors import GrammarError, GuidedError
from guided.grammar.protobuf import message_schema

__all__ = ["proto_file_schema", "proto_message"]

_NAME = "given_text.proto"
"""The name that the text has for protoc; files that it imports keep theirs."""
_COMPLAINT = re.compile(r"^(?P<file>[^:\n]+\.proto):(?:(?P<line>\d+):(?P<column>\d+):)? (?P<what>.*)$", re.MULTILINE)


def proto_file_schema(text: str, message: str | None = None, *, import_paths: Sequence[str] = ()) -> dict[str, Any]:
    """The schema of the JSON of a message that a ``.proto`` file defines, as `message_schema` has it.

    ``message`` is its name, with or without the file's package, ``Outer.Inner`` for one inside another; it may be left
    out where the file has one message.  ``import_paths`` are folders in which imports are looked up;
    those of ``google/protobuf`` are always found.  Raises `GrammarError` with line and column for what protoc refuses.

    >>> schema = proto_file_schema('syntax = "proto3"; message Point { int32 x = 1; optional int32 y = 2; }')
    >>> list(schema["$defs"]["Point"]["properties"])
    ['x', 'y']
    """
    return message_schema(proto_message(text, message, import_paths=import_paths))


def proto_message(text: str, message: str | None = None, *, import_paths: Sequence[str] = ()) -> Any:
    """The descriptor of a message that a ``.proto`` file defines, in a pool of its own; as `proto_file_schema`."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    files = descriptor_pb2.FileDescriptorSet.FromString(_compiled(text, import_paths))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    (own,) = (file for file in files.file if file.name == _NAME)
    found = dict(_messages(own.message_type, ""))
    package = f"{own.package}." if own.package else ""
    if message is None:
        outer = [name for name in found if "." not in name]
        if len(outer) != 1:
            raise GrammarError(f"the file has {len(outer)} messages", remedy=_choices(found))
        (message,) = outer
    if message not in found:
        message = message.removeprefix(package)
    if message not in found:
        raise GrammarError(f"the file has no message {message!r}", remedy=_choices(found))
    return pool.FindMessageTypeByName(package + message)


def _choices(found: dict[str, Any]) -> str:
    return f"Name one of its messages: {', '.join(found)}." if found else "Add a message to it."


def _messages(some: Any, before: str) -> Iterator[tuple[str, Any]]:
    """The messages by their names in the file, those inside others too; the entries of maps are none."""
    for message in some:
        if not message.options.map_entry:
            yield before + message.name, message
            yield from _messages(message.nested_type, f"{before}{message.name}.")


def _compiled(text: str, import_paths: Sequence[str]) -> bytes:
    """The file and all it imports as a serialised ``FileDescriptorSet``."""
    if find_spec("grpc_tools") is None:
        raise GuidedError(
            "this needs grpcio-tools, which is not installed", remedy="Run: pip install 'guided-decoding[protobuf]'"
        )
    import grpc_tools

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, _NAME), Path(folder, "descriptors")
        source.write_text(text, encoding="utf-8")
        known = Path(next(iter(grpc_tools.__path__)), "_proto")
        paths = [f"--proto_path={path}" for path in (folder, *import_paths, known)]
        options = ["--include_imports", f"--descriptor_set_out={target}"]
        done = subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", *paths, *options, _NAME],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise _refused(done.stderr.replace(f"{source}:", f"{_NAME}:"))
        return target.read_bytes()


def _refused(complaints: str) -> GrammarError:
    """The first of protoc's complaints that has a place, else the first."""
    found = list(_COMPLAINT.finditer(complaints))
    first = next((each for each in found if each["line"]), found[0] if found else None)
    if first is None:
        return GrammarError(f"protoc refuses the file: {complaints.strip()}", remedy="Correct the file.")
    place = f"line {first['line']}, column {first['column']}" if first["line"] else None
    if first["file"] != _NAME:
        place = first["file"] if place is None else f"{first['file']}, {place}"
    return GrammarError(f"protoc refuses the file: {first['what']}", where=place, remedy="Correct the file.")
