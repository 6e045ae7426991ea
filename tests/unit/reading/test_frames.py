"""Frames of each library: columns read, columns of Arrow added, nothing else changed."""

from __future__ import annotations

import pytest

from guided.errors import GuidedError, UnsupportedError
from guided.reading.frames import Frame, is_frame

pyarrow = pytest.importorskip("pyarrow")

LIBRARIES = ["pandas", "polars", "pyarrow"]
CELLS = {"text": ["a", None], "n": [1, 2]}


def made_by(library, cells):
    module = pytest.importorskip(library)
    return module.table(cells) if library == "pyarrow" else module.DataFrame(cells)


def rows_of(frame):
    return frame.to_arrow().to_pylist() if hasattr(frame, "to_arrow") else frame.to_pylist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns(library):
    data = made_by(library, CELLS)
    assert is_frame(data)
    frame = Frame(data)
    assert frame.names == ["text", "n"] and frame.column("n") == [1, 2] and frame.column("text")[0] == "a"
    assert not isinstance(frame.column("text")[1], str)
    big = pyarrow.array([2**63 - 1, None])
    found = frame.with_columns({"big": big, "tags": pyarrow.array([["x"], None])})
    assert type(found) is type(data) and Frame(found).names == ["text", "n", "big", "tags"]
    assert Frame(data).names == ["text", "n"], "the frame that was given is as it was"
    table = pyarrow.Table.from_pandas(found) if library == "pandas" else pyarrow.table(found)
    assert table["big"].to_pylist() == [2**63 - 1, None] and table["tags"].to_pylist() == [["x"], None]
    with pytest.raises(GuidedError, match="no column 'letter', but 'text', 'n'"):
        frame.column("letter")


def test_an_index_of_pandas_stays():
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame(CELLS, index=["x", "x"])
    found = Frame(data).with_columns({"new": pyarrow.array([1, 2])})
    assert list(found.index) == ["x", "x"] and list(found["new"]) == [1, 2]
    assert is_frame(type("Mine", (pandas.DataFrame,), {})(CELLS))
    with pytest.raises(GuidedError, match="several columns 'a'"):
        Frame(pandas.DataFrame([[1, 2]], columns=["a", "a"])).column("a")


def test_what_is_no_frame():
    polars = pytest.importorskip("polars")
    with pytest.raises(UnsupportedError, match="no rows yet"):
        Frame(polars.DataFrame(CELLS).lazy())
    assert not any(map(is_frame, ([], "a", {}, polars.Series([1]), pyarrow.array([1]), object())))
