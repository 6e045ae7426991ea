"""Is everything known of what stands before a dot?  jedi says what it found, not what it could not find.

A name behind a dot may be forbidden only where all of its owner's names are known.  That is decided here, by where the
owner comes from: a module, a class that is written out, an instance made by calling such a class, a literal, a type
that an annotation declares.  Everything else is `Unknown`, with a reason: what is assigned, passed, iterated over or
returned without an annotation, what a test narrows, a class that is still being written, objects that make names while
they run.  Runs in the process of `guided.monitor.jedi_worker`, and is all of jedi's inside that is used.
"""

from __future__ import annotations

import enum
import importlib
import re
import sys
from abc import ABCMeta
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from jedi.inference.base_value import ValueSet
from jedi.inference.gradual.annotation import infer_annotation
from jedi.inference.names import TreeNameDefinition
from jedi.inference.syntax_tree import infer_trailer

__all__ = ["Unknown", "names_of_owner"]


class Unknown(Exception):
    """Not all names are known; the message says why, in words that are the same for every such place."""


_DEPTH = 12
"""Definitions that lead to one another."""
_ASSIGNED = re.compile(r"\.\s*([^\W\d]\w*)\s*(?::[^=\n]+)?(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)")
_MAKES_NAMES = re.compile(
    r"\bglobals\s*\(|\bvars\s*\(|\bsys\.modules\[|\bdef __getattr__\b|\bexec\s*\(|\blocals\s*\(\)"
)
_MAKES_ATTRIBUTES = re.compile(r"\bsetattr\b|\b__dict__\b|\bvars\s*\(|\b__getattr(?:ibute)?__\b|\b__class__\s*=")
_NARROWING = r"\b(?:isinstance|issubclass|hasattr|getattr|setattr|delattr|callable|type|cast|match|vars)\s*\(?\s*"
_DECORATORS = frozenset({"dataclass", "final", "total_ordering", "runtime_checkable", "unique", "abstractmethod"})
"""Those that leave a class's names as they are written."""
_METACLASSES = frozenset({"type", "ABCMeta", "EnumMeta", "EnumType", "_ProtocolMeta"})
_OF_CLASSES = frozenset({*dir(type), *dir(ABCMeta), *dir(type(enum.Enum))})
_ABSTRACT = frozenset(
    {"typing", "typing_extensions", "collections.abc", "_collections_abc", "abc", "_typeshed", "types"}
)
"""Modules whose classes say what an object can do at least."""
_NOT_IMPORTED = frozenset(
    {"antigravity", "this", "idlelib", "turtle", "turtledemo", "tkinter", "test", "__main__", "lib2to3"}
)
"""Parts of the standard library that do something when imported."""


def names_of_owner(script: Any, source: str, path_is_running: bool) -> set[str]:
    """All names of what ends ``source`` (its dot left out); raises `Unknown`.

    ``script`` is jedi's of that text; ``path_is_running``: is the environment the one of this process?
    """
    module = script._module_node
    position = module.end_pos
    leaf = module.get_last_leaf()
    while leaf is not None and leaf.type in ("endmarker", "newline", "error_leaf") and leaf.value.strip() == "":
        leaf = leaf.get_previous_leaf()
    if leaf is None or leaf.end_pos > position:
        raise Unknown("no expression")
    node = leaf
    while node.parent is not None and node.parent.end_pos == leaf.end_pos and node.parent.type in _EXPRESSIONS:
        node = node.parent
    reader = _Reader(script, source, leaf, path_is_running)
    values = reader.values(node, script._get_module_context().create_context(leaf))
    if not all(value.is_module() for value in values):
        reader.refuse_narrowed(node)
    found = {match.group(1) for match in _ASSIGNED.finditer(source)}
    for value in values:
        found |= reader.names(value)
    return found


_EXPRESSIONS = frozenset({"atom_expr", "power", "atom", "trailer", "strings", "name"})
_LITERALS = frozenset({"string", "number", "strings", "fstring"})


class _Reader:
    def __init__(self, script: Any, source: str, leaf: Any, running: bool) -> None:
        self.state = script._inference_state
        self.module = script._module_node
        self.source = source
        self.leaf = leaf
        self.running = running
        self.depth = 0

    def refuse_narrowed(self, node: Any) -> None:
        """A test of what an object is may make it more than what it was declared to be."""
        first = node.get_first_leaf()
        if first.type == "name":
            pattern = _NARROWING + re.escape(first.value) + r"\b"
            if re.search(pattern, self.source):
                raise Unknown("narrowed by a test")

    # What an expression is.

    def values(self, node: Any, context: Any) -> Any:
        """The values of an expression, all of them; raises `Unknown`."""
        self.depth += 1
        if self.depth > _DEPTH:
            raise Unknown("too many steps")
        try:
            found = self._values(node, context)
        finally:
            self.depth -= 1
        if not found:
            raise Unknown("not found")
        for value in found:
            self.check(value)
        return found

    def _values(self, node: Any, context: Any) -> Any:
        if node.type in _LITERALS:
            return context.infer_node(node)
        if node.type == "name":
            return self.of_name(node, context)
        if node.type == "atom" and node.children[0].value == "(" and len(node.children) == 3:
            return self.values(node.children[1], context)
        if node.type == "atom" and node.children[0].value in "[{":
            return context.infer_node(node)
        if node.type not in ("atom_expr", "power") or node.children[0].type == "keyword":
            raise Unknown("an expression that is computed")
        first, *trailers = node.children
        if first.type == "name" and first.value == "super":
            raise Unknown(_SELF)
        found = self.values(first, context)
        for trailer in trailers:
            if trailer.type != "trailer":
                raise Unknown("an expression that is computed")
            mark = trailer.children[0].value
            if mark == "[":
                raise Unknown("an item of a collection")
            if mark == "(":
                for value in found:
                    self.check_call(value)
                found = infer_trailer(context, found, trailer)
            else:
                found = self.members(found, trailer.children[1].value)
            if not found:
                raise Unknown("not found")
            if mark == "(" or trailer is trailers[-1]:
                for value in found:
                    self.check(value)
        return found

    def of_name(self, leaf: Any, context: Any) -> Any:
        """What a name in the code stands for."""
        module, root = leaf.get_root_node(), context.get_root_context()
        used = module.get_used_names().get(leaf.value, ())
        if any(each.parent.type in ("global_stmt", "nonlocal_stmt") for each in used):
            raise Unknown("bound from elsewhere")
        bindings = [each for each in used if _binds(each)]
        scope = _scope(leaf)
        innermost = True
        while scope is not None:
            here = [each for each in bindings if _binding_scope(each) is scope]
            if here and (innermost or scope.type != "classdef"):
                break
            innermost = innermost and scope.type == "comp_for"
            scope = _scope(scope)
        else:
            return self.of_builtin(leaf, context)
        found: list[Any] = []
        for each in here:
            found += self.of_definition(each, root.create_context(each))
        return ValueSet(found)

    def of_builtin(self, leaf: Any, context: Any) -> Any:
        if _imports_everything(leaf.get_root_node()):
            raise Unknown("imported by a star")
        builtins = self.state.builtins_module
        found = builtins.py__getattribute__(leaf.value)
        if not all(value.is_class() or not value.is_instance() for value in found):
            raise Unknown("not found")
        return found

    def of_definition(self, tree_name: Any, context: Any) -> list[Any]:
        """What a definition makes of its name."""
        self.depth += 1
        try:
            if self.depth > _DEPTH:
                raise Unknown("too many steps")
            definition = tree_name.get_definition(include_setitem=False)
            if definition is None:
                raise Unknown("not found")
            if definition.type in ("classdef", "funcdef"):
                return list(TreeNameDefinition(context, tree_name).infer())
            if definition.type in ("import_name", "import_from"):
                return self.of_import(TreeNameDefinition(context, tree_name))
            if definition.type == "param":
                if definition.annotation is None:
                    own = definition.position_index == 0 and definition.get_parent_function().parent.parent
                    of_class = own and own.type in ("classdef", "decorated")
                    raise Unknown(_SELF if of_class else "a parameter without an annotation")
                return self.declared(definition.annotation, context)
            if definition.type == "expr_stmt":
                return self.of_statement(definition, tree_name, context)
            raise Unknown(_REASONS.get(definition.type, "bound by a statement that is not followed"))
        finally:
            self.depth -= 1

    def of_statement(self, statement: Any, tree_name: Any, context: Any) -> list[Any]:
        second = statement.children[1]
        if second.type == "annassign":
            if statement.children[0] is not tree_name:
                raise Unknown("an attribute that is assigned")
            return self.declared(second.children[1], context)
        if second.type != "operator" or second.value != "=":
            raise Unknown("assigned in steps")
        targets = statement.children[:-1:2]
        if tree_name not in targets:
            raise Unknown("assigned with others")
        return list(self.values(statement.children[-1], context))

    def of_import(self, name: Any) -> list[Any]:
        found: list[Any] = []
        gone_to = list(name.goto())
        if not gone_to:
            raise Unknown("an import that is not found")
        for each in gone_to:
            if each.api_type == "module" or each.tree_name is None:
                found += each.infer()
            elif each.tree_name is name.tree_name:
                raise Unknown("an import that is not found")
            else:
                found += self.of_definition(each.tree_name, each.parent_context)
        if not found:
            raise Unknown("an import that is not found")
        return found

    def declared(self, annotation: Any, context: Any) -> list[Any]:
        """Instances of what an annotation names, if all of it is known."""
        inner = annotation
        for leaf in _leaves(inner):
            if leaf.type == "string":
                raise Unknown("an annotation in quotes")
            if leaf.type == "name" and leaf.value in _VAGUE:
                raise Unknown("an annotation that says little")
        for leaf in _top_names(inner):
            classes = context.infer_node(leaf)
            if not classes or not all(value.is_class() for value in classes):
                raise Unknown("an annotation that says little")
        return list(infer_annotation(context, annotation).execute_annotation(context))

    # Members and calls.

    def members(self, owners: Any, name: str) -> Any:
        """What a name of known owners stands for."""
        found: list[Any] = []
        for owner in owners:
            if owner.is_module() and isinstance(getattr(self.real(owner), name, None), ModuleType):
                found += owner.py__getattribute__(name)
                continue
            definitions = [each for names in owner.get_filters() for each in names.get(name)]
            if not definitions:
                raise Unknown("not found")
            # The first that has it is what Python would find.
            each = definitions[0]
            if each.api_type == "module":
                found += each.infer()
                continue
            tree_name = getattr(each, "tree_name", None)
            if tree_name is None or owner.is_module() is False:
                found += self.of_member(owner, each, tree_name, name)
                continue
            found += self.of_definition(tree_name, each.parent_context)
        return ValueSet(found)

    def of_member(self, owner: Any, each: Any, tree_name: Any, name: str) -> Any:
        values = owner.py__getattribute__(name)
        if tree_name is None:
            return values
        definition = tree_name.get_definition(include_setitem=False)
        if definition is not None and definition.type == "classdef":
            return values
        if definition is not None and definition.type == "funcdef":
            if _decorators(definition) & {"property", "cached_property"} or any(v.is_instance() for v in values):
                if definition.annotation is None:
                    raise Unknown("returned without an annotation")
                return self.declared(definition.annotation, each.parent_context)
            return values
        if definition is not None and definition.type == "expr_stmt" and definition.children[1].type == "annassign":
            if definition.children[0] is not tree_name:
                raise Unknown("an attribute that is assigned")
            return self.declared(definition.children[1].children[1], each.parent_context)
        if owner.is_class() and any(base.py__name__() == "Enum" for base in owner.py__mro__()):
            return values
        raise Unknown("an attribute that is assigned")

    def check_call(self, value: Any) -> None:
        """Raise `Unknown` unless what a call gives is declared."""
        if value.is_class():
            for base in value.py__mro__():
                made = getattr(base, "tree_node", None)
                if made is None or base.get_root_context().is_stub():
                    continue
                if any(each.name.value == "__new__" for each in made.iter_funcdefs()):
                    raise Unknown("made by a __new__")
            return
        tree = getattr(value, "tree_node", None)
        if tree is None or tree.type != "funcdef":
            raise Unknown("returned without an annotation")
        overloads = getattr(value, "_overloaded_functions", ())
        if overloads:
            kinds = {self.kind_of(each.tree_node.annotation, each.parent_context) for each in overloads}
            if len(kinds) != 1:
                raise Unknown("returned by an overloaded function")
            return
        if tree.annotation is None:
            raise Unknown("returned without an annotation")
        if tree.parent.type == "async_stmt" or tree.is_generator():
            raise Unknown("awaited or iterated over")
        if _decorators(tree) - {"staticmethod", "classmethod", "abstractmethod", "final", "override", "property"}:
            raise Unknown("returned by a decorated function")
        self.declared(tree.annotation, value.parent_context)

    def kind_of(self, annotation: Any, context: Any) -> tuple[str, ...]:
        """The classes that an annotation names, without what is in brackets."""
        if annotation is None:
            raise Unknown("returned without an annotation")
        found = self.declared(annotation, context)
        return tuple(sorted(str(each.py__class__().get_qualified_names()) for each in found))

    # Whether all names of a value are known.

    def check(self, value: Any) -> None:
        """Raise `Unknown` unless the value has no names but those that are written out."""
        if value.is_module():
            self.check_module(value)
        elif value.is_class():
            self.check_class(value)
        elif value.is_instance():
            kind = value.py__class__()
            if kind.py__name__() in ("NoneType", "object", "type", "ModuleType", "SimpleNamespace"):
                raise Unknown("maybe something else later")
            if _root_name(kind) in _ABSTRACT:
                raise Unknown("an annotation that says little")
            self.check_class(kind)
            node = getattr(kind, "tree_node", None)
            written_out = node is not None and not kind.get_root_context().is_stub()
            alone = len(list(kind.py__mro__())) <= 2
            if written_out and alone and not any(each.type == "name" and _binds(each) for each in _leaves(node)):
                raise Unknown("a class without names of its own")
        elif not value.is_compiled() and not _is_display(value):
            raise Unknown("a function, which may get attributes")

    def check_module(self, value: Any) -> None:
        if value.is_namespace():
            raise Unknown("a package of several folders")
        if self.real(value) is not None:
            return
        for each in _written(value):
            node = getattr(each, "tree_node", None)
            if node is None:
                continue
            if each.is_stub():
                if not list(getattr(value, "non_stub_value_set", ())):
                    raise Unknown("a module of which only a stub is there")
                continue
            if _MAKES_NAMES.search(_code(node)):
                raise Unknown("a module that makes names while it runs")

    def check_class(self, value: Any) -> None:
        mro = list(value.py__mro__())
        for base in mro:
            node = getattr(base, "tree_node", None)
            if node is None:
                continue
            if base.py__name__() in ("object", "Generic", "Protocol") and base is not value:
                continue
            stub = base.get_root_context().is_stub()
            if node.get_root_node() is self.module and self._is_open(node):
                raise Unknown(_SELF)
            own = {each.value for each in _leaves(node) if each.type == "name" and each.parent.type == "funcdef"}
            if own & {"__getattr__", "__getattribute__"}:
                raise Unknown("an object that makes names while it runs")
            if stub:
                continue
            if _decorators(node) - _DECORATORS:
                raise Unknown("a class that a decorator changes")
            if _MAKES_ATTRIBUTES.search(_code(node)):
                raise Unknown("an object that makes names while it runs")
            listed = node.get_super_arglist()
            arguments = [] if listed is None else listed.children if listed.type == "arglist" else [listed]
            positional = [each for each in arguments if each.type not in ("argument", "operator")]
            if any(each.type == "argument" and each.children[0].value in ("*", "**") for each in arguments):
                raise Unknown("a base class that is not found")
            bases = [list(lazy.infer()) for lazy in base.py__bases__()]
            if positional and (len(bases) < len(positional) or not all(bases)):
                raise Unknown("a base class that is not found")
            if positional and not all(each.is_class() for found in bases for each in found):
                raise Unknown("a base class that is not found")
        metaclasses: Any = getattr(value, "get_metaclasses", tuple)()
        if any(each.py__name__() not in _METACLASSES for each in metaclasses):
            raise Unknown("a class that its metaclass changes")

    def _is_open(self, node: Any) -> bool:
        at = self.leaf
        while at is not None:
            if at is node:
                return True
            at = at.parent
        return False

    def names(self, value: Any) -> set[str]:
        """Names that jedi's completions may lack: those of the running interpreter, of metaclasses, of submodules."""
        found = set(dir(object) if not value.is_module() else dir(ModuleType))
        if value.is_class():
            found |= _OF_CLASSES
        kind = value.py__class__() if value.is_instance() else value
        real = self.real(kind)
        return found if real is None else found | set(dir(real))

    def real(self, value: Any) -> Any:
        """The module or class of the standard library itself, where this interpreter is the one analysed for."""
        module = value.get_root_context().py__name__() or ""
        if not self.running or module.partition(".")[0] not in sys.stdlib_module_names - _NOT_IMPORTED:
            return None
        try:
            found: Any = importlib.import_module(module)
            for name in () if value.is_module() else value.get_qualified_names() or ():
                found = getattr(found, name)
        except Exception:  # a module of another platform, or a name that only a stub has
            return None
        return found


_SELF = "a class that is still being written"
_REASONS = {
    "for_stmt": "iterated over",
    "sync_comp_for": "iterated over",
    "comp_for": "iterated over",
    "with_stmt": "entered by with",
    "try_stmt": "caught",
    "except_clause": "caught",
    "del_stmt": "deleted",
    "namedexpr_test": "assigned in an expression",
}
_VAGUE = frozenset({"Any", "object", "Self", "TypeVar", "None_", "Optional_", "Callable", "type", "Type", "Literal"})


def _binds(name: Any) -> bool:
    """Does this occurrence of a name bind it, as a name and not as an attribute?"""
    return bool(name.is_definition(include_setitem=False)) and name.parent.type != "trailer"


def _is_display(value: Any) -> bool:
    """Is it a list, tuple, dictionary or set that is written out?"""
    return getattr(value, "array_type", None) is not None or type(value).__name__.endswith("Comprehension")


def _scope(node: Any) -> Any:
    """The function, class, comprehension or module around a node."""
    at = node.parent
    came_from = node
    while at is not None:
        if at.type in ("file_input", "sync_comp_for", "comp_for"):
            return at
        # Decorators, defaults, annotations and bases belong to the scope outside; parameters and the suite do not.
        inside = came_from is at.children[-1] or came_from.type == "parameters"
        if at.type in ("funcdef", "lambdef", "classdef") and inside:
            return at
        came_from, at = at, at.parent
    return None


def _binding_scope(name: Any) -> Any:
    definition = name.get_definition(include_setitem=False)
    if definition is not None and definition.type in ("funcdef", "classdef") and definition.name is name:
        return _scope(definition)
    if definition is not None and definition.type == "param":
        at = definition.parent
        while at.type not in ("funcdef", "lambdef"):
            at = at.parent
        return at
    return _scope(name)


def _imports_everything(module: Any) -> bool:
    return any(getattr(each, "is_star_import", lambda: False)() for each in module.iter_imports())


def _leaves(node: Any) -> Iterator[Any]:
    if not hasattr(node, "children"):
        yield node
        return
    for child in node.children:
        yield from _leaves(child)


def _top_names(annotation: Any) -> Iterator[Any]:
    """The names of an annotation that say what the object itself is, parameters in brackets left out."""
    if annotation.type in ("name", "atom_expr", "power"):
        yield annotation
    elif hasattr(annotation, "children"):
        for child in annotation.children:
            yield from _top_names(child)


def _decorators(node: Any) -> set[str]:
    """The last names of a definition's decorators."""
    found: set[str] = set()
    for decorator in node.get_decorators():
        names = [leaf.value for leaf in _leaves(decorator) if leaf.type == "name"]
        code = decorator.get_code().partition("(")[0]
        names = [name for name in names if re.search(rf"\b{name}\b", code)]
        found.add(names[-1] if names else "?")
    return found


def _code(node: Any) -> str:
    code: str = node.get_code()
    return code


def _written(value: Any) -> Iterator[Any]:
    """A module, and the source of one that a stub describes."""
    yield value
    yield from getattr(value, "non_stub_value_set", ())


def _root_name(value: Any) -> str:
    return value.get_root_context().py__name__() or ""
