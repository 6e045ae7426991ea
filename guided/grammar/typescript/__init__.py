"""TypeScript's types as JSON Schemas (`schemas`), and the trees of its texts (`text`)."""

from guided.grammar.typescript.schemas import typescript_schema

__all__ = ["typescript_schema"]
