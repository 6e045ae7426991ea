"""What is kept of a schema as long as its grammar, and is in no cycle: the cyclic garbage collector need not walk it.

A schema leaves some two hundred objects behind that hold others, and a full collection walks those of all schemas that
are remembered, at half a millisecond for each new one.  A quarter of them are shapes and the needs that they name.
"""

from __future__ import annotations

from collections.abc import Mapping

from guided.collection import untrack
from guided.grammar.json_schema.shape import ANY_OBJECT, Need, Shape

__all__ = ["untrack_shapes"]


def untrack_shapes(shapes: Mapping[Need, Shape]) -> None:
    """Tell the collector of shapes and needs, none of which refers to anything that could refer to it."""
    plain = ANY_OBJECT.classes
    for need, shape in shapes.items():
        for atom in need:
            untrack(atom)
        untrack(need)
        untrack(shape)
        if shape.objects:
            untrack(shape.objects)
            for thing in shape.objects:
                untrack(thing)
                untrack(thing.declared)
                untrack(thing.required)
                if thing.classes is not plain:
                    untrack(thing.classes)
                    for pair in thing.classes:
                        untrack(pair)
        if shape.arrays:
            untrack(shape.arrays)
            for array in shape.arrays:
                untrack(array)
                untrack(array.prefix)
        if shape.strings:
            untrack(shape.strings)
            for item in shape.strings:
                untrack(item)
        if shape.numbers:
            untrack(shape.numbers)
