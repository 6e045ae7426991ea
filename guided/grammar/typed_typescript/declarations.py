"""What a text of TypeScript declares: names with their types, functions, interfaces, object types and classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.typed_typescript.kinds import Kind, Listed, Literals, Named, Primitive, Shape, Signature, Types
from guided.grammar.typescript.text import place_of, syntax_tree

__all__ = ["Scope", "read_scope"]

_PLAIN_TEXT = re.compile(r"[ !#-\[\]-~]*")
"""Texts that a string literal holds as they are."""


@dataclass(frozen=True)
class Scope:
    """What is in scope."""

    types: Types
    names: Mapping[str, Kind]
    functions: Mapping[str, Signature]
    makers: Mapping[str, Signature]
    """The constructors of classes."""
    variable: frozenset[str]
    """Names that may be assigned to."""


def read_scope(text: str, goal: str) -> tuple[Scope, Kind]:
    """The scope of a text of declarations, and a type over it.

    Raises `GrammarError` for what is no TypeScript, and `UnsupportedError` for declarations that are not known here.
    """
    declared = _Declarations(text)
    wanted = _Declarations(f"type Goal = {goal};")
    (alias,) = wanted.statements[:1] or [None]
    if alias is None or alias.type != "type_alias_declaration" or len(wanted.statements) > 1:
        raise GrammarError(f"{goal!r} is no type", where="the goal", remedy="Pass a type, such as number or Point[].")
    kind = declared.kind(alias.child_by_field_name("value"))
    if kind is None:
        raise UnsupportedError(
            f"the type {goal} is not known here",
            where="the goal",
            remedy="Take number, string, boolean, unions of texts, arrays of these, or a type that is declared.",
        )
    return declared.scope(), kind


class _Declarations:
    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self.statements = []
        self._types: dict[str, Any] = {}
        for statement in syntax_tree(self._text).named_children:
            node = statement
            while node.type in ("export_statement", "ambient_declaration") and node.named_children:
                node = node.named_children[-1]
            self.statements.append(node)
            if node.type in ("interface_declaration", "type_alias_declaration", "class_declaration"):
                name = _said(node.child_by_field_name("name"))
                if name in self._types:
                    raise self._refused(node, f"a second declaration of {name}", "Make them one.")
                if any(each.type == "type_parameters" for each in node.children):
                    raise self._refused(node, f"{name} has type parameters", "Write its types out.")
                self._types[name] = node
        self._aliases: set[str] = set()

    def _refused(self, node: Any, what: str, remedy: str) -> UnsupportedError:
        return UnsupportedError(what, where=place_of(node, self._text), remedy=remedy)

    def scope(self) -> Scope:
        """Everything that is declared."""
        shapes: dict[str, Shape] = {}
        makers: dict[str, Signature] = {}
        for name, node in self._types.items():
            if self._is_shape(node):
                shapes[name] = self._shape(name, node, makers)
        names: dict[str, Kind] = {}
        functions: dict[str, Signature] = {}
        variable: set[str] = set()
        for node in self.statements:
            if node.type in ("lexical_declaration", "variable_declaration"):
                for each in node.named_children:
                    name = _said(each.child_by_field_name("name"))
                    if name in names:
                        raise self._refused(each, f"a second declaration of {name}", "Keep one of them.")
                    names[name] = self._declared(each, name)
                    if node.children[0].type != "const":
                        variable.add(name)
            elif node.type in ("function_signature", "function_declaration"):
                name = _said(node.child_by_field_name("name"))
                signature = self._signature(node)
                if signature is None or name in functions:
                    what = "is declared twice" if name in functions else "has types that are not known here"
                    raise self._refused(node, f"the function {name} {what}", "Leave it out, or write it otherwise.")
                functions[name] = signature
            elif node.type not in ("interface_declaration", "type_alias_declaration", "class_declaration", "comment"):
                raise self._refused(node, f"{_said(node)[:60]!r}", "Declare names, functions, types and classes alone.")
        inherited = {name: _inherited(name, shapes, ()) for name in shapes}
        return Scope(Types(inherited), names, functions, makers, frozenset(variable))

    def _declared(self, node: Any, name: str) -> Kind:
        annotation = node.child_by_field_name("type")
        kind = None if annotation is None else self.kind(annotation.named_children[0])
        if kind is None or kind is Primitive.VOID:
            raise self._refused(
                node, f"the name {name} has no type that is known here", "Declare it with one, or leave it out."
            )
        return kind

    def _is_shape(self, node: Any) -> bool:
        value = node.child_by_field_name("value")
        return node.type != "type_alias_declaration" or str(value.type) == "object_type"

    def kind(self, node: Any) -> Kind | None:
        """A type; None for one that is not known here."""
        match node.type:
            case "predefined_type":
                return next((kind for kind in Primitive if kind.value == _said(node)), None)
            case "parenthesized_type":
                return self.kind(node.named_children[0])
            case "array_type":
                return _listed(self.kind(node.named_children[0]))
            case "generic_type" if _said(node.child_by_field_name("name")) == "Array" and "Array" not in self._types:
                (item, *more) = node.child_by_field_name("type_arguments").named_children
                return None if more else _listed(self.kind(item))
            case "literal_type" | "union_type":
                return self._literals(node)
            case "type_identifier":
                return self._named(_said(node))
        return None

    def _named(self, name: str) -> Kind | None:
        node = self._types.get(name)
        if node is None:
            return None
        if self._is_shape(node):
            return Named(name)
        if name in self._aliases:
            raise self._refused(node, f"{name} is declared by itself", "Write its type out.")
        self._aliases.add(name)
        found = self.kind(node.child_by_field_name("value"))
        self._aliases.discard(name)
        return found

    def _literals(self, node: Any) -> Literals | None:
        texts: dict[str, None] = {}
        left = [node]
        while left:
            each = left.pop()
            if each.type == "union_type":
                left += reversed(each.named_children)
                continue
            kind = None if each.type == "literal_type" else self.kind(each)
            if isinstance(kind, Literals):
                texts |= dict.fromkeys(kind.texts)
                continue
            literal = each.named_children[0] if each.type == "literal_type" else each
            text = _said(literal)[1:-1]
            if literal.type != "string" or not _PLAIN_TEXT.fullmatch(text):
                return None
            texts[text] = None
        return Literals(tuple(texts))

    def _shape(self, name: str, node: Any, makers: dict[str, Signature]) -> Shape:
        attributes: dict[str, Kind] = {}
        optional: dict[str, Kind] = {}
        methods: dict[str, Signature] = {}
        readonly: set[str] = set()
        is_whole, is_class = True, node.type == "class_declaration"
        if is_class:
            makers[name] = Signature((), 0, Named(name))
        body = node.child_by_field_name("value" if node.type == "type_alias_declaration" else "body")
        for each in body.named_children:
            if each.type == "comment":
                continue
            label = each.child_by_field_name("name")
            hidden = any(part.type == "accessibility_modifier" and _said(part) != "public" for part in each.children)
            plain = label is not None and label.type == "property_identifier" and not hidden
            if is_class and hidden and label is not None and _said(label) == "constructor":
                makers.pop(name, None)
            if not plain or any(part.type in ("static", "abstract", "get", "set") for part in each.children):
                is_whole = False
                continue
            member, annotation = _said(label), each.child_by_field_name("type")
            may_miss = any(part.type == "?" for part in each.children)
            if each.type in ("method_signature", "method_definition"):
                making = is_class and member == "constructor"
                signature = self._signature(each, Named(name) if making else None)
                if making and signature is not None:
                    makers[name] = signature
                elif making:
                    makers.pop(name, None)
                elif signature is None or may_miss or member in methods:
                    methods.pop(member, None)
                    is_whole = False
                else:
                    methods[member] = signature
                continue
            kind = None if annotation is None else self.kind(annotation.named_children[0])
            if kind is None or kind is Primitive.VOID:
                is_whole = False
            else:
                (optional if may_miss else attributes)[member] = kind
                if any(part.type == "readonly" for part in each.children):
                    readonly.add(member)
        bases, known = _bases(node)
        if any(base not in self._types or not self._is_shape(self._types[base]) for base in bases):
            bases, known = (), False
        if is_class and bases and makers.get(name) == Signature((), 0, Named(name)):
            makers.pop(name)  # Its constructor may be that of the class it extends.
        return Shape(attributes, optional, methods, bases, is_whole and known, is_class, frozenset(readonly))

    def _signature(self, node: Any, result: Kind | None = None) -> Signature | None:
        """What a call takes and returns; None where a type is not known here."""
        kinds: list[Kind] = []
        required = 0
        if any(each.type == "type_parameters" for each in node.children):
            return None
        for each in node.child_by_field_name("parameters").named_children:
            annotation = each.child_by_field_name("type")
            kind = None if annotation is None else self.kind(annotation.named_children[0])
            pattern = each.child_by_field_name("pattern")
            if kind is None or kind is Primitive.VOID or pattern is None or pattern.type != "identifier":
                return None
            kinds.append(kind)
            if each.type == "required_parameter" and each.child_by_field_name("value") is None:
                required = len(kinds)
        annotation = node.child_by_field_name("return_type")
        if result is None and annotation is not None:
            result = self.kind(annotation.named_children[0])
        return None if result is None else Signature(tuple(kinds), required, result)


def _said(node: Any) -> str:
    return str(node.text.decode())


def _listed(item: Kind | None) -> Kind | None:
    return None if item is None or item is Primitive.VOID else Listed(item)


def _bases(node: Any) -> tuple[tuple[str, ...], bool]:
    """What a type extends, by name, and whether all of it has a name."""
    found: list[str] = []
    known = True
    for clause in node.children:
        if clause.type == "class_heritage":
            clause = next((each for each in clause.named_children if each.type == "extends_clause"), None)
        if clause is None or clause.type not in ("extends_type_clause", "extends_clause"):
            continue
        for base in clause.named_children:
            if base.type in ("type_identifier", "identifier"):
                found.append(_said(base))
            else:
                known = False
    return tuple(found), known


def _inherited(name: str, shapes: Mapping[str, Shape], below: tuple[str, ...]) -> Shape:
    """A shape with the members of what it extends."""
    shape = shapes[name]
    if name in below:
        raise GrammarError(f"{name} extends itself", where=f"the type {name}", remedy="Correct the text.")
    for base in shape.bases:
        found = _inherited(base, shapes, (*below, name))
        own = shape.attributes.keys() | shape.optional.keys() | shape.methods.keys()
        shape = replace(
            shape,
            attributes={k: v for k, v in found.attributes.items() if k not in own} | dict(shape.attributes),
            optional={k: v for k, v in found.optional.items() if k not in own} | dict(shape.optional),
            methods={k: v for k, v in found.methods.items() if k not in own} | dict(shape.methods),
            is_whole=shape.is_whole and found.is_whole,
            readonly=shape.readonly | (found.readonly - own),
        )
    return shape
