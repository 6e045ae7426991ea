"""Posteriors of JSON fields over weighted texts."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.errors import GuidedError, LimitError, TextError
from guided.infer.analysis.enumeration import exact
from guided.infer.analysis.fields import field_posteriors, posteriors
from guided.infer.result import Particle, Population, Samples
from guided.lm import TableModel
from tests.tolerances import DOUBLE

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "x", "/~", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/", "~"]), inner, max_size=3),
    max_leaves=6,
)


def flattened(value, pointer=""):
    yield pointer, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from flattened(inner, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")


def same(a, b):
    """Equal as JSON: true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return (type(a) in (int, float) and type(b) in (int, float) and a == b) or (type(a) is type(b) and a == b)


@given(st.lists(st.tuples(VALUES, st.floats(-5, 0)), min_size=1, max_size=6))
def test_probabilities_are_sums_of_weights(weighted):
    texts = [json.dumps(value) for value, _ in weighted]
    found = field_posteriors(texts, [logw for _, logw in weighted])
    weights = np.exp([logw for _, logw in weighted])
    weights /= weights.sum()
    all_fields = [dict(flattened(value)) for value, _ in weighted]
    assert set(found) == set().union(*all_fields)
    for pointer, field in found.items():
        for each in field.alternatives:
            having = [pointer in fields and same(fields[pointer], each.value) for fields in all_fields]
            assert each.probability == pytest.approx(weights[having].sum()) and each.count == sum(having)
            error = math.sqrt(sum(w**2 * (h - each.probability) ** 2 for w, h in zip(weights, having, strict=True)))
            assert each.standard_error == pytest.approx(error, abs=DOUBLE)
        there = [pointer in fields for fields in all_fields]
        assert field.absent == pytest.approx(1 - weights[there].sum(), abs=DOUBLE)
        assert sum(each.probability for each in field.alternatives) + field.absent == pytest.approx(1)
        assert all(a.probability >= b.probability for a, b in pairwise(field.alternatives))
        assert same(field.best, field.alternatives[0].value) and -1e-12 <= field.entropy < 10


def test_the_posterior_of_an_enumeration_is_exact():
    vocabulary = guided.Vocabulary.from_tokens(
        [b'{"size":"', b'"}', b"S", b"M", b'","wet":', b"true}", b"false}", b'{"', b'size":"', None], eos_ids=[9]
    )
    schema = {
        "type": "object",
        "properties": {"size": {"enum": ["S", "M"]}, "wet": {"type": "boolean"}},
        "required": ["size"],
        "additionalProperties": False,
    }
    model = TableModel.random(8, width=10, eos_ids=[9])
    found = exact(model, (0,), guided.compile(guided.json_schema(schema), vocabulary), max_tokens=12)
    fields = posteriors(found)
    sums = {}
    for particle in found.particles:
        value = json.loads(particle.data)
        key = value["size"], value.get("wet")
        sums[key] = sums.get(key, 0) + math.exp(particle.logw - found.log_ml)
    assert len(sums) == 6
    assert {each.value: each.probability for each in fields["/size"].alternatives} == pytest.approx(
        {size: sum(share for key, share in sums.items() if key[0] == size) for size in "SM"}
    )
    assert fields["/wet"].absent == pytest.approx(sum(sums[size, None] for size in "SM"))


def test_particles_without_weight_say_nothing():
    good = Particle((1,), b'{"a":1}', -1.0)
    other = Particle((1,), b'{"a":2}', -1.0)
    dead, cut = Particle((1,), b'{"a":3', -math.inf, finished=False), Particle((1,), b'{"a', -0.1, finished=False)
    found = posteriors(Population((good, dead, cut, other), -1.0))
    assert [(each.value, each.probability) for each in found["/a"].alternatives] == [(1, 0.5), (2, 0.5)]
    assert posteriors(Samples((good, cut)))["/a"].best == 1
    with pytest.raises(GuidedError, match="no text has a weight"):
        posteriors(Population((dead,), -math.inf))


def test_bad_texts_are_named():
    with pytest.raises(TextError, match="offset 4"):
        field_posteriors(['{"a"'])
    with pytest.raises(GuidedError, match="2 weights for 1 texts"):
        field_posteriors(["1"], [0.0, 0.0])
    with pytest.raises(LimitError, match="nested"):
        field_posteriors(["[" * 100_000 + "]" * 100_000])


def test_the_last_of_equal_names_counts():
    found = field_posteriors(['{"a": {"x": 1}, "a": 2}'])
    assert list(found) == ["", "/a"] and found["/a"].best == 2
