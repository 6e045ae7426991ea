"""TypeScript over a text of declarations: expressions of one type."""

from guided.grammar.typed_typescript.expressions import typescript_expression

__all__ = ["typescript_expression"]
