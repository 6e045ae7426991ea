"""Shapes and needs are out of the collector's sight, and still go when their grammar does."""

import gc
import weakref

import guided
from guided.grammar.json_schema import _recent
from guided.grammar.json_schema.keywords.formats import Formats
from guided.grammar.json_schema.keywords.normalise import Normaliser
from guided.grammar.json_schema.lowering.untracked import untrack_shapes
from guided.grammar.json_schema.reading.document import Document
from guided.grammar.json_schema.satisfiability.graph import Graph
from guided.grammar.json_schema.sets.shape import OF_TYPES

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3}, "b": {"enum": ["x", 1, None]}},
    "patternProperties": {"^z": {"type": "string", "minLength": 2}},
    "additionalProperties": {"not": {"type": "object"}},
    "required": ["a"],
}


def test_nothing_of_a_shape_is_walked():
    normaliser = Normaliser(Document(SCHEMA), Formats.DEFAULT)
    graph = Graph(normaliser, normaliser.need(normaliser.document.root))
    untrack_shapes(graph.shapes)
    for need, shape in graph.shapes.items():
        if need in OF_TYPES:
            continue
        assert not gc.is_tracked(need) and not gc.is_tracked(shape)
        for thing in (*need, *shape.objects, *shape.arrays, *shape.strings):
            assert not gc.is_tracked(thing)


def test_a_grammar_that_is_forgotten_is_freed_by_counting():
    _recent.clear()
    gc.collect()
    gc.disable()
    try:
        grammar = guided.json_schema(SCHEMA)
        rule = grammar.rules[1]
        for made in grammar.rules:
            assert made.body is not None
        gone = weakref.ref(grammar)
        _recent.clear()
        del grammar, made, rule
        assert gone() is None
    finally:
        gc.enable()
