"""Are there enough different values for the places that must be filled with different ones?

The checker that compares names and items at run time relies on it: whatever has been written, a place that must be
filled still has a value that is new.  So the place number ``j`` of an array of distinct items needs more than ``j``
values, unless the array may end before it.  Where that is not so, the array has no value, or which items may come first
depends on those that must come later; that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.satisfiability.cardinality import Cardinality, count_words
from guided.grammar.json_schema.satisfiability.graph import Graph
from guided.grammar.json_schema.sets.counting import ItemCounter
from guided.grammar.json_schema.sets.shape import ArrayShape, ObjectShape, Shape


class Distinct:
    """Answers for the arrays and objects of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._cardinality = Cardinality(graph)

    def check_array(self, array: ArrayShape, pointer: str) -> None:
        """`UnsupportedError` where what may stand at one place of an array of distinct items depends on others."""
        if array.counts:
            self._counted(array, pointer)
            return
        for index, least, _ in self._short(array):
            raise refusals.DISTINCT_ITEMS.at(pointer, index=index, count=least)

    def is_unfillable(self, array: ArrayShape) -> bool:
        """Are there surely too few values for the places of an array of distinct items that must be filled?"""
        return not array.counts and any(impossible for _, _, impossible in self._short(array))

    def _short(self, array: ArrayShape) -> Iterator[tuple[int, int, bool]]:
        """The places for which perhaps no new value is left: their index, how many values, is that surely so?"""
        if array.low < 2:
            # An item that is alone has no rivals, and counting values takes long where they are many.
            return
        places = [array.item(index) for index in range(min(array.low, len(array.prefix)))]
        # Of the places behind the prefix the last one that must be filled has the most rivals.
        behind = array.low - len(array.prefix)
        asked = [(need, places[:index], 0, places.count(need)) for index, need in enumerate(places)]
        if behind > 0:
            asked.append((array.rest, places, behind - 1, behind + places.count(array.rest)))
        shapes = self._graph.shapes
        for index, (need, before, same, wanted) in enumerate(asked):
            least, most = self._cardinality.of(need)
            # Whatever stands at the places before, and at `same` further ones of the same need.
            rivals = same
            if least <= same + len(before):
                rivals += sum(overlap(shapes[need], shapes[other]) for other in before)
            if least <= rivals:
                yield (array.low - 1 if index == len(places) else index), least, most < wanted

    def check_object(self, thing: ObjectShape, pointer: str) -> None:
        """`UnsupportedError` where the names that an object must have beyond the declared ones may run out."""
        missing = thing.low - len(thing.required)
        extras = self._graph.living_extras(thing)
        if missing > 0 and extras and sum(count_words(extra.names)[0] for extra in extras) < thing.low:
            raise refusals.DISTINCT_NAMES.at(pointer, low=thing.low)

    def _counted(self, array: ArrayShape, pointer: str) -> None:
        counter = ItemCounter(array)
        for state, steps in self._graph.item_states(array).items():
            for step in steps:
                counted = [
                    count.low
                    for count, before, after in zip(array.counts, state[1:], step.state[1:], strict=True)
                    if after > before
                ]
                wanted = max(counted, default=array.low)
                least, _ = self._cardinality.of(step.need)
                if least < wanted and not counter.accepts(state):
                    raise refusals.DISTINCT_ITEMS.at(pointer, index=state[0], count=least)


def drop_unfillable(graph: Graph) -> None:
    """Take out of a graph the arrays of distinct items for which there are too few values, and what needs them."""
    while True:
        distinct = Distinct(graph)
        found = [
            array
            for need, shape in graph.shapes.items()
            if need in graph.alive
            for array in shape.arrays
            if array.unique and graph.array_alive(array) and distinct.is_unfillable(array)
        ]
        if not found:
            return
        graph.drop(found)


def overlap(a: Shape, b: Shape) -> bool:
    """May the shapes share a value?  Decided for literals, single numbers and finite sets of words; else by type."""
    if (a.null and b.null) or (a.true and b.true) or (a.false and b.false):
        return True
    if (a.arrays and b.arrays) or (a.objects and b.objects):
        return True
    for one in a.numbers:
        for other in b.numbers:
            single = one.low is not None and one.low == one.high and other.low is not None and other.low == other.high
            if not single or one.low == other.low:
                return True
    return any(
        one.words is None or other.words is None or not one.words.isdisjoint(other.words)
        for one in a.strings
        for other in b.strings
    )
