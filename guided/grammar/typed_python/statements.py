"""Python statements over a scope of known types, as a context-free grammar: no text of it fails to type-check.

The statements of a function whose names are all declared before (Mündler et al. 2025, arXiv 2504.09246, type the
statements of TypeScript; here the scope does not grow, which is what keeps the language context-free).  Where a result
is wanted, every way through the statements ends in ``return``.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Any

from guided.errors import GrammarError, UnsatisfiableError
from guided.grammar.ir import Grammar
from guided.grammar.keyed_rules import Key, Options, Written, grammar_from, said
from guided.grammar.typed_python.expressions import (
    OPERATORS,
    Scope,
    assignable,
    check_type,
    expression_options,
    operands,
    scope_of,
)

__all__ = ["python_statements"]

NOTHING = type(None)
INDENT = "    "
_BREAK = Written('"\\n"')


def python_statements(
    names: Mapping[str, Any],
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    returns: Any = None,
    levels: int = 3,
    indent: int = 0,
) -> Grammar:
    """The statements of a body in whose scope are ``names``, one or more, each with its line break.

    There are assignments to names and to attributes, with ``=`` and with operators such as ``+=``, calls, ``append`` to
    lists, ``if``, ``elif`` and ``else``, ``while``, ``for`` over a list with a name of the scope, ``break``,
    ``continue``, ``pass`` and ``return``, with expressions as `guided.grammar.typed_python.python_expression` has them.
    ``returns`` is the type of the result: every way through the statements returns one; None: ``return`` stands alone.
    ``levels`` is how deep blocks nest, ``indent`` how many levels the body itself is indented.  Properties are not
    assigned to.  Raises what `python_expression` does, and `GrammarError` for levels below 0.

    >>> python_statements({"n": int}, returns=int, levels=0)
    <Grammar 'root': 37 rules, lexing none>
    """
    if levels < 0 or indent < 0:
        raise GrammarError(f"{min(levels, indent)} levels of blocks", remedy="Give 0 or more.")
    scope = scope_of(names, functions)
    wanted = NOTHING if returns is None else returns
    if wanted is not NOTHING:
        check_type(wanted, "the result")
    statements = _Statements(scope, wanted, indent + levels)
    found = grammar_from(("body", indent, False, wanted is not NOTHING), statements.options)
    if found is None:
        raise UnsatisfiableError("no statements return such a result", remedy="Give a name that leads to it.")
    return found


class _Statements:
    """Keys are a word, the level, whether a loop is around, and, of bodies, whether every way must return."""

    def __init__(self, scope: Scope, returns: Any, deepest: int) -> None:
        self.scope = scope
        self.returns = returns
        self.deepest = deepest

    def options(self, key: Key) -> Options:
        """The alternatives of statements, and of the expressions in them."""
        match key:
            case ("body", level, loop, True):
                # The last statement returns, whatever stands before.
                return [[("line", level, loop), key], [("ending", level, loop)]]
            case ("body", level, loop, False):
                found: Options = [[("line", level, loop)], [("line", level, loop), key], [("ending", level, loop)]]
                words = ("break", "continue") if loop else ()
                return found + [[said(f"{INDENT * level}{word}"), _BREAK] for word in words]
            case ("line", level, loop):
                return self.lines(level, loop)
            case ("ending", level, loop):
                return self.endings(level, loop)
            case ("branches", level, loop, returning):
                return self.branches(level, loop, returning)
            case ("call", kind):
                return self.calls(kind)
            case ("iterated", kind):
                # In parentheses not any expression: that may be a list without a type of its own.
                return [[said("("), key, said(")")], *operands(kind, self.scope)[1:]]
        return expression_options(key, self.scope)

    def lines(self, level: int, loop: bool) -> Options:
        """Statements behind which others may come."""
        margin = INDENT * level
        found: Options = [[said(f"{margin}pass"), _BREAK]]
        for name, kind in self.scope.names.items():
            found += self.assignments(f"{margin}{name}", kind)
            for attribute, of in self.written_attributes(kind):
                found += self.assignments(f"{margin}{name}.{attribute}", of)
            found.append([said(margin), said(name), ("call", kind), _BREAK])
            if typing.get_origin(kind) is list:
                (item,) = typing.get_args(kind)
                found.append([said(f"{margin}{name}.append("), ("any", item), said(")"), _BREAK])
        for name, call in self.scope.functions.items():
            arguments: Key = ("arguments", call.parameters, call.required)
            found.append([said(f"{margin}{name}("), arguments, said(")"), _BREAK])
        if level < self.deepest:
            found.append(
                [*self.headed(margin, "if "), ("body", level + 1, loop, False), ("branches", level, loop, False)]
            )
            found.append([*self.headed(margin, "while "), ("body", level + 1, True, False)])
            for name, kind in self.scope.names.items():
                for items in self.lists_of(kind):
                    head = said(f"{margin}for {name} in ")
                    found.append([head, ("iterated", items), said(":"), _BREAK, ("body", level + 1, True, False)])
        return found

    def written_attributes(self, kind: Any) -> list[tuple[str, Any]]:
        """The attributes of a class that may be assigned to."""
        if not isinstance(kind, type) or kind.__module__ == "builtins" or issubclass(kind, tuple):
            return []
        settings = getattr(kind, "__dataclass_params__", None)
        if settings is not None and settings.frozen:
            return []
        attributes, _ = self.scope.members(kind)
        return [(name, of) for name, of in attributes.items() if not isinstance(getattr(kind, name, None), property)]

    def headed(self, margin: str, word: str) -> list[Any]:
        """``if`` and its kin with a condition."""
        return [said(f"{margin}{word}"), ("logic",), said(":"), _BREAK]

    def lists_of(self, kind: Any) -> list[Any]:
        """The types of lists in scope whose items a name of a type may be."""
        found = {each: None for each in self.scope.names.values() if typing.get_origin(each) is list}
        found.update(
            {call.result: None for call in self.scope.functions.values() if typing.get_origin(call.result) is list}
        )
        return [each for each in found if assignable(typing.get_args(each)[0], kind)]

    def assignments(self, target: str, kind: Any) -> Options:
        found: Options = [[said(f"{target} = "), ("any", kind), _BREAK]]
        for sign in OPERATORS.get(kind, ()):
            found.append([said(f"{target}{sign.rstrip()}= "), ("any", kind), _BREAK])
        return found

    def calls(self, kind: Any) -> Options:
        """What is called on a value and stands alone, perhaps behind attributes."""
        attributes, methods = self.scope.members(kind)
        found: Options = [[said(f".{name}"), ("call", of)] for name, of in attributes.items()]
        for name, call in methods.items():
            found.append([said(f".{name}("), ("arguments", call.parameters, call.required), said(")")])
        return found

    def endings(self, level: int, loop: bool) -> Options:
        """Statements behind which no other comes, at the end of a body."""
        margin = INDENT * level
        result: list[Any] = (
            [said(f"{margin}return")] if self.returns is NOTHING else [said(f"{margin}return "), ("any", self.returns)]
        )
        found: Options = [[*result, _BREAK]]
        if level < self.deepest:
            body: Key = ("body", level + 1, loop, True)
            found.append([*self.headed(margin, "if "), body, ("branches", level, loop, True)])
        return found

    def branches(self, level: int, loop: bool, returning: bool) -> Options:
        """``elif`` and ``else``; where every way must return there is an ``else``."""
        margin = INDENT * level
        body: Key = ("body", level + 1, loop, returning)
        found: Options = [
            [*self.headed(margin, "elif "), body, ("branches", level, loop, returning)],
            [said(f"{margin}else:"), _BREAK, body],
        ]
        return found if returning else [[], *found]
