"""TypeScript over a text of declarations: expressions of one type, and statements."""

from guided.grammar.typed_typescript.expressions import typescript_expression
from guided.grammar.typed_typescript.statements import typescript_statements

__all__ = ["typescript_expression", "typescript_statements"]
