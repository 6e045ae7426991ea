"""The notations of files on the command line, and those among them that stand for a JSON Schema."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from guided.cli.inputs import STDIN, parse_json
from guided.errors import GuidedError

__all__ = ["SCHEMAS", "Format", "format_of", "schema_in"]


class Format(str, Enum):
    """The notations that a grammar may be written in; the values are those of ``--format``."""

    JSON_SCHEMA = "json-schema"
    PROTO = "proto"
    OPENAPI = "openapi"
    TYPESCRIPT = "typescript"
    LARK = "lark"
    GBNF = "gbnf"
    EBNF = "ebnf"
    LLGUIDANCE = "llguidance"
    XGRAMMAR_LARK = "xgrammar-lark"
    ISO_EBNF = "iso-ebnf"
    W3C_EBNF = "w3c-ebnf"
    ANTLR = "antlr"
    REGEX = "regex"


SCHEMAS = {
    Format.JSON_SCHEMA: "JSON Schema",
    Format.PROTO: "Protobuf message",
    Format.OPENAPI: "OpenAPI operation",
    Format.TYPESCRIPT: "TypeScript type",
}
"""Those that say a JSON Schema, and what they are called."""

_SUFFIXES = {
    ".json": Format.JSON_SCHEMA,
    ".schema": Format.JSON_SCHEMA,
    ".proto": Format.PROTO,
    ".ts": Format.TYPESCRIPT,
    ".yaml": Format.OPENAPI,
    ".yml": Format.OPENAPI,
    ".lark": Format.LARK,
    ".gbnf": Format.GBNF,
    ".ebnf": Format.EBNF,
    ".g4": Format.ANTLR,
    ".regex": Format.REGEX,
    ".re": Format.REGEX,
}


def format_of(path: str) -> Format | None:
    """The notation that a file's suffix stands for; None where it says nothing."""
    return _SUFFIXES.get(Path(path).suffix)


def schema_in(text: str, path: str, kind: Format, start: str | None = None) -> Any:
    """The schema that a text in one of `SCHEMAS` says; ``start`` is the message, operation or type that is meant.

    Files that it imports are looked up in the folder of ``path``.  Raises `GuidedError` with the place in the text.
    """
    if kind is Format.PROTO:
        from guided.grammar.proto_files import proto_file_schema

        folders = () if path == STDIN else (str(Path(path).parent),)
        return proto_file_schema(text, start, import_paths=folders)
    if kind is Format.TYPESCRIPT:
        from guided.grammar.typescript import typescript_schema

        return typescript_schema(text, start)
    if kind is Format.OPENAPI:
        from guided.grammar.openapi import operation

        if start is None:
            raise GuidedError(
                "an OpenAPI document has many operations",
                where="--start",
                remedy='Name one by its operationId, or as "GET /pets/{id}"; its arguments are what is read.',
            )
        return operation(text, start).arguments()
    if start is not None:
        raise GuidedError(
            "a JSON Schema is one schema, of which no part can be named", where="--start", remedy="Leave it out."
        )
    return parse_json(text, "schema")
