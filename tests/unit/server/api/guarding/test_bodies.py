"""Bodies are JSON to the letter, and what is none is refused before anybody looks at it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.server.api.guarding.bodies import MOST_LEVELS, read_json
from guided.server.api.guarding.errors import ApiError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(VALUES)
def test_json_is_read_as_it_is(value: object) -> None:
    for ascii_only in (True, False):
        assert read_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b'{"a": NaN}', "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "Infinity"),
        (b"1e999", "larger"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b"\xff", "UTF-8"),
        (b'"\xed\xa0\x80"', "UTF-8"),
        (b"[1,]", "not JSON"),
        (b"", "not JSON"),
        (b"1" * 5000, "not JSON"),
        (b"[" * 100_000, "nested"),
        (b'{"a":' * 100_000, "nested"),
    ],
)
def test_what_is_no_json_is_refused(data: bytes, what: str) -> None:
    with pytest.raises(ApiError, match=what) as caught:
        read_json(data)
    assert caught.value.status_code == 400 and caught.value.body.error.code == "malformed_json"


def test_nesting_is_counted_outside_of_strings() -> None:
    assert read_json(b'"' + b"[" * 1000 + b'"') == "[" * 1000
    assert read_json(b'"\\"' + b"[" * 1000 + b'"') == '"' + "[" * 1000
    assert read_json(b"[" * MOST_LEVELS + b"]" * MOST_LEVELS)
    with pytest.raises(ApiError, match="nested"):
        read_json(b"[" * (MOST_LEVELS + 1) + b"]" * (MOST_LEVELS + 1))
