"""Operations of OpenAPI documents (3.0 and 3.1) as JSON Schemas: parameters, bodies, responses, and tools to call.

Reading order: `yaml_text` (YAML 1.2 to data), `document` (versions, references), `schemas` (schema objects to JSON
Schema), `operations`.  Nothing is fetched, and no request is made.
"""

from __future__ import annotations

from guided.grammar.openapi.document import OpenApi, read_openapi
from guided.grammar.openapi.operations import Operation, operation, operations

__all__ = ["OpenApi", "Operation", "operation", "operations", "read_openapi"]
