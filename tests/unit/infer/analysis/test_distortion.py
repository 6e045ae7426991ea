"""Masked mass along sequences against sums written out, and its shares by byte and JSON field."""

from __future__ import annotations

import math

import pytest

import guided
from guided.errors import GuidedError, TextError
from guided.infer.analysis.distortion import distortion, distortions
from guided.infer.analysis.enumeration import exact
from guided.lm import TableModel
from tests.amounts import each
from tests.tolerances import DOUBLE, SUMS
from tests.twin.tiny_problems import PATTERNS, problem, soft_problem

JSON = guided.Vocabulary.from_tokens(
    [b'{"a":', b"1", b"2", b',"b":', b"}", b'"x"', b"true", "é".encode(), b'"', None], eos_ids=[9]
)
SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": [1, 12, "é"]}, "b": {"type": "boolean"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("make", each([problem, soft_problem], 2))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_weights_correct_masked_sampling(make, pattern):
    """p(x) = q(x) times the product of kept masses, for every text that masked sampling draws."""
    tiny = make(pattern, seed=1, max_tokens=30)
    for tokens in exact(*make(pattern, seed=1, max_tokens=4).arguments, max_tokens=4).particles:
        found = distortion(*tiny.arguments, tokens.tokens)
        probability = 1.0
        for i, step in enumerate(found.tokens):
            logs = tiny.model.logprobs(tiny.prompt + tokens.tokens[:i])
            steps = tiny.potential.logw_next(tokens.tokens[:i])
            kept = math.fsum(math.exp(log + step) for log, step in zip(logs, steps, strict=True))
            assert math.exp(step.log_kept) == pytest.approx(kept, abs=DOUBLE)
            if make is problem:
                assert step.removed == pytest.approx(1 - kept, abs=DOUBLE) and 0 <= step.removed <= 1
            assert step.log_likeliest == pytest.approx(max(logs), abs=DOUBLE) and logs[step.likeliest] == max(logs)
            probability *= math.exp(logs[tokens.tokens[i]]) / kept
        assert math.exp(found.log_masked) == pytest.approx(probability, rel=SUMS)
        assert found.log_prob == pytest.approx(found.log_masked + found.log_weight, abs=DOUBLE)
        assert found.data == tokens.data


def test_many_sequences_in_one_pass():
    tiny = problem("[ab]*", seed=2)
    sequences = [(0, 1, 3), (), (3,), (2, 2), (0, 1, 3)]
    found = distortions(*tiny.arguments, sequences)
    assert [len(each.tokens) for each in found] == [3, 0, 1, 2, 3]
    assert found == [distortion(*tiny.arguments, tokens) for tokens in sequences]
    assert distortions(*tiny.arguments, []) == []


def test_bytes_and_fields_share_what_their_tokens_lost():
    model = TableModel.random(4, width=10, eos_ids=[9])
    constraint = guided.compile(guided.json_schema(SCHEMA), JSON)
    tokens = [0, 8, 7, 8, 3, 6, 4, 9]
    found = distortion(model, (0,), constraint, tokens)
    assert found.data.decode() == '{"a":"é","b":true}'
    kept = [each.log_kept for each in found.tokens]
    assert len(found.per_byte) == len(found.data)
    assert math.fsum(found.per_byte) == pytest.approx(found.log_weight - kept[-1])
    assert found.per_byte[:5].tolist() == pytest.approx([kept[0] / 5] * 5)
    # The two bytes of the letter have half of its token's each; places are counted in bytes.
    assert found.per_field == pytest.approx(
        {"": math.fsum(kept[:-1]), "/a": math.fsum(kept[1:4]), "/b": kept[5]}, abs=DOUBLE
    )


def test_what_is_no_json_has_no_fields():
    tiny = problem("[ab]*", seed=2)
    with pytest.raises(TextError):
        _ = distortion(*tiny.arguments, (0, 1, 3)).per_field


def test_forbidden_tokens_are_named():
    tiny = problem("a*b", seed=2)
    with pytest.raises(GuidedError, match=r"does not allow this token here \(at token 1 of the sequence, 3\)"):
        distortion(*tiny.arguments, (0, 3))
    with pytest.raises(GuidedError, match="does not allow"):
        distortion(*tiny.arguments, (0, 17))
