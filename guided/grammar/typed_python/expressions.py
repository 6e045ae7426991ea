"""Python expressions of a type over what is in scope, as a context-free grammar: no text of it fails to type-check.

After Mündler et al. 2025, *Type-Constrained Code Generation with Language Models*, arXiv 2504.09246: there an automaton
asks after each character whether some expression of the goal's type can still come of the text.  With a scope that is
known beforehand the well-typed expressions are a context-free language, one rule for each type that is wanted and one
for each pair of a type at hand and a type wanted; which pairs can be reached is worked out here, and the engine does
the rest.  Statements are `guided.grammar.typed_python.statements`'s; definitions are not here.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from guided.errors import GrammarError, UnsatisfiableError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.grammar.keyed_rules import Key, Options, Part, Written, grammar_from, said

__all__ = ["python_expression"]

NUMBERS = (bool, int, float)
"""Each is taken where a later one is wanted, as PEP 484 has it."""

LITERALS: dict[type, str] = {
    int: '("0" | [1-9] [0-9]*)',
    float: '("0" | [1-9] [0-9]*) "." [0-9]+',
    bool: '("True" | "False")',
    str: '"\\"" [a-zA-Z0-9 _.,:;!?-]* "\\""',
}

OPERATORS: dict[type, tuple[str, ...]] = {
    int: (" + ", " - ", " * ", " // ", " % "),
    float: (" + ", " - ", " * ", " / ", " // ", " % "),
    str: (" + ",),
}
COMPARISONS = (" < ", " <= ", " > ", " >= ", " == ", " != ")

STR_METHODS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "upper": ((), str), "lower": ((), str), "strip": ((), str), "title": ((), str), "split": ((), list[str]),
    "isdigit": ((), bool), "startswith": ((str,), bool), "endswith": ((str,), bool), "count": ((str,), int),
    "replace": ((str, str), str),
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """What may be called: its parameters, of which the first ``required`` must be given, and what it returns."""

    parameters: tuple[Any, ...]
    required: int
    result: Any


def python_expression(
    goal: Any, names: Mapping[str, Any], *, functions: Mapping[str, Callable[..., Any]] | None = None
) -> Grammar:
    """The expressions that may be assigned to a variable of type ``goal``.

    ``names`` gives the types of the variables in scope, ``functions`` what may be called (classes are, too) by its
    name, with annotated parameters and results.  Types are ``bool``, ``int``, ``float``, ``str``, ``list[...]`` of
    these, and classes, whose annotated attributes, properties and methods are members; a member whose types are others,
    and one that begins with an underscore, is left out.  Of Python's syntax there are names, literals, attributes,
    calls with arguments by position, indices of lists, arithmetic, comparisons of two numbers or texts, ``and``,
    ``or``, ``not`` and parentheses, with one space around operators and after commas and none elsewhere.

    Raises `UnsupportedError` for another type in the goal, a name or a function, `GrammarError` for what is no name,
    `UnsatisfiableError` where no expression has the type.

    >>> python_expression(int, {"n": int, "title": str})
    <Grammar 'root': 34 rules, lexing none>
    """
    scope = scope_of(names, functions)
    check_type(goal, "the goal")
    found = grammar_from(("any", goal), lambda key: expression_options(key, scope))
    if found is None:
        raise UnsatisfiableError(
            f"no expression over these names has the type {shown(goal)}", remedy="Give a name that leads to it."
        )
    return found


def scope_of(names: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] | None) -> Scope:
    """What is in scope; raises as `python_expression` does."""
    scope = Scope(dict(names), {name: signature(name, each) for name, each in (functions or {}).items()})
    for name, kind in scope.names.items():
        check_name(name)
        check_type(kind, f"the name {name}")
    for name in scope.functions:
        check_name(name)
    return scope


class Scope:
    """What is in scope, and the members of types."""

    def __init__(self, names: dict[str, Any], functions: dict[str, Call]) -> None:
        self.names = names
        self.functions = functions

    def members(self, kind: Any) -> tuple[dict[str, Any], dict[str, Call]]:
        """The attributes and the methods of a type."""
        if kind is str:
            return {}, {name: Call(given, len(given), result) for name, (given, result) in STR_METHODS.items()}
        if typing.get_origin(kind) is list:
            (item,) = typing.get_args(kind)
            return {}, {"count": Call((item,), 1, int), "copy": Call((), 0, kind)}
        if kind in NUMBERS:
            return {}, {}
        attributes = {name: each for name, each in typing.get_type_hints(kind).items() if _public(name, each)}
        methods: dict[str, Call] = {}
        for name, each in inspect.getmembers(kind):
            if isinstance(each, property) and each.fget is not None:
                result = typing.get_type_hints(each.fget).get("return")
                if _public(name, result):
                    attributes[name] = result
            elif inspect.isfunction(each) and not isinstance(inspect.getattr_static(kind, name), staticmethod):
                call = _call_of(each, skipped=1)
                if call is not None and not name.startswith("_"):
                    methods[name] = call
        return attributes, methods


def expression_options(key: Key, scope: Scope) -> Options:
    """The alternatives of a rule."""
    what, *given = key
    if not given:
        return _logic(what)
    if what == "tail":
        return _tails(given[0], given[1], scope)
    if what == "arguments":
        parameters, required = given
        found: Options = []
        for size in range(required, len(parameters) + 1):
            option: list[Part] = []
            for number, kind in enumerate(parameters[:size]):
                option += [*([said(", ")] if number else []), ("any", kind)]
            found.append(option)
        return found
    (kind,) = given
    if what == "any":
        found = [[("sum", kind)] if kind in OPERATORS else [("logic",)] if kind is bool else [("operand", kind)]]
        if kind in (int, float):
            found.append([("logic",)])
        if typing.get_origin(kind) is list:
            (item,) = typing.get_args(kind)
            found += [[said("[]")], [said("["), ("any", item), ("items", item)]]
        return found
    if what == "items":
        return [[said("]")], [said(", "), ("any", kind), ("items", kind)]]
    if what == "sum":
        return [[("operand", kind), ("more", kind)]]
    if what == "more":
        found = [[]]
        found += [[said(sign), ("operand", kind), ("more", kind)] for sign in OPERATORS[kind]]
        return found
    return operands(kind, scope)


def _logic(what: str) -> Options:
    """Truth values: comparisons, and what connects them."""
    if what == "logic":
        return [[("truth",), ("connected",)]]
    if what == "connected":
        found: Options = [[]]
        found += [[said(word), ("truth",), ("connected",)] for word in (" and ", " or ")]
        return found
    compared: Options = [[("sum", kind), said(sign), ("sum", kind)] for kind in (float, str) for sign in COMPARISONS]
    return [[said("not "), ("truth",)], [("operand", bool)], *compared]


def operands(wanted: Any, scope: Scope) -> Options:
    """What may stand between operators where a type is wanted."""
    found: Options = [[said("("), ("any", wanted), said(")")]]
    for kind, written in LITERALS.items():
        if kind is str:
            found.append([Written(written), ("tail", str, wanted)])
        elif assignable(kind, wanted):
            found.append([Written(written)])
    found += [[said(name), ("tail", kind, wanted)] for name, kind in scope.names.items()]
    found += [
        [said(f"{name}("), ("arguments", call.parameters, call.required), said(")"), ("tail", call.result, wanted)]
        for name, call in scope.functions.items()
    ]
    return found


def _tails(at_hand: Any, wanted: Any, scope: Scope) -> Options:
    """What may follow an operand of one type where another is wanted."""
    found: Options = [[]] if assignable(at_hand, wanted) else []
    attributes, methods = scope.members(at_hand)
    found += [[said(f".{name}"), ("tail", kind, wanted)] for name, kind in attributes.items()]
    found += [
        [said(f".{name}("), ("arguments", call.parameters, call.required), said(")"), ("tail", call.result, wanted)]
        for name, call in methods.items()
    ]
    if typing.get_origin(at_hand) is list:
        (item,) = typing.get_args(at_hand)
        found.append([said("["), ("any", int), said("]"), ("tail", item, wanted)])
    return found


def assignable(kind: Any, wanted: Any) -> bool:
    """Whether a value of one type is taken where another is wanted; lists are of their own item type only."""
    if kind in NUMBERS and wanted in NUMBERS:
        return NUMBERS.index(kind) <= NUMBERS.index(wanted)
    if kind == wanted:
        return True
    return isinstance(kind, type) and isinstance(wanted, type) and wanted not in NUMBERS and _inherits(kind, wanted)


def _inherits(kind: type, wanted: type) -> bool:
    return typing.get_origin(kind) is None and typing.get_origin(wanted) is None and issubclass(kind, wanted)


def _known(kind: Any) -> bool:
    """Whether a type is one of those here."""
    if typing.get_origin(kind) is list:
        return all(map(_known, typing.get_args(kind)))
    if kind in (*NUMBERS, str):
        return True
    # Other types of the language itself have members that no annotation tells.
    written = isinstance(kind, type) and typing.get_origin(kind) is None and kind.__module__ != builtins.__name__
    return written and not getattr(kind, "__parameters__", ()) and not _dynamic(kind)


def _dynamic(kind: type) -> bool:
    """Whether a class is a number or a text of its own, or an enumeration or protocol, whose members are special."""
    return issubclass(kind, (int, float, str, list)) or type(kind) is not type


def _public(name: str, kind: Any) -> bool:
    return not name.startswith("_") and _known(kind)


def _call_of(function: Callable[..., Any], *, skipped: int = 0) -> Call | None:
    """The signature of a function; None where a type is not known here or an argument must be given by its name."""
    made = isinstance(function, type)
    hints = typing.get_type_hints(function.__init__ if made else function)
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    kinds: list[Any] = []
    required = 0
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.KEYWORD_ONLY):
            if each.kind is each.KEYWORD_ONLY and each.default is each.empty:
                return None
            continue
        kind = hints.get(each.name)
        if not _known(kind):
            return None
        kinds.append(kind)
        required += each.default is each.empty
    result = function if made else hints.get("return")
    return Call(tuple(kinds), required, result) if _known(result) else None


def signature(name: str, function: Callable[..., Any]) -> Call:
    call = _call_of(function)
    if call is None:
        raise UnsupportedError(
            f"the function {name} has parameters or a result of types that are not known here",
            where="python_expression",
            remedy="Annotate it with bool, int, float, str, lists of these, and classes.",
        )
    return call


def check_name(name: str) -> None:
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise GrammarError(f"{name!r} is no name", where="python_expression", remedy="Pass an identifier in ASCII.")


def check_type(kind: Any, where: str) -> None:
    if not _known(kind):
        raise UnsupportedError(
            f"the type {shown(kind)} is not known here",
            where=where,
            remedy="Take bool, int, float, str, lists of these, or a class with annotated members.",
        )


def shown(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and typing.get_origin(kind) is None else str(kind)
