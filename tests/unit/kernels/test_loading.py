"""Kernels that lie compiled on the disk are loaded with the first constraint, not in the middle of a text."""

from __future__ import annotations

import subprocess
import sys

from tests.just_in_time import needs_numba

SCRIPT = """
import numpy as np
import guided
from guided.kernels import loading

vocabulary = guided.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
grammar = guided.json_schema({"properties": {"a": {"type": "string", "pattern": "a.*b"}}, "additionalProperties": True})


def loaded():
    return sum(len(kernel.overloads) for kernel in loading._kernels())


constraint = guided.Constraint(grammar, vocabulary)
first, state = loaded(), constraint.start
row = np.zeros(vocabulary.n_words, np.uint32)
for token in b'{"a": "axxb", "b": [1]}':
    constraint.fill_mask(state, row)
    state = constraint.advance(state, token)
print(first, loaded())
"""


def _run() -> list[int]:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


@needs_numba
def test_a_second_process_loads_no_kernel_after_its_first_constraint():
    _run()  # compiles what is not there yet
    first, last = _run()
    assert first == last > 10
