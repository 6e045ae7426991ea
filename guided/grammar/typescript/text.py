"""Texts of TypeScript as trees of tree-sitter, and where in a text a node stands."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from guided.errors import GrammarError, GuidedError

__all__ = ["place_of", "syntax_tree"]


def syntax_tree(text: bytes) -> Any:
    """The root of a text's tree.  Raises `GrammarError` for what is no TypeScript, with line and column."""
    if find_spec("tree_sitter") is None or find_spec("tree_sitter_typescript") is None:
        raise GuidedError(
            "this needs tree-sitter, which is not installed", remedy="Run: pip install 'guided-decoding[typescript]'"
        )
    import tree_sitter
    import tree_sitter_typescript

    language = tree_sitter.Language(tree_sitter_typescript.language_typescript())
    root = tree_sitter.Parser(language).parse(text).root_node
    left = [root]
    while left:
        node = left.pop()
        if node.is_error or node.is_missing:
            raise GrammarError("this is not TypeScript", where=place_of(node, text), remedy="Correct the text.")
        left.extend(reversed([each for each in node.children if each.has_error or each.is_missing]))
    return root


def place_of(node: Any, text: bytes) -> str:
    """Line and column, in characters, counted from 1."""
    row, column = node.start_point
    line = text.split(b"\n")[row][:column].decode(errors="replace")
    return f"line {row + 1}, column {len(line) + 1}"
