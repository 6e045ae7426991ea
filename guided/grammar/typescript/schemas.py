"""TypeScript's types as JSON Schemas: of the JSON texts that are literals of a type, under ``strict``.

tree-sitter reads the text; here is what types mean.  Objects are closed, as they are for literals, also in each option
of a union.  Nothing is computed but what says which values there are: conditional types, ``keyof``, functions, classes
and imports are refused by place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.typescript.text import place_of, syntax_tree

__all__ = ["typescript_schema"]

_MOST = 2000
"""Types with their arguments that a text may have; one that gives itself ever larger arguments has no end."""
_SIMPLE: Mapping[str, Any] = {
    "string": {"type": "string"}, "number": {"type": "number"}, "boolean": {"type": "boolean"},
    "any": True, "unknown": True, "never": False,
}  # fmt: skip
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_MAPPED = ("Partial", "Required", "Readonly", "Pick", "Omit", "Record")


def typescript_schema(text: str, name: str | None = None) -> dict[str, Any]:
    """The schema of an interface, a type alias or an enum of a TypeScript text.

    ``name`` may be left out where the text has one of them.  Raises `GrammarError` for what is no TypeScript, and
    `UnsupportedError` for types that are read by no rule here, with line and column.

    >>> schema = typescript_schema("interface Point { x: number; label?: 'a' | 'b' }")
    >>> schema["$defs"]["Point"]["properties"]
    {'x': {'type': 'number'}, 'label': {'enum': ['a', 'b']}}
    """
    types = _Types(text)
    if name is None:
        if len(types.declared) != 1:
            raise GrammarError(
                f"the text has {len(types.declared)} types", remedy=f"Name one of them: {', '.join(types.declared)}."
            )
        (name,) = types.declared
    if name not in types.declared:
        raise GrammarError(
            f"the text has no type {name!r}", remedy=f"Its types are {', '.join(types.declared) or 'none'}."
        )
    node = types.declared[name]
    if any(each.type == "type_parameters" for each in node.children):
        without = node.child_by_field_name("type_parameters")
        if any(each.child_by_field_name("value") is None for each in without.named_children):
            raise types.refused(node, f"{name} without the arguments it needs", "Declare an alias that gives them.")
    try:
        whole = types.reference(name, [], node)
    except RecursionError:
        raise LimitError(f"{name} is nested too deeply, or without end", remedy="Nest it less deeply.") from None
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "$defs": types.definitions}


@dataclass(frozen=True)
class _Object:
    """An object type: its members, those that must be there, and the type of all others, None for none."""

    members: dict[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    others: Any = None

    def schema(self) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object", "properties": self.members}
        if self.required:
            made["required"] = list(self.required)
        return {**made, "additionalProperties": False if self.others is None else self.others}


class _Types:
    """The types that a text declares, and the schemas of those that were asked for."""

    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self.definitions: dict[str, Any] = {}
        self.declared: dict[str, Any] = {}
        for statement in syntax_tree(self._text).named_children:
            node = statement
            while node.type in ("export_statement", "ambient_declaration") and node.named_children:
                node = node.named_children[-1]
            if node.type in ("interface_declaration", "type_alias_declaration", "enum_declaration"):
                name = self._said(node.child_by_field_name("name"))
                if name in self.declared:
                    raise self.refused(node, f"a second declaration of {name}", "Make them one.")
                self.declared[name] = node

    def refused(self, node: Any, what: str, remedy: str) -> UnsupportedError:
        return UnsupportedError(what, where=self._place(node), remedy=remedy)

    def _place(self, node: Any) -> str:
        return place_of(node, self._text)

    def _said(self, node: Any) -> str:
        return str(node.text.decode())

    def reference(self, name: str, given: list[Any], node: Any) -> dict[str, Any]:
        """A declared type with its arguments, defined once."""
        key = name if not given else f"{name}<{', '.join(map(json.dumps, given))}>"
        if key not in self.definitions:
            if len(self.definitions) >= _MOST:
                raise LimitError(
                    f"there are more than {_MOST} types", where=self._place(node), remedy="Use fewer arguments."
                )
            self.definitions[key] = True  # it may come back to itself
            declared = self.declared[name]
            if declared.type == "enum_declaration":
                self.definitions[key] = {"enum": list(self._enum(declared).values())}
            else:
                names = self._arguments(name, given, node)
                if declared.type == "interface_declaration":
                    self.definitions[key] = self._interface(declared, names).schema()
                else:
                    self.definitions[key] = self.type(declared.child_by_field_name("value"), names)
        pointer = key.replace("~", "~0").replace("/", "~1")
        return {"$ref": f"#/$defs/{quote(pointer, safe='~')}"}

    def _arguments(self, name: str, given: list[Any], node: Any) -> dict[str, Any]:
        """The schemas of a type's parameters by name, defaults where none is given."""
        parameters = self.declared[name].child_by_field_name("type_parameters")
        wanted = [] if parameters is None else parameters.named_children
        names: dict[str, Any] = {}
        for number, each in enumerate(wanted):
            default = each.child_by_field_name("value")
            if number < len(given):
                value = given[number]
            elif default is not None:
                value = self.type(default.named_children[0], names)
            else:
                raise GrammarError(f"{name} needs more arguments", where=self._place(node), remedy="Give them.")
            names[self._said(each.child_by_field_name("name"))] = value
        if len(given) > len(wanted):
            raise GrammarError(f"{name} takes fewer arguments", where=self._place(node), remedy="Leave some out.")
        return names

    def type(self, node: Any, names: Mapping[str, Any]) -> Any:
        """The schema of a type; ``names`` are the type parameters."""
        match node.type:
            case "predefined_type" if self._said(node) in _SIMPLE:
                return _SIMPLE[self._said(node)]
            case "literal_type":
                return {"const": self._literal(node.named_children[0])}
            case "parenthesized_type" | "readonly_type":
                return self.type(node.named_children[-1], names)
            case "array_type":
                return {"type": "array", "items": self.type(node.named_children[0], names)}
            case "tuple_type":
                return self._tuple(node, names)
            case "union_type":
                return _one_of([self.type(each, names) for each in self._options(node)])
            case "object_type" | "intersection_type":
                return self._object(node, names).schema()
            case "template_literal_type":
                return {"type": "string", "pattern": f"^{self._pattern(node, names)}$"}
            case "type_identifier":
                name = self._said(node)
                return names[name] if name in names else self._named(name, [], node)
            case "nested_type_identifier":
                return {"const": self._member(node)}
            case "generic_type":
                return self._generic(node, names)
        raise self.refused(node, f"the type {self._said(node)[:60]!r}", "Write the type of its values out.")

    def _named(self, name: str, given: list[Any], node: Any) -> dict[str, Any]:
        if name not in self.declared:
            raise self.refused(node, f"the type {name!r}, which the text does not declare", "Declare it in the text.")
        return self.reference(name, given, node)

    def _generic(self, node: Any, names: Mapping[str, Any]) -> Any:
        name = self._said(node.child_by_field_name("name"))
        arguments = node.child_by_field_name("type_arguments").named_children
        if name not in self.declared:
            if name in ("Array", "ReadonlyArray") and len(arguments) == 1:
                return {"type": "array", "items": self.type(arguments[0], names)}
            if name in _MAPPED:
                return self._object(node, names).schema()
        return self._named(name, [self.type(each, names) for each in arguments], node)

    def _options(self, node: Any) -> list[Any]:
        """The types of a union, of which the parser makes a chain, and parentheses one more."""
        while node.type == "parenthesized_type":
            node = node.named_children[0]
        return (
            [each for part in node.named_children for each in self._options(part)]
            if node.type == "union_type"
            else [node]
        )

    def _tuple(self, node: Any, names: Mapping[str, Any]) -> dict[str, Any]:
        first: list[Any] = []
        n_needed, others = 0, False
        elements = node.named_children
        for number, each in enumerate(elements):
            annotation = each.child_by_field_name("type")
            inner = each if annotation is None else annotation.named_children[0]
            rest = inner.type == "rest_type" or any(
                part.type in ("rest_pattern", "rest_type") for part in each.named_children
            )
            if rest:
                if number != len(elements) - 1:
                    raise self.refused(each, "a rest that is not the last of a tuple", "Put it last.")
                kept = inner.named_children[-1] if inner.type == "rest_type" else inner
                made = self.type(kept, names)
                if not isinstance(made, dict) or set(made) != {"type", "items"}:
                    raise self.refused(each, "a rest that is no array", "Write it as ...T[].")
                others = made["items"]
                continue
            optional = each.type in ("optional_type", "optional_parameter")
            if not optional:
                n_needed = number + 1
            first.append(self.type(each.named_children[0] if each.type == "optional_type" else inner, names))
        return {"type": "array", "prefixItems": first, "items": others, "minItems": n_needed} if first else {
            "type": "array", "items": others,
        }  # fmt: skip

    def _object(self, node: Any, names: Mapping[str, Any]) -> _Object:
        """The members of an object type, also of one that is named or made of others."""
        match node.type:
            case "parenthesized_type":
                return self._object(node.named_children[0], names)
            case "object_type" | "interface_body":
                return self._members(node, names)
            case "intersection_type":
                one, other = (self._object(each, names) for each in node.named_children)
                return self._both(one, other, node)
            case "type_identifier" | "generic_type":
                given = node.child_by_field_name("type_arguments") if node.type == "generic_type" else None
                parts = [] if given is None else given.named_children
                name = self._said(node if given is None else node.child_by_field_name("name"))
                declared = self.declared.get(name)
                if declared is None and name in _MAPPED:
                    return self._mapped(name, parts, names, node)
                if declared is not None and declared.type != "enum_declaration":
                    inner = self._arguments(name, [self.type(each, names) for each in parts], node)
                    if declared.type == "interface_declaration":
                        return self._interface(declared, inner)
                    return self._object(declared.child_by_field_name("value"), inner)
        raise self.refused(node, f"{self._said(node)[:60]!r} where an object type is needed", "Write its members out.")

    def _both(self, one: _Object, other: _Object, node: Any) -> _Object:
        if one.others is not None or other.others is not None:
            raise self.refused(node, "an index signature in an intersection", "Write one object type.")
        members = dict(one.members)
        for name, schema in other.members.items():
            if members.setdefault(name, schema) != schema:
                # Two closed objects would have no members in common, where TypeScript has those of both.
                raise self.refused(node, f"an intersection of two types of {name!r}", "Write one object type.")
        return _Object(members, tuple(dict.fromkeys(one.required + other.required)))

    def _interface(self, declared: Any, names: Mapping[str, Any]) -> _Object:
        own = self._members(declared.child_by_field_name("body"), names)
        for clause in (each for each in declared.children if each.type == "extends_type_clause"):
            for base in clause.named_children:
                found = self._object(base, names)
                kept = tuple(name for name in found.required if name not in own.members)
                own = _Object(
                    found.members | own.members, kept + own.required, found.others if own.others is None else own.others
                )
        return own

    def _members(self, node: Any, names: Mapping[str, Any]) -> _Object:
        members: dict[str, Any] = {}
        required: list[str] = []
        others = None
        for each in node.named_children:
            annotation = each.child_by_field_name("type")
            if each.type == "comment":
                continue
            if each.type == "index_signature" and others is None:
                index = each.child_by_field_name("index_type")
                if index is not None and self._said(index) == "string" and annotation is not None:
                    others = self.type(annotation.named_children[0], names)
                    continue
            if each.type != "property_signature" or annotation is None:
                raise self.refused(
                    each, f"the member {self._said(each)[:60]!r}", "Leave it out, or give it a type of JSON."
                )
            label = each.child_by_field_name("name")
            if label.type not in ("property_identifier", "string", "number"):
                raise self.refused(label, "a computed name", "Write the name out.")
            name = self._said(label) if label.type == "property_identifier" else str(self._literal(label))
            if name in members:
                raise GrammarError(f"the member {name!r} is there twice", where=self._place(label), remedy="Drop one.")
            options = self._options(annotation.named_children[0])
            there = [option for option in options if self._said(option) != "undefined"]
            # What is undefined is not written.
            members[name] = _one_of([self.type(option, names) for option in there]) if there else False
            if len(there) == len(options) and all(part.type != "?" for part in each.children):
                required.append(name)
        return _Object(members, tuple(required), others)

    def _mapped(self, name: str, parts: list[Any], names: Mapping[str, Any], node: Any) -> _Object:
        if len(parts) != (2 if name in ("Pick", "Omit", "Record") else 1):
            raise GrammarError(f"{name} with {len(parts)} arguments", where=self._place(node), remedy="Correct it.")
        if name == "Record":
            value = self.type(parts[1], names)
            if self._said(parts[0]) == "string":
                return _Object(others=value)
            keys = self._keys(parts[0], names)
            return _Object(dict.fromkeys(keys, value), keys)
        found = self._object(parts[0], names)
        if name in ("Partial", "Required"):
            return replace(found, required=() if name == "Partial" else tuple(found.members))
        if name == "Readonly":
            return found
        keys = self._keys(parts[1], names)
        kept = [each for each in found.members if (each in keys) is (name == "Pick")]
        if found.others is not None or (name == "Pick" and len(kept) < len(keys)):
            raise self.refused(node, f"{name} of names that are no members", "Write its members out.")
        return _Object({each: found.members[each] for each in kept}, tuple(k for k in found.required if k in kept))

    def _keys(self, node: Any, names: Mapping[str, Any]) -> tuple[str, ...]:
        values = _texts(self._followed(self.type(node, names)))
        if not values:
            raise self.refused(node, "keys that are neither string nor literals of it", "Write the names out.")
        return values

    def _followed(self, schema: Any) -> Any:
        """A schema, or what its reference means."""
        seen = set()
        while isinstance(schema, dict) and "$ref" in schema and schema["$ref"] not in seen:
            seen.add(schema["$ref"])
            pointer = unquote(schema["$ref"].removeprefix("#/$defs/"))
            schema = self.definitions[pointer.replace("~1", "/").replace("~0", "~")]
        return schema

    def _pattern(self, node: Any, names: Mapping[str, Any]) -> str:
        """A template as a pattern; numbers are left out, since every spelling of one would do."""
        made = ""
        for each in node.children:
            if each.type == "string_fragment":
                made += re.escape(self._said(each))
            elif each.type == "escape_sequence":
                made += re.escape(_unescaped(self._said(each)))
            elif each.type == "template_type":
                schema = self._followed(self.type(each.named_children[0], names))
                values = _texts(schema)
                if schema == _SIMPLE["string"]:
                    made += r"[\s\S]*"
                elif schema == _SIMPLE["boolean"]:
                    made += "(?:true|false)"
                elif values:
                    made += f"(?:{'|'.join(map(re.escape, values))})"
                else:
                    raise self.refused(each, f"{self._said(each)!r} in a template", "Write its texts as a union.")
        return made

    def _enum(self, declared: Any) -> dict[str, Any]:
        values: dict[str, Any] = {}
        following: Any = 0
        for each in declared.child_by_field_name("body").named_children:
            if each.type == "comment":
                continue
            assigned = each.type == "enum_assignment"
            label = each.child_by_field_name("name") if assigned else each
            name = str(self._literal(label)) if label.type == "string" else self._said(label)
            value = self._literal(each.child_by_field_name("value")) if assigned else following
            if value is None or isinstance(value, bool):
                raise self.refused(each, "a member of an enum without a value that is written", "Write its value.")
            values[name] = value
            following = None if isinstance(value, str) else value + 1
        return values

    def _member(self, node: Any) -> Any:
        owner, name = self._said(node).rsplit(".", 1)
        declared = self.declared.get(owner)
        if declared is None or declared.type != "enum_declaration" or name not in self._enum(declared):
            raise self.refused(node, f"the type {self._said(node)!r}", "Declare it in the text.")
        return self._enum(declared)[name]

    def _literal(self, node: Any) -> Any:
        text = self._said(node)
        if node.type == "string":
            parts = (
                self._said(each) if each.type == "string_fragment" else _unescaped(self._said(each))
                for each in node.named_children
            )
            return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if node.type == "unary_expression" and text[0] == "-":
            return -self._literal(node.child_by_field_name("argument"))
        digits = text.replace("_", "")
        if node.type == "number" and not text.endswith("n"):
            if re.match(r"0[xXoObB]", digits):
                return int(digits, 0)
            value = float(digits)
            if value != float("inf"):
                return int(value) if value.is_integer() else value
        if node.type in ("true", "false", "null"):
            return json.loads(node.type)
        raise self.refused(node, f"the value {text[:60]!r}", "Write a literal of JSON.")


def _one_of(schemas: list[Any]) -> Any:
    """A union; literals together."""
    if len(schemas) == 1:
        return schemas[0]
    literals = [each for each in schemas if isinstance(each, dict) and set(each) == {"const"}]
    if len(literals) == len(schemas):
        unlike = {json.dumps(each["const"]): each["const"] for each in literals}
        return {"enum": list(unlike.values())}
    return {"anyOf": schemas}


def _texts(schema: Any) -> tuple[str, ...]:
    """The texts of a union of them; none of another schema."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else []) if isinstance(schema, dict) else []
    return tuple(values) if all(isinstance(each, str) for each in values) else ()


def _unescaped(text: str) -> str:
    """What an escape sequence stands for."""
    said = text[1:]
    if said[0] in "xu" and len(said) > 1:
        return chr(int(said[1:].strip("{}"), 16))
    return _ESCAPES.get(said, said)
