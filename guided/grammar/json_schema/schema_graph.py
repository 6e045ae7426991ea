"""From a schema to the graph of what it allows, with everything that can be refused of it refused."""

from __future__ import annotations

from typing import Any

from guided.grammar.json_schema.keywords.formats import Formats
from guided.grammar.json_schema.keywords.normalise import Branches, Normaliser
from guided.grammar.json_schema.layout import Order
from guided.grammar.json_schema.reading.document import Document, Objects, Schema
from guided.grammar.json_schema.satisfiability.distinct import drop_unfillable
from guided.grammar.json_schema.satisfiability.graph import Graph

__all__ = ["graph_of"]


def graph_of(
    source: Schema, text: str, objects: Objects, order: Order, registry: Any, formats: Formats
) -> tuple[Document, Graph]:
    """The document and the graph of a schema, whose JSON is ``text``; raises what `guided.json_schema` does."""
    document = Document(source, registry, text, objects)
    overlapping: frozenset[Branches] = frozenset()
    while True:
        normaliser = Normaliser(document, formats, overlapping)
        graph = Graph(normaliser, normaliser.need(document.root), order is Order.SCHEMA)
        if not graph.overlapping:
            break
        overlapping = overlapping.union(graph.overlapping)
    if graph.compares:
        drop_unfillable(graph)
    graph.check()
    return document, graph
