"""JSON texts as they come: against `json.loads`, prefix by prefix, however they are cut."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided import FieldState, JsonStream, partial_json
from guided.errors import GuidedError, LimitError, TextError
from guided.reading.json_pointer import pointer_of, tokens_of

names = st.text(alphabet='a/~0"\\é\ud83d\ude00', max_size=3).filter(
    lambda s: not any("\ud800" <= c < "\ue000" for c in s)
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=10
)
layouts = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}])


def look_up(value: Any, pointer: str) -> Any:
    for token in tokens_of(pointer):
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value


def pointers(value: Any, at: str = "") -> set[str]:
    found = {at}
    if isinstance(value, dict):
        for name, item in value.items():
            found |= pointers(item, at + pointer_of([name]))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found |= pointers(item, f"{at}/{index}")
    return found


def is_beginning(part: Any, whole: Any) -> bool:
    """Could ``part`` be what an unfinished text of ``whole`` shows?"""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_beginning, part, whole))
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and is_beginning(item, whole[name]) for name, item in part.items())
    if type(part) in (int, float) and type(whole) in (int, float):
        return True
    return part is whole


@given(values, layouts)
def test_every_prefix(value: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout)
    every = pointers(json.loads(text))
    stream = JsonStream()
    before: frozenset[str] = frozenset()
    for end in range(len(text)):
        so_far = partial_json(text[:end])
        assert not so_far.has_value or is_beginning(so_far.value, json.loads(text))
        assert before <= so_far.complete <= every, "a complete value stays complete"
        for pointer in so_far.complete - before:
            assert look_up(so_far.value, pointer) == look_up(json.loads(text), pointer)
        for pointer in every | set(so_far.in_progress):
            state = so_far.state(pointer)
            assert state is stream.state(pointer)
            assert (state is FieldState.COMPLETE) == (pointer in so_far.complete)
            assert (state is FieldState.IN_PROGRESS) == (pointer in so_far.in_progress)
        assert partial_json(stream).value == so_far.value and stream.in_progress == so_far.in_progress
        before = so_far.complete
        stream.append(text[end])
    whole = partial_json(text, final=True)
    assert whole.value == stream.close() == json.loads(text) == partial_json(text).value
    assert whole.is_whole and whole.complete == every and whole.in_progress == ()


@given(values, layouts, st.integers(0, 10**6), st.booleans())
def test_pieces_of_any_size(value: Any, layout: dict[str, Any], seed: int, as_bytes: bool) -> None:
    text = json.dumps(value, **layout)
    rnd = random.Random(seed)
    try:
        data: Any = text.encode() if as_bytes else text
    except UnicodeEncodeError:  # a lone surrogate of the value, written as itself
        data = text
    stream = JsonStream()
    at = 0
    while at < len(data):
        size = rnd.choice((0, 1, 1, 2, 7, 50))
        stream.append(data[at : at + size])
        at += size
        assert rnd.random() < 0.5 or stream.value is stream.value or not isinstance(stream.value, list | dict)
    assert stream.close() == json.loads(text) == stream.value


@given(st.text(alphabet='{}[]",:0123456789.eE+-tfn\\ \nabu', max_size=14))
def test_what_is_no_json_is_refused(text: str) -> None:
    """A text is whole exactly when `json.loads` reads it; what is refused no longer text makes JSON."""

    def loads(candidate: str) -> bool:
        try:
            json.loads(candidate, parse_constant=_refuse)
        except ValueError:
            return False
        return True

    try:
        so_far = partial_json(text)
    except TextError as error:
        assert error.where is not None
        offset = int(error.where.removeprefix("offset "))
        assert 0 <= offset <= len(text)
        partial_json(text[:offset])
        tails = ["", "}", "]", '"', '"}', '"]', ":1}", '":1}', "1", "0}", "0]", "rue", "ull]", "alse}"]
        assert not any(loads(text + tail) for tail in tails)
    else:
        assert so_far.is_whole == loads(text)
        if loads(text):
            assert so_far.value == json.loads(text)


def _refuse(name: str) -> None:
    raise ValueError(name)


@pytest.mark.parametrize(
    ("text", "value", "in_progress"),
    [
        ("", None, ()),
        (" \n", None, ()),
        ("{", {}, ("",)),
        ('{"a', {}, ("",)),
        ('{"a"', {}, ("", "/a")),
        ('{"a":', {}, ("", "/a")),
        ('{"a": "', {"a": ""}, ("", "/a")),
        ('{"a": "x\\', {"a": "x"}, ("", "/a")),
        ('{"a": "x\\u00', {"a": "x"}, ("", "/a")),
        ('{"a": "x\\ud83d', {"a": "x"}, ("", "/a")),
        ('{"a": "x\\ud83d\\ude', {"a": "x"}, ("", "/a")),
        ('{"a": "x\\ud83d\\ude00', {"a": "x\U0001f600"}, ("", "/a")),
        ('{"a": "x\\ud83dy', {"a": "x\ud83dy"}, ("", "/a")),
        ('{"a": -', {}, ("", "/a")),
        ('{"a": -1', {"a": -1}, ("", "/a")),
        ('{"a": 12.', {"a": 12}, ("", "/a")),
        ('{"a": 12.5e', {"a": 12.5}, ("", "/a")),
        ('{"a": 12.5e+', {"a": 12.5}, ("", "/a")),
        ('{"a": 12.5e+1', {"a": 125.0}, ("", "/a")),
        ('{"a": 12 ', {"a": 12}, ("",)),
        ('{"a": tru', {}, ("", "/a")),
        ('{"a": true', {"a": True}, ("",)),
        ('[[1], {"b/~": [', [[1], {"b/~": []}], ("", "/1", "/1/b~1~0")),
        ("[1,", [1], ("",)),
        ("[1, n", [1], ("", "/1")),
        ("nul", None, ("",)),
        ("12", 12, ("",)),
        ('"a', "a", ("",)),
    ],
)
def test_what_is_shown(text: str, value: Any, in_progress: tuple[str, ...]) -> None:
    so_far = partial_json(text)
    assert so_far.value == value and type(so_far.value) is type(value)
    assert so_far.in_progress == in_progress
    assert [so_far.state(pointer) for pointer in in_progress] == [FieldState.IN_PROGRESS] * len(in_progress)
    assert so_far.has_value == (text.strip(" \n") not in ("", "nul"))


def test_states_of_fields() -> None:
    so_far = partial_json('{"a": {"b": [1, 2', final=False)
    complete, progress, missing = FieldState.COMPLETE, FieldState.IN_PROGRESS, FieldState.NOT_STARTED
    states = {"": progress, "/a": progress, "/a/b": progress, "/a/b/0": complete, "/a/b/1": progress, "/a/b/2": missing,
              "/a/b/00": missing, "/a/b/-": missing, "/a/b/0/x": missing, "/c": missing, "/a/c/d": missing}  # fmt: skip
    assert {pointer: so_far.state(pointer) for pointer in states} == states
    with pytest.raises(GuidedError, match="pointer"):
        so_far.state("a")
    assert partial_json("").state("") is missing and partial_json("t").state("") is progress
    assert partial_json("[]").state("") is complete


def test_numbers_at_the_top_may_go_on() -> None:
    stream = JsonStream()
    stream.append("12")
    assert stream.is_whole and stream.state("") is FieldState.IN_PROGRESS
    stream.append("5")
    assert stream.close() == 125 and stream.state("") is FieldState.COMPLETE
    assert partial_json("-", final=False).is_whole is False
    with pytest.raises(TextError, match="rest of a number"):
        partial_json("-", final=True)


def test_the_last_of_equal_names_counts() -> None:
    stream = JsonStream()
    stream.append('{"a": {"b": 1}, "a"')
    assert stream.value == {} and stream.state("/a") is FieldState.IN_PROGRESS
    stream.append(": 2}")
    assert stream.close() == {"a": 2} == json.loads('{"a": {"b": 1}, "a": 2}')


def test_a_copy_stays_as_it_was() -> None:
    stream = JsonStream()
    stream.append('{"a": [{"b": "x')
    first = partial_json(stream)
    stream.append('y"}, 1]')
    assert first.value == {"a": [{"b": "x"}]} and stream.value == {"a": [{"b": "xy"}, 1]}
    assert first.value["a"] is not stream.value["a"]


@pytest.mark.parametrize(
    ("text", "offset", "what"),
    [
        ('{"a" 1}', 5, "':'"),
        ("[1,]", 3, "a value"),
        ('{"a": 1,}', 8, "name"),
        ("01", 1, "end of the text"),
        ("[-a]", 2, "number"),
        ("[1.e]", 3, "number"),
        ('["\n"]', 2, "control character"),
        ('["\\x"]', 3, "escape"),
        ('["\\u12g4"]', 6, "hexadecimal"),
        ("[tru1]", 4, "true, false or null"),
        ("NaN", 0, "a value"),
        ("{1: 2}", 1, "name"),
        ("[1 2]", 3, "','"),
        ("{} {}", 3, "end of the text"),
        ("[}", 1, "a value or ']'"),
    ],
)
def test_errors_say_where(text: str, offset: int, what: str) -> None:
    for size in (1, 2, len(text)):
        stream = JsonStream()
        with pytest.raises(TextError) as caught:
            append_all(stream, text, size)
        assert caught.value.where == f"offset {offset}" and what in caught.value.what
        with pytest.raises(TextError) as again:
            stream.append("x")
        assert again.value is caught.value
        with pytest.raises(TextError):
            stream.close()


def append_all(stream: JsonStream, text: str, size: int) -> None:
    for at in range(0, len(text), size):
        stream.append(text[at : at + size])


def test_the_value_before_an_error_stays() -> None:
    stream = JsonStream()
    with pytest.raises(TextError):
        stream.append('{"a": [1, 2, x')
    assert stream.value == {"a": [1, 2]}


@pytest.mark.parametrize("text", ["", "[", '{"a', '"a', "[1", "tr", '"\\u12'])
def test_ends_before_the_end(text: str) -> None:
    with pytest.raises(TextError, match="must go on"):
        partial_json(text, final=True)


def test_bytes() -> None:
    stream = JsonStream()
    data = '{"é": "日"}'.encode()
    for byte in data:
        stream.append(bytes([byte]))
    assert stream.close() == {"é": "日"}
    with pytest.raises(TextError, match="not UTF-8"):
        partial_json(b'["\xff"]')
    broken = JsonStream()
    broken.append('["日'.encode()[:-1])
    with pytest.raises(TextError, match="within a character"):
        broken.append("a")


def test_deep_nesting() -> None:
    depth = 30_000
    so_far = partial_json('{"a":[' * depth)
    assert so_far.state("/a/0/a") is FieldState.IN_PROGRESS
    assert so_far.path is not None and len(so_far.path) == 2 * depth - 1
    stream = JsonStream()
    stream.append("[" * depth)
    partial_json(stream)
    stream.append("]" * depth)
    assert stream.is_whole


def test_work_is_linear() -> None:
    """Many small appends cost what one large one does: no part of the text is gone over twice."""
    text = json.dumps({"s": "x" * 30_000, "n": 10**900, "e": "\\" * 5000, "l": list(range(2000))})
    stream = JsonStream()
    steps = 0
    for mode, step in list(stream._steps.items()):

        def counted(text: str, at: int, step: Any = step) -> int:
            nonlocal steps
            after: int = step(text, at)
            steps += 1 + after - at
            return after

        stream._steps[mode] = counted  # fmt: skip
    for character in text:
        stream.append(character)
    assert stream.close() == json.loads(text)
    assert steps < 4 * len(text)


def test_integers_that_python_does_not_convert() -> None:
    with pytest.raises(LimitError, match="5000 digits"):
        partial_json("[" + "9" * 5000 + "]")
    assert partial_json("[1e999]").value == [math.inf] == json.loads("[1e999]")
