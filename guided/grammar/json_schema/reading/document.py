"""Where schemas are: dialects, resources with their base URIs, and references resolved to places; never the network.

A `Located` is one subschema with its JSON pointer, its `Resource` and its dynamic scope; equal places are the same
object.  Of the dynamic scope only that part is kept which ``$dynamicRef`` and ``$recursiveRef`` can ask for: for each
dynamic anchor the outermost resource on the way that has it.  So there are finitely many scopes, and one in nearly all
schemas.  Nothing here knows what a keyword asserts, only which keywords hold subschemas.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

from guided.errors import GrammarError
from guided.grammar.json_schema import refusals

Schema: TypeAlias = "dict[str, Any] | bool"


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """What differs between drafts, as data."""

    name: str
    order: int
    """4, 6, 7, 2019 or 2020: later drafts compare greater."""
    asserts: bool = True
    """Is the validation vocabulary in force?  (A meta-schema of one's own may leave it out.)"""
    asserts_formats: bool | None = None
    """Does a meta-schema of one's own say whether ``format`` is asserted?"""

    identifier: str = field(init=False)
    """The keyword that names a resource."""
    reference_stands_alone: bool = field(init=False)
    """Are keywords beside ``$ref`` ignored?"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "identifier", "id" if self.order == 4 else "$id")
        object.__setattr__(self, "reference_stands_alone", self.order <= 7)


DRAFT4 = Dialect("draft-04", 4)
DRAFT6 = Dialect("draft-06", 6)
DRAFT7 = Dialect("draft-07", 7)
DRAFT2019 = Dialect("2019-09", 2019)
DRAFT2020 = Dialect("2020-12", 2020)

DIALECTS = {
    "http://json-schema.org/draft-04/schema": DRAFT4,
    "http://json-schema.org/draft-06/schema": DRAFT6,
    "http://json-schema.org/draft-07/schema": DRAFT7,
    "http://json-schema.org/schema": DRAFT2020,
    "https://json-schema.org/draft/2019-09/schema": DRAFT2019,
    "https://json-schema.org/draft/2020-12/schema": DRAFT2020,
}

ONE_SCHEMA = (
    "additionalProperties",
    "items",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
    "contentSchema",
)
"""Keywords that hold a schema."""
SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
"""Keywords that hold a list of schemas."""
SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
"""Keywords that hold schemas by name."""


class Objects(Enum):
    """How an object is read of which the schema declares members, and does not say whether there may be others."""

    OPEN = "open"
    """As JSON Schema has it: any others."""
    CLOSED = "closed"
    """No others."""
    STRICT = "strict"
    """No others, and every declared member must be there."""


class Standing(Enum):
    """What a schema is for the value that it applies to, where objects are not read as open."""

    LETTER = "letter"
    """It is read as JSON Schema has it: a condition, or what is negated."""
    PART = "part"
    """One of the schemas that apply to the value: they declare its members together."""
    WHOLE = "whole"
    """The one that says everything about the value."""


_CONDITIONS = frozenset(("not", "if", "contains", "propertyNames"))
_PARTS = frozenset(("allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas", "dependencies"))


@dataclass(eq=False, slots=True)
class Resource:
    """A schema document or an embedded one with its own identifier; pointers in references start at its ``root``."""

    root: Any
    uri: str
    dialect: Dialect
    pointer: str
    """Where the root is, for messages: ``#`` or an absolute URI with ``#``."""
    targets: dict[str, Target] = field(default_factory=dict)
    dynamic: dict[str, Target] = field(default_factory=dict)
    """Dynamic anchors by name; a resource with ``$recursiveAnchor`` has its root under `RECURSIVE`."""


@dataclass(eq=False, slots=True)
class Target:
    """What a reference names, in whatever dynamic scope."""

    schema: Any
    pointer: str
    resource: Resource


Scope: TypeAlias = "tuple[tuple[str, Target], ...]"
"""What each dynamic anchor stands for, sorted by name."""

RECURSIVE = "#"
"""The name under which a ``$recursiveAnchor`` is kept; no anchor can have it."""


@dataclass(eq=False, slots=True)
class Located:
    """One subschema and where it stands."""

    schema: Schema
    pointer: str
    resource: Resource
    scope: Scope = ()
    standing: Standing = Standing.LETTER


def escape(name: str) -> str:
    """A name as one reference token of a JSON pointer (RFC 6901).

    >>> escape("a/b~c")
    'a~1b~0c'
    """
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


class Document:
    """A root schema, the resources inside it, and those of the caller's registry.

    ``text`` is the schema as JSON text, if at hand; without it the schema is searched for dynamic anchors.
    """

    def __init__(
        self, schema: Schema, registry: Any = None, text: str | None = None, objects: Objects = Objects.OPEN
    ) -> None:
        self._registry = registry
        self.objects = objects
        self._places: dict[tuple[int, int, Scope, Standing], Located] = {}
        self._owners: dict[tuple[int, int], Resource] = {}
        self._resources: dict[str, Resource] | None = None
        self._anchors: dict[tuple[str, str], Target] = {}
        self.notes: list[str] = []
        self.fractional: set[Fraction] = set()
        """Whole numbers among the constants that the schema writes with a fraction, so that texts may."""
        self.declared_dialect = isinstance(schema, dict) and "$schema" in schema
        """Does the schema say its draft?"""
        dialect = DRAFT2020
        uri = ""
        if isinstance(schema, dict):
            dialect = self._dialect(schema, DRAFT2020, "#")
            found = schema.get(dialect.identifier)
            if isinstance(found, str):
                uri = urldefrag(found)[0]
        said = schema.get("$schema") if isinstance(schema, dict) else None
        self.has_forms_of_old = not isinstance(said, str) or bool(self.notes)
        """Are forms of older drafts read as those drafts do?  They are where the schema says no draft that is known."""
        self.resource = Resource(schema, uri, dialect, "#")
        if text is None or '"$dynamicAnchor"' in text or '"$recursiveAnchor"' in text:
            self._all_resources()
        standing = Standing.LETTER if objects is Objects.OPEN else Standing.WHOLE
        self.root = self.place(schema, "#", self.resource, (), standing)

    def _dialect(self, schema: dict[str, Any], default: Dialect, pointer: str) -> Dialect:
        name = schema.get("$schema")
        if not isinstance(name, str):
            return default
        uri = name.rstrip("#")
        found = DIALECTS.get(uri) or DIALECTS.get(uri.replace("https:", "http:", 1))
        if found is None:
            if "json-schema.org/draft-0" in uri:
                raise refusals.DRAFT.at(f"{pointer}/$schema", name=name)
            return self._own_dialect(name, default, pointer)
        return found

    def _own_dialect(self, name: str, default: Dialect, pointer: str) -> Dialect:
        """The dialect of a meta-schema that the registry may hold; else the default, with a note."""
        found = None if self._registry is None else self._registry.get(name)
        if found is None or not isinstance(found.contents, dict):
            self.notes.append(f"unknown $schema {name!r} at {pointer}: read as {default.name}")
            return default
        base = DIALECTS.get(str(found.contents.get("$schema")).rstrip("#"), default)
        vocabulary = found.contents.get("$vocabulary")
        if not isinstance(vocabulary, dict):
            return base
        for uri, needed in vocabulary.items():
            if needed and not uri.startswith("https://json-schema.org/draft/20"):
                raise refusals.VOCABULARY.at(f"{pointer}/$schema", uri=uri)
        return replace(
            base,
            asserts=any(uri.endswith("/vocab/validation") for uri in vocabulary),
            asserts_formats=any(uri.endswith("/vocab/format-assertion") for uri in vocabulary)
            or vocabulary.get("https://json-schema.org/draft/2019-09/vocab/format") is True,
        )

    def place(
        self, schema: Any, pointer: str, resource: Resource, scope: Scope = (), standing: Standing = Standing.LETTER
    ) -> Located:
        """The `Located` of a subschema; checks that it is a schema, and enters an embedded resource.

        Raises `GrammarError` for what is neither an object nor a boolean.
        """
        if schema is True or schema is False:
            return Located(schema, pointer, resource)
        key = (id(schema), id(resource), scope, standing)
        found = self._places.get(key)
        if found is not None:
            return found
        own = type(schema) is dict and resource.dialect.identifier not in schema and "$schema" not in schema
        if own and not resource.dynamic:
            found = self._places[key] = Located(schema, pointer, resource, scope, standing)
        else:
            if not isinstance(schema, dict):
                raise GrammarError(
                    f"a schema must be an object or a boolean, not {kind_name(schema)}",
                    where=pointer,
                    remedy="Correct the schema.",
                )
            owner = self._owner(schema, pointer, resource)
            for name, target in owner.dynamic.items():
                if all(name != known for known, _ in scope):
                    scope = tuple(sorted((*scope, (name, target)), key=lambda pair: pair[0]))
            inner = (id(schema), id(owner), scope, standing)
            found = self._places.get(inner)
            if found is None:
                found = self._places[inner] = Located(schema, pointer, owner, scope, standing)
            self._places[key] = found
        return found

    def _owner(self, schema: dict[str, Any], pointer: str, resource: Resource) -> Resource:
        """The resource that a subschema found in ``resource`` belongs to: its own if it has an identifier."""
        name = schema.get(resource.dialect.identifier)
        own = schema.get("$schema")
        if not isinstance(name, str) and not isinstance(own, str):
            return resource
        if schema is resource.root:
            return resource
        dialect = resource.dialect if own is None else self._dialect(schema, resource.dialect, pointer)
        name = schema.get(dialect.identifier)
        if not isinstance(name, str) or name.startswith("#"):
            return resource
        if "$ref" in schema and dialect.reference_stands_alone:
            return resource
        key = (id(schema), id(resource))
        found = self._owners.get(key)
        if found is None:
            uri = urldefrag(urljoin(resource.uri, name))[0]
            found = self._owners[key] = Resource(schema, uri, dialect, pointer)
        return found

    def child(
        self, at: Located, keyword: str, name: str | int | None = None, standing: Standing | None = None
    ) -> Located:
        """The subschema under a keyword, or under a name or index below it; ``standing``: not what the keyword says."""
        value = at.schema[keyword]  # type: ignore[index]
        pointer = f"{at.pointer}/{keyword}"
        if name is not None:
            value = value[name]
            pointer = f"{pointer}/{escape(name) if isinstance(name, str) else name}"
        if standing is None:
            standing = at.standing
            if standing is not Standing.LETTER:
                standing = _standing_under(keyword)
        return self.place(value, pointer, at.resource, at.scope, standing)

    def letter(self, at: Located) -> Located:
        """The same place, read as JSON Schema has it."""
        return self.place(at.schema, at.pointer, at.resource, at.scope)

    def resolve(self, at: Located, keyword: str = "$ref", *, beside: bool = False) -> Located:
        """The place that a reference in ``at`` means; ``keyword`` may be a dynamic one.

        ``beside``: the reference stands beside other keywords that say something of the value.
        """
        reference = at.schema[keyword]  # type: ignore[index]
        target = self._target(at, reference, f"{at.pointer}/{keyword}")
        if keyword != "$ref" and isinstance(target.schema, dict):
            if keyword == "$recursiveRef":
                anchor = RECURSIVE if target.schema.get("$recursiveAnchor") is True else None
            else:
                anchor = reference.partition("#")[2]
                anchor = anchor if anchor and anchor == target.schema.get("$dynamicAnchor") else None
            if anchor is not None:
                target = next((bound for name, bound in at.scope if name == anchor), target)
        standing = Standing.PART if beside and at.standing is Standing.WHOLE else at.standing
        return self.place(target.schema, target.pointer, target.resource, at.scope, standing)

    def _target(self, at: Located, reference: Any, where: str) -> Target:
        if not isinstance(reference, str):
            raise GrammarError(f"a reference must be a string, not {kind_name(reference)}", where=where)
        found = at.resource.targets.get(reference)
        if found is None:
            if reference == "#" or reference.startswith("#/"):
                found = self._walk(at.resource, reference[1:], where)
            else:
                found = self._by_uri(at, reference, where)
            at.resource.targets[reference] = found
        return found

    def _walk(self, resource: Resource, fragment: str, where: str) -> Target:
        value: Any = resource.root
        pointer = resource.pointer
        for raw in unquote(fragment).split("/")[1:]:
            token = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and token in value:
                value = value[token]
            elif isinstance(value, list) and token.isdigit() and int(token) < len(value):
                value = value[int(token)]
            else:
                raise GrammarError(
                    f"the reference {'#' + fragment!r} points to nothing: there is no {token!r}",
                    where=where,
                    remedy="Correct the reference, or add what it names.",
                )
            pointer = f"{pointer}/{raw}"
            if isinstance(value, dict):
                resource = self._owner(value, pointer, resource)
        return Target(value, pointer, resource)

    def _by_uri(self, at: Located, reference: str, where: str) -> Target:
        uri, fragment = urldefrag(urljoin(at.resource.uri, reference))
        if reference.startswith("#"):
            uri = at.resource.uri
        resource = self._all_resources().get(uri) or self._retrieve(uri, at.resource.dialect)
        if resource is None:
            raise refusals.REFERENCE.at(where, reference=reference)
        if not fragment or fragment.startswith("/"):
            return self._walk(resource, fragment, where)
        found = self._anchors.get((resource.uri, fragment))
        if found is None:
            raise GrammarError(
                f"there is no anchor {fragment!r} for the reference {reference!r}",
                where=where,
                remedy="Correct the reference, or add the anchor.",
            )
        return found

    def _all_resources(self) -> dict[str, Resource]:
        if self._resources is None:
            self._resources = {self.resource.uri: self.resource}
            self._scan(self.resource)
        return self._resources

    def _retrieve(self, uri: str, dialect: Dialect) -> Resource | None:
        contents = None
        for registry in (self._registry, _specifications()):
            if registry is not None and contents is None:
                for name in (uri, uri + "#"):
                    found = registry.get(name)
                    if found is not None:
                        contents = found.contents
                        break
        if contents is None:
            return None
        own = None
        if isinstance(contents, dict):
            dialect = self._dialect(contents, dialect, f"{uri}#")
            own = contents.get(dialect.identifier)
        resource = Resource(contents, uri, dialect, f"{uri}#")
        if isinstance(own, str):
            resource.uri = urldefrag(urljoin(uri, own))[0]
        resources = self._all_resources()
        resource = resources.setdefault(resource.uri, resource)
        resources[uri] = resource
        self._scan(resource)
        return resource

    def _scan(self, resource: Resource) -> None:
        """Record every embedded resource and anchor of a document, in the places where schemas can be."""
        resources = self._all_resources()
        work: list[tuple[Any, str, Resource]] = [(resource.root, resource.pointer, resource)]
        while work:
            schema, pointer, owner = work.pop()
            if not isinstance(schema, dict):
                continue
            owner = self._owner(schema, pointer, owner)
            dialect = owner.dialect
            if "$ref" in schema and dialect.reference_stands_alone:
                continue
            if schema is owner.root:
                resources.setdefault(owner.uri, owner)
                if schema.get("$recursiveAnchor") is True and dialect.order == 2019:
                    owner.dynamic[RECURSIVE] = Target(schema, pointer, owner)
            for keyword in ("$anchor", "$dynamicAnchor", dialect.identifier):
                name = schema.get(keyword)
                if isinstance(name, str):
                    target = Target(schema, pointer, owner)
                    if keyword == dialect.identifier:
                        name = name.partition("#")[2]
                    elif dialect.order < (2020 if keyword == "$dynamicAnchor" else 2019):
                        continue
                    elif keyword == "$dynamicAnchor":
                        owner.dynamic.setdefault(name, target)
                    if name:
                        self._anchors.setdefault((owner.uri, name), target)
            for keyword in ONE_SCHEMA:
                if isinstance(schema.get(keyword), dict):
                    work.append((schema[keyword], f"{pointer}/{keyword}", owner))
            for keyword in SCHEMA_LISTS:
                if isinstance(schema.get(keyword), list):
                    work.extend((item, f"{pointer}/{keyword}/{i}", owner) for i, item in enumerate(schema[keyword]))
            for keyword in SCHEMA_MAPS:
                if isinstance(schema.get(keyword), dict):
                    work.extend((v, f"{pointer}/{keyword}/{escape(k)}", owner) for k, v in schema[keyword].items())


def _standing_under(keyword: str) -> Standing:
    if keyword in _CONDITIONS:
        return Standing.LETTER
    return Standing.PART if keyword in _PARTS else Standing.WHOLE


def _specifications() -> Any:
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    return REGISTRY


def kind_name(value: Any) -> str:
    """What kind of JSON value this is, with its article, for messages."""
    names = {type(None): "null", bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
