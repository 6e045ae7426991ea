"""An OpenAPI document as data: its version, the places in it, and what references inside it point to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.openapi.yaml_text import yaml_data

__all__ = ["OpenApi", "Version", "escape", "read_openapi"]


class Version(Enum):
    """The versions whose schema objects differ."""

    V30 = "3.0"
    """An extended subset of an old draft of JSON Schema: `nullable`, exclusive bounds as truth values."""
    V31 = "3.1"
    """JSON Schema 2020-12 with annotations of its own."""


_DIALECTS = ("https://spec.openapis.org/oas/3.1/dialect/base", "https://json-schema.org/draft/2020-12/schema")


def escape(name: str) -> str:
    """A name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


@dataclass(frozen=True, eq=False)
class OpenApi:
    """A document; ``data`` is not to be changed."""

    data: Mapping[str, Any]
    version: Version

    def at(self, reference: str, pointer: str) -> Any:
        """What a reference points to, for one that stands at ``pointer``."""
        if not reference.startswith("#"):
            raise UnsupportedError(
                f"the reference {reference!r} leaves the document",
                where=pointer,
                remedy="Bundle the files of the document into one.",
            )
        found: Any = self.data
        path = unquote(reference[1:])
        for part in path.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, Mapping) and name in found:
                found = found[name]
            else:
                found = None
                break
        if found is None or (path and not path.startswith("/")):
            raise GrammarError(
                f"the reference {reference!r} points to nothing", where=pointer, remedy="Correct the reference."
            )
        return found

    def resolved(self, value: Any, pointer: str) -> tuple[Mapping[str, Any], str]:
        """An object of the document, where it may be a reference to one, and the pointer to it."""
        seen = {pointer}
        while isinstance(value, Mapping) and isinstance(value.get("$ref"), str):
            reference = value["$ref"]
            value, pointer = self.at(reference, pointer), reference
            if pointer in seen:
                raise GrammarError("a reference that comes back to itself", where=pointer, remedy="Correct it.")
            seen.add(pointer)
        if not isinstance(value, Mapping):
            raise GrammarError("there is no object", where=pointer, remedy="Correct the document.")
        return value, pointer

    def members(self, owner: Mapping[str, Any], name: str, pointer: str) -> Iterator[tuple[str, Any, str]]:
        """The members of an object in an object, each with its pointer; none where it is missing."""
        value = owner.get(name, {})
        if not isinstance(value, Mapping):
            raise GrammarError(f"{name!r} is no object", where=f"{pointer}/{name}", remedy="Correct the document.")
        for key, member in value.items():
            yield key, member, f"{pointer}/{name}/{escape(key)}"


def read_openapi(source: str | Mapping[str, Any]) -> OpenApi:
    """The document of a text in YAML or JSON, or of data that was read already.

    Raises `GrammarError` for what is none, and `UnsupportedError` for versions but 3.0 and 3.1.

    >>> read_openapi('openapi: "3.1.0"').version
    <Version.V31: '3.1'>
    """
    data = _data(source) if isinstance(source, str) else source
    if not isinstance(data, Mapping):
        raise GrammarError("an OpenAPI document is an object", where="#", remedy="Pass the whole document.")
    version = data.get("openapi")
    if not isinstance(version, str):
        old = "swagger" in data
        raise GrammarError(
            "a document of Swagger 2.0" if old else "the document does not say its version of OpenAPI",
            where="#/swagger" if old else "#/openapi",
            remedy="Convert it to OpenAPI 3." if old else 'Write "openapi: 3.1.0", the version in quotes if need be.',
        )
    for known in Version:
        if version == known.value or version.startswith(f"{known.value}."):
            break
    else:
        raise UnsupportedError(
            f"version {version} of OpenAPI", where="#/openapi", remedy="Use a document of version 3.0 or 3.1."
        )
    dialect = data.get("jsonSchemaDialect", _DIALECTS[0])
    if known is Version.V31 and dialect not in _DIALECTS:
        raise UnsupportedError(
            f"schemas of the dialect {dialect}",
            where="#/jsonSchemaDialect",
            remedy=f"Use {_DIALECTS[1]}.",
        )
    return OpenApi(data, known)


def _data(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return yaml_data(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        # Braces are YAML's as well.
        return yaml_data(text)
    except RecursionError:
        raise GrammarError("the text is nested too deeply", remedy="Nest it less deeply.") from None
