"""Listing what is enough behind tokens leaves the kept parts of masks alone."""

from __future__ import annotations

import numpy as np

import guided
from guided.constraint.engine.machine import ConstraintMachine
from guided.kernels.data.layout import NOTED


def test_nothing_is_written_down_where_a_walk_was_left() -> None:
    tokens: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), b"ab", b"abc", None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])
    constraint = guided.compile(guided.json_schema({"pattern": "^(ab+c[^d]e)+$", "type": "string"}), vocabulary)
    state = constraint.advance_bytes(constraint.start, b'"ab')
    constraint.fill_mask(state, np.zeros(vocabulary.n_words, np.uint32))
    machine = constraint._machine
    assert isinstance(machine, ConstraintMachine)
    kept = machine.segments.tokens.copy()
    # As an earlier walk leaves it that came to ask for something.
    machine.counters[NOTED] = 0
    inside, _, _ = machine.threads(state)[0]
    assert machine.list_inside(1, machine.effects.root, inside).size
    assert (machine.segments.tokens == kept).all()
