"""Operations of an OpenAPI document: what they take and give as JSON Schemas, and as tools that a model may call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.openapi.document import OpenApi, escape, read_openapi
from guided.grammar.openapi.schemas import Direction, Schemas

__all__ = ["Operation", "operation", "operations"]

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_JSON = re.compile(r"(?:application|text)/(?:[\w.!#$&^-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_IGNORED_HEADERS = ("accept", "content-type", "authorization")
"""Parameters of these names "SHALL be ignored" in headers."""
_BODY = "body"
"""The name that the body has among the arguments of a call."""


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation; schemas are made when they are asked for, and are documents of their own, draft 2020-12."""

    document: OpenApi
    method: str
    """In lower case."""
    path: str
    pointer: str
    """Where it stands in the document."""
    data: Mapping[str, Any]
    shared: Mapping[str, Any]
    """The path item that it stands in, which may have parameters for all of its operations."""

    @property
    def name(self) -> str:
        """Its ``operationId``, else a name made of method and path: ``get_pets_petId``."""
        given = self.data.get("operationId")
        if isinstance(given, str):
            return given
        return re.sub(r"[^A-Za-z0-9]+", "_", f"{self.method} {self.path}").strip("_")

    def parameters(self) -> dict[str, Any]:
        """The schema of an object with a member for each parameter, closed.

        Raises `GrammarError` where two places, path and query say, have a parameter of one name.
        """
        schemas = Schemas(self.document, Direction.REQUEST)
        return schemas.whole(self._parameters(schemas))

    def body(self, media_type: str | None = None) -> dict[str, Any]:
        """The schema of the request's body; by default that of its JSON.

        Raises `GrammarError` where there is no body, and `UnsupportedError` where none is JSON and no ``media_type``
        says which is meant: then the schema is of the data before it is written in that type.
        """
        schemas = Schemas(self.document, Direction.REQUEST)
        return schemas.whole(self._body(schemas, media_type)[0])

    def response(self, status: int | str = 200, media_type: str | None = None) -> dict[str, Any]:
        """The schema of a response's body: of this status, else of its class (``2XX``), else the default one.

        Raises as `body` does.
        """
        wanted = str(status)
        found = {name: (value, place) for name, value, place in self._members("responses")}
        ranged = f"{wanted[:1]}XX"
        name = next((name for name in (wanted, ranged, "default") if name in found), None)
        if name is None:
            raise GrammarError(
                f"there is no response {wanted}",
                where=f"{self.pointer}/responses",
                remedy=f"The responses are {', '.join(found) or 'none'}.",
            )
        response, place = self.document.resolved(*found[name])
        schemas = Schemas(self.document, Direction.RESPONSE)
        return schemas.whole(self._content(schemas, response, place, media_type))

    def arguments(self, media_type: str | None = None) -> dict[str, Any]:
        """The schema of all that a call needs: `parameters`, and the body, where there is one, as ``body``."""
        schemas = Schemas(self.document, Direction.REQUEST)
        schema = self._parameters(schemas)
        if "requestBody" in self.data:
            if _BODY in schema["properties"]:
                raise UnsupportedError(
                    f"a parameter that is called {_BODY!r}, which is what the request's body is called here",
                    where=f"{self.pointer}/parameters",
                    remedy="Use the schemas of parameters() and body() apart.",
                )
            schema["properties"][_BODY], required = self._body(schemas, media_type)
            if required:
                schema["required"] = [*schema.get("required", ()), _BODY]
        return schemas.whole(schema)

    def tool(self, media_type: str | None = None) -> dict[str, Any]:
        """The operation as a tool, in the form of OpenAI's ``tools``, which `guided.tool_calls` takes."""
        texts = (self.data.get(key) or self.shared.get(key) for key in ("description", "summary"))
        said = next((text for text in texts if text), None)
        function = {"name": self.name, "parameters": self.arguments(media_type)}
        return {"type": "function", "function": function | ({"description": said} if said else {})}

    def _members(self, name: str) -> list[tuple[str, Any, str]]:
        return list(self.document.members(self.data, name, self.pointer))

    def _parameters(self, schemas: Schemas) -> dict[str, Any]:
        found: dict[tuple[str, str], tuple[Mapping[str, Any], str]] = {}
        path_pointer = self.pointer.rpartition("/")[0]
        for owner, pointer in ((self.shared, path_pointer), (self.data, self.pointer)):
            listed = owner.get("parameters", [])
            if not isinstance(listed, list):
                raise GrammarError("parameters are a list", where=f"{pointer}/parameters", remedy="Correct it.")
            for number, each in enumerate(listed):
                parameter, place = self.document.resolved(each, f"{pointer}/parameters/{number}")
                name, where = parameter.get("name"), parameter.get("in")
                if not isinstance(name, str) or where not in ("path", "query", "header", "cookie"):
                    raise GrammarError("a parameter without its name or place", where=place, remedy="Say both.")
                if where != "header" or name.lower() not in _IGNORED_HEADERS:
                    # Those of the operation take the place of those of the path.
                    found[where, name] = (parameter, place)
        names = [name for _, name in found]
        for (where, name), (_, place) in found.items():
            if names.count(name) > 1:
                raise GrammarError(
                    f"another parameter is called {name!r} as this in {where} is",
                    where=place,
                    remedy="Rename one of them.",
                )
        properties = {name: self._parameter(schemas, *found[where, name]) for where, name in found}
        required = [
            name for (where, name), (each, _) in found.items() if where == "path" or each.get("required") is True
        ]
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return schema | ({"required": required} if required else {})

    def _parameter(self, schemas: Schemas, parameter: Mapping[str, Any], place: str) -> Any:
        if "content" in parameter:
            schema = self._content(schemas, parameter, place, None)
        else:
            schema = schemas.copy(parameter.get("schema", {}), f"{place}/schema")
        said = parameter.get("description")
        if isinstance(said, str) and isinstance(schema, dict) and "description" not in schema:
            return {**schema, "description": said}
        return schema

    def _body(self, schemas: Schemas, media_type: str | None) -> tuple[Any, bool]:
        if "requestBody" not in self.data:
            raise GrammarError("the operation has no request body", where=self.pointer, remedy="Use parameters().")
        body, place = self.document.resolved(self.data["requestBody"], f"{self.pointer}/requestBody")
        return self._content(schemas, body, place, media_type), body.get("required") is True

    def _content(self, schemas: Schemas, owner: Mapping[str, Any], pointer: str, media_type: str | None) -> Any:
        found = {name: (value, place) for name, value, place in self.document.members(owner, "content", pointer)}
        if media_type is None:
            media_type = next((name for name in found if _JSON.fullmatch(name)), None)
        if media_type not in found:
            known = ", ".join(found)
            raise UnsupportedError(
                f"there is no content of the type {media_type or 'application/json'}",
                where=f"{pointer}/content",
                remedy=f"Name one of its media types: {known}." if known else "There is no body to write.",
            )
        value, place = found[media_type]
        media, place = self.document.resolved(value, place)
        return schemas.copy(media.get("schema", {}), f"{place}/schema")


def operations(document: OpenApi | str | Mapping[str, Any]) -> tuple[Operation, ...]:
    """The operations of a document (or of its text, or its data), in its order.

    >>> text = '''
    ... openapi: 3.1.0
    ... paths:
    ...   /pets/{id}:
    ...     parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    ...     get: {operationId: getPet}
    ...     delete: {}
    ... '''
    >>> [each.name for each in operations(text)]
    ['getPet', 'delete_pets_id']
    """
    if not isinstance(document, OpenApi):
        document = read_openapi(document)
    found = []
    for path, item, place in document.members(document.data, "paths", "#"):
        if path.startswith("x-"):
            continue
        shared, pointer = document.resolved(item, place)
        for method, data in shared.items():
            if method in _METHODS:
                if not isinstance(data, Mapping):
                    raise GrammarError("an operation is an object", where=f"{pointer}/{method}", remedy="Correct it.")
                found.append(Operation(document, method, path, f"{pointer}/{escape(method)}", data, shared))
    return tuple(found)


def operation(document: OpenApi | str | Mapping[str, Any], name: str) -> Operation:
    """The operation with this ``operationId``, or of this method and path: ``"GET /pets/{id}"``.

    Raises `GrammarError` where there is none, or more than one.
    """
    known = operations(document)
    method, _, path = name.partition(" ")
    found = [each for each in known if name == each.name or (method.lower(), path) == (each.method, each.path)]
    if len(found) != 1:
        names = ", ".join(each.name for each in known)
        raise GrammarError(
            f"the document has {len(found)} operations {name!r}", remedy=f"Its operations are {names or 'none'}."
        )
    return found[0]
