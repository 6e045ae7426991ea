"""Sets of tokens are those of Python."""

import random

import numpy as np

from guided.constraint.effects.token_sets import difference, union


def test_unions_and_differences_are_those_of_sets():
    rng = random.Random(5)
    for _ in range(300):
        several = [[rng.randrange(40) for _ in range(rng.choice((0, 0, 1, 3, 30)))] for _ in range(rng.randint(1, 3))]
        arrays = [np.asarray(some, np.int64) for some in several]
        kept = [array.copy() for array in arrays]
        all_of = union(*arrays)
        assert all_of.tolist() == sorted({token for some in several for token in some})
        assert difference(all_of, arrays[0]).tolist() == sorted(set(all_of.tolist()) - set(several[0]))
        assert all((array == before).all() for array, before in zip(arrays, kept, strict=True))
