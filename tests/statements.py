"""The statements of a module, without the expressions in them, which are most of its tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

PARTS = (ast.stmt, ast.excepthandler, ast.match_case)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    r"""All statements and their clauses below a node, at any depth, each before what is in it.

    >>> [type(each).__name__ for each in statements(ast.parse("if a:\n    def f(): return (lambda: 1)"))]
    ['If', 'FunctionDef', 'Return']
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, PARTS):
            yield child
            yield from statements(child)
