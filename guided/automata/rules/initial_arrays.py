"""What a rule graph begins with: its arrays, made at once, and in them the nodes of rules that many grammars have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.grammar.ir import AnyTerminal
from guided.kernels.data.addresses import Block
from guided.kernels.data.layout import OPEN, Rules

ACCEPT = 0
"""The node that stands for the end of the text."""

FEW_RULES = 256
"""Rules up to which graphs begin with arrays of one size, and other nodes with the same number."""


MORE_NODES, FIRST_EDGES = 768, 1024
"""Nodes besides those of rules, and edges, that there is room for at first: one schema in 25 of MaskBench needs more,
and somebody waits 60 to 90 us for it.  More would be memory that all others clear for nothing."""


@dataclass(slots=True, eq=False)
class InitialArrays:
    """Arrays with some nodes and edges in them, and what a graph knows of these."""

    arrays: Rules
    block: Block[Rules] | None
    """Makes copies of the arrays; None where there is no other graph that begins like this one."""
    n_nodes: int
    n_edges: int = 0
    labelled: Iterable[Any] = ()
    reads: dict[AnyTerminal, tuple[int, int, bool]] | None = None
    final: Iterable[int] = ()
    closed: Iterable[int] = (ACCEPT,)


def empty_arrays(n_rules: int, ignored: NDArray[np.int32]) -> InitialArrays:
    """No nodes but for the rules' own, which are not lowered yet."""
    size = n_rules + MORE_NODES
    arrays = Rules(
        node_first=np.full(size, -1, np.int32),
        node_count=np.zeros(size, np.int32),
        flags=np.zeros(size, np.uint8),
        met=np.zeros(size, np.int64),
        kind=np.zeros(FIRST_EDGES, np.uint8),
        argument=np.zeros(FIRST_EDGES, np.int32),
        to=np.zeros(FIRST_EDGES, np.int32),
        label=np.zeros(FIRST_EDGES, np.int32),
        rule_start=np.arange(1, max(n_rules, 1) + 1, dtype=np.int32),
        rank=np.zeros(max(n_rules, 1), np.int32),
        ignored=ignored,
    )
    arrays.node_first[ACCEPT] = 0
    arrays.flags[ACCEPT] = OPEN
    return InitialArrays(arrays, None, n_rules + 1)


@lru_cache(maxsize=1)
def of_few_rules() -> InitialArrays:
    """That of all graphs of few rules and nothing ignored."""
    made = empty_arrays(FEW_RULES, np.zeros(0, np.int32))
    made.block = block_of(made.arrays)
    return made


def block_of(arrays: Rules) -> Block[Rules]:
    """What makes copies of the arrays of graphs of few rules."""
    return Block(arrays, shared=("rule_start", "ignored"))


def views_of(arrays: Rules) -> tuple[memoryview, ...]:
    """The arrays that are written when nodes are added, by node and by edge."""
    per_node = (arrays.node_first, arrays.node_count, arrays.flags)
    columns: tuple[NDArray[Any], ...] = (*per_node, arrays.kind, arrays.argument, arrays.to, arrays.label)
    return tuple([column.data for column in columns])
