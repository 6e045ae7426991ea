"""Selections of overlapping groups against sums over each group by itself."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from guided.diffusion.lattice.selection import Atoms, Selection
from guided.diffusion.lattice.sums import pair_sums
from tests.amounts import some
from tests.tolerances import SUMS

WIDTH = 40


def some_groups(rnd: random.Random) -> list[np.ndarray]:
    """Groups that hold each other, overlap, or are apart; their tokens in any order."""
    groups = [rnd.sample(range(WIDTH), rnd.randint(1, WIDTH)) for _ in range(rnd.randint(1, 6))]
    groups += [group[: rnd.randint(1, len(group))] for group in groups for _ in range(rnd.randint(0, 2))]
    return [np.array(group, np.int64) for group in groups]


def test_atoms_say_what_the_groups_say() -> None:
    rnd, rng = random.Random(26), np.random.default_rng(26)
    for _ in range(some(80, 4)):
        parts = some_groups(rnd)
        row = np.log(rng.dirichlet(np.full(WIDTH, 0.2)) + (rng.random(WIDTH) < 0.8))
        for atoms in (Atoms.of_groups(parts), Atoms.cut(parts)):
            mass, most = atoms.read(row)
            assert most.tolist() == [row[part].max() for part in parts]
            assert np.exp(mass).tolist() == pytest.approx([np.exp(row[part]).sum() for part in parts], rel=SUMS)
            for token in range(WIDTH):
                assert atoms.having(token).tolist() == [at for at, part in enumerate(parts) if token in part]
            weights, found, expected = np.log(rng.random(len(parts))), np.zeros(WIDTH), np.zeros(WIDTH)
            atoms.spread(row, weights, found)
            for weight, part in zip(weights, parts, strict=True):
                expected[part] += np.exp(row[part] + weight)
            assert found.tolist() == pytest.approx(expected.tolist(), rel=SUMS, abs=SUMS)


def test_atoms_are_as_few_as_can_be() -> None:
    rnd = random.Random(1)
    for _ in range(some(40, 4)):
        parts = some_groups(rnd)
        cut = Atoms.cut(parts)
        kinds = {tuple(token in part for part in parts) for token in np.unique(np.concatenate(parts)).tolist()}
        assert cut.starts.size == len(kinds)
        assert sorted(cut.tokens.tolist()) == np.unique(np.concatenate(parts)).tolist()


def test_a_selection_is_cut_when_it_is_read_again_and_its_groups_overlap() -> None:
    row = np.log(np.arange(1, 7) / 21)
    nested = Selection(np.arange(3), [np.arange(2), np.arange(4), np.arange(6)])
    apart = Selection(np.arange(2), [np.arange(3), np.arange(3, 6)])
    sizes = []
    for selection in (nested, apart):
        first = selection.read(row)
        sizes.append(selection.atoms.tokens.size)
        second = selection.read(row)
        sizes.append(selection.atoms.tokens.size)
        assert second[0].tolist() == pytest.approx(first[0].tolist(), rel=SUMS)
        assert second[1].tolist() == first[1].tolist()
    assert sizes == [12, 6, 6, 6]


def test_the_likeliest_token_is_one_of_the_group_though_others_are_as_likely() -> None:
    row = np.array([-1.0, -2.0, -1.0, -1.0], np.float32)
    selection = Selection(np.arange(2), [np.array([3, 1]), np.array([1])])
    assert selection.likeliest(row, 0, -1.0) == 3
    assert selection.likeliest(row, 1, -2.0) == 1
    assert math.isclose(selection.read(row)[0][1], -2.0, rel_tol=SUMS)


def test_sums_of_pairs_are_those_of_their_sums() -> None:
    """However far apart the terms: also where their product is no float."""
    rng = np.random.default_rng(3)
    for spread in (1.0, 50.0, 600.0, 5000.0):
        one, other = spread * rng.normal(size=9), spread * rng.normal(size=7)
        one[2] = other[4] = -np.inf
        at_one, at_other = rng.integers(9, size=40), rng.integers(7, size=40)
        starts = np.array([0, 3, 4, 11, 30])
        found = pair_sums(one, at_one, other, at_other, starts)
        values = one[at_one] + other[at_other]
        expected = [np.logaddexp.reduce(part) for part in np.split(values, starts[1:])]
        assert found.tolist() == pytest.approx(expected, rel=SUMS)
    nothing = np.full(2, -np.inf)
    assert pair_sums(nothing, np.array([0, 1]), nothing, np.array([1, 0]), np.array([0])).tolist() == [-np.inf]
