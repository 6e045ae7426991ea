"""What is kept of a schema as long as its grammar, and is in no cycle: the cyclic garbage collector need not walk it.

A schema leaves some two hundred objects behind that hold others, and a full collection walks those of all schemas that
are remembered, at half a millisecond for each new one.  A quarter of them are shapes and the needs that they name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from guided.collection import untrack
from guided.grammar.json_schema.sets.shape import ANY_OBJECT, OF_TYPES, Need, Shape
from guided.grammar.rules import RulesOnDemand

if TYPE_CHECKING:
    from guided.grammar.json_schema.lowering.lower import Lowering

__all__ = ["untrack_lowering", "untrack_shapes"]

MOST = 64
"""Needs of a schema up to which this is done; larger schemas are few, and it would be a tenth of what they take."""


def untrack_shapes(shapes: Mapping[Need, Shape]) -> None:
    """Tell the collector of shapes and needs, none of which refers to anything that could refer to it."""
    if len(shapes) > MOST:
        return
    plain = ANY_OBJECT.classes
    for need, shape in shapes.items():
        if need in OF_TYPES:
            continue  # the same in every schema
        untrack(need)
        untrack(shape)
        for atom in need:
            untrack(atom)
        things = shape.objects
        if things:
            untrack(things)
            for thing in things:
                untrack(thing)
                untrack(thing.declared)
                if thing.required:
                    untrack(thing.required)
                if thing.classes is not plain:
                    untrack(thing.classes)
                    untrack(thing.classes[0])
        if shape.arrays:
            untrack(shape.arrays)
            for array in shape.arrays:
                untrack(array)
        if shape.strings:
            untrack(shape.strings)
            for item in shape.strings:
                untrack(item)


def untrack_lowering(lowering: Lowering, rules: RulesOnDemand) -> None:
    """Tell the collector of what is kept so that rules can be made when they are asked for.

    It knows shapes and rules by their numbers, and rules know it; it knows nothing of the grammar that holds them.
    """
    rules.untrack(MOST)
    for thing in (lowering, lowering.graph):
        for item in vars(thing).values():
            if type(item) in _CONTAINERS:
                untrack(item)
        untrack(thing)
        untrack(vars(thing))


_CONTAINERS = frozenset((dict, list, set, tuple))
