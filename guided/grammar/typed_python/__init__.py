"""Python over a scope of known types: expressions of one type, and statements."""

from guided.grammar.typed_python.expressions import python_expression
from guided.grammar.typed_python.statements import python_statements

__all__ = ["python_expression", "python_statements"]
