"""Tables read and written as batches: no cell is lost, and what is wrong with a row is that row's error."""

from __future__ import annotations

import csv
import datetime
import io
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.cli.batches.lines import BatchItem, read_batch
from guided.cli.batches.table_output import TableOutput, TablePlan
from guided.cli.batches.tables import ROWS, TableFormat, TableReader
from guided.errors import GrammarError, GuidedError, UnsupportedError

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"]}, "tags": {"type": "array"}},
    "additionalProperties": False,
}
VALUES = ['{"name": "Ada, the \\"first\\"", "age": 36, "tags": [1.50, "x"]}', '{ "age": null , "name": "" }']
FAULT = GrammarError("the text is empty", where="line 3", remedy="Give some.")
IN_WORDS = "the text is empty (at line 3). Give some."

Cell = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


def read(path):
    table = TableReader(str(path), TableFormat(path.suffix))
    return table, [row for piece in table.pieces() for row in zip(*map(piece.texts, range(piece.n_columns)))]


@given(st.lists(st.tuples(Cell, Cell), min_size=1, max_size=5), st.sampled_from([",", "\t"]))
def test_csv_is_read_as_it_was_meant(tmp_path_factory, rows, separator):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator)
    writer.writerows([("text", "other"), *rows])
    path = tmp_path_factory.mktemp("t") / ("t.csv" if separator == "," else "t.tsv")
    path.write_text(out.getvalue(), "utf-8", newline="")
    _, found = read(path)
    assert found == [tuple(cell or None for cell in row) for row in rows]
    items = list(read_batch(str(path)))
    assert [item.text for item in items] == [text if text.strip() else "" for text, _ in rows]
    assert all((item.fault is None) == bool(item.text) and item.id == n for n, item in enumerate(items))


def test_what_is_wrong_with_a_row_is_that_rows_error(tmp_path):
    path = tmp_path / "t.csv"
    rows = [
        b"a,fine", b"b,", b"c", b'd,"x"y', b"e,\xff", b"", b",no name", b'f,"two\nlines"', b"g,x,y", b'h,"never ends',
    ]  # fmt: skip
    path.write_bytes(b"\xef\xbb\xbfid,text\r\n" + b"\r\n".join(rows))
    items = list(read_batch(str(path)))
    assert [item.id for item in items] == ["a", "b", 2, 3, 4, 5, "f", 7, 8]
    assert [item.text for item in items if item.fault is None] == ["fine", "no name", "two\nlines"]
    faults = [item.fault for item in items if item.fault]
    says = ["empty", "1 cells, and there are 2", "not CSV", "not UTF-8", "3 cells", "not CSV: unexpected end of data"]
    assert all(each in fault.what and fault.remedy for each, fault in zip(says, faults, strict=True))
    assert [fault.where for fault in faults] == [f"{path}, line {n}" for n in (3, 4, 5, 6, 11, 12)]


def test_a_cell_may_be_a_book(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text\n" + "word " * 100_000)
    assert len(next(read_batch(str(path))).text) == 500_000


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("t.csv", b"", "names no columns"),
        ("t.csv", b"a,,b\n1,2,3", "names no columns"),
        ("t.csv", b"text,x,text\n", "two columns are named 'text'"),
        ("t.csv", b"letter;text\nx;y\n", "no column 'text', but 'letter;text'"),
        ("t.csv", b"text\n\n", "no rows"),
        ("t.csv", None, "cannot be read: No such file"),
        ("t.parquet", None, "cannot be read: No such file"),
        ("t.parquet", b"PAR1 no", "is not Parquet"),
        ("t.arrow", b"no", "is not an Arrow file"),
    ],
)
def test_a_table_that_is_none(tmp_path, name, data, says):
    if not name.endswith("csv"):
        pytest.importorskip("pyarrow")
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(GuidedError, match=says):
        list(read_batch(str(tmp_path / name)))


def arrow_table(tmp_path, suffix):
    """Rows whose cells have types of all sorts, and one row whose text is none."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table(
        {
            "id": pyarrow.array([7, None, 9]),
            "text": pyarrow.array(["one", "two", None]).dictionary_encode(),
            "at": pyarrow.array([1_700_000_000_123_456_789, None, 0], pyarrow.timestamp("ns")),
            "cost": pyarrow.array([Decimal("1.10"), None, Decimal("0")], pyarrow.decimal128(9, 2)),
            "day": pyarrow.array([datetime.date(2026, 1, 2), None, None]),
            "list": pyarrow.array([["x"], [], None]),
            "raw": pyarrow.array([b"\xff", None, b""]),
            "big": pyarrow.array([2**63 - 1, 0, None]),
        }
    )
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as sink:
            sink.write_table(table)
    return path, table


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_cells_of_arrow(tmp_path, suffix):
    path, _ = arrow_table(tmp_path, suffix)
    _, rows = read(path)
    assert rows[0] == (
        "7", "one", "2023-11-14 22:13:20.123456789", "1.10", "2026-01-02", '["x"]', "ff", "9223372036854775807",
    )  # fmt: skip
    assert rows[1] == (None, "two", None, None, None, "[]", None, "0")
    items = list(read_batch(str(path)))
    assert [(item.id, item.text) for item in items] == [(7, "one"), (1, "two"), (9, "")]
    assert items[2].fault.where == f"{path}, row 3"
    (number, *_) = read_batch(str(path), name="big")
    assert "a int, not a text" in number.fault.what


def answered(tmp_path, out, batch, **options):
    """A batch's first two rows answered, the third failed."""
    plan = TablePlan.of(str(tmp_path / out), str(batch), SCHEMA, has_facts=False, **options)
    with TableOutput(plan, False) as output:
        items = list(read_batch(str(batch)))
        for item, value in zip(items, [*VALUES, None], strict=True):
            if value is None:
                output.write(
                    {"id": item.id, "error": {"message": FAULT.what, "where": FAULT.where, "remedy": FAULT.remedy}}
                )
            else:
                output.write({"id": item.id}, value=value)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([out, batch.name])
    return tmp_path / out


def test_a_csv_table_of_answers(tmp_path):
    batch = tmp_path / "t.csv"
    batch.write_text('text,"no,te"\none,\ntwo,"a ""b"""\n,x\n')
    path = answered(tmp_path, "out.csv", batch)
    assert path.read_text() == (
        'text,"no,te",name,age,tags,error\n'
        'one,,"Ada, the ""first""",36,"[1.50, ""x""]",\n'
        'two,"a ""b""","",,,\n'
        f",x,,,,{IN_WORDS}\n"
    )
    into = answered(tmp_path.joinpath("below"), "out.tsv", _moved(batch, tmp_path / "below"), into="p")
    assert into.read_text().splitlines()[1] == 'one\t\t"' + VALUES[0].replace('"', '""') + '"\t'
    assert list(csv.reader(into.open(), delimiter="\t"))[2][2] == VALUES[1]


def _moved(path, folder):
    folder.mkdir()
    return path.rename(folder / path.name)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_table_of_arrow_keeps_its_types(tmp_path, suffix):
    batch, table = arrow_table(tmp_path, suffix)
    import pyarrow
    from pyarrow import parquet

    path = answered(tmp_path, f"out{suffix}", batch)
    found = parquet.read_table(path) if suffix == ".parquet" else pyarrow.ipc.open_file(path).read_all()
    assert found.select(table.column_names).equals(table)
    new = found.drop_columns(table.column_names)
    assert new.schema == pyarrow.schema({"name": "string", "age": "int64", "tags": "string", "error": "string"})
    assert new.to_pylist() == [
        {"name": 'Ada, the "first"', "age": 36, "tags": '[1.50, "x"]', "error": None},
        {"name": "", "age": None, "tags": None, "error": None},
        {"name": None, "age": None, "tags": None, "error": IN_WORDS},
    ]


def test_lines_become_a_table_with_their_names(tmp_path):
    batch = tmp_path / "t.jsonl"
    batch.write_text('{"id": "a", "text": "x"}\n{"id": [1], "text": "x"}\n"x"\n')
    path = answered(tmp_path, "out.csv", batch)
    assert [line.split(",")[0] for line in path.read_text().splitlines()] == ["id", "a", "[1]", "2"]


def test_more_rows_than_are_read_at_a_time(tmp_path):
    batch, n = tmp_path / "t.csv", ROWS + 3
    batch.write_text("text\n" + "".join(f"t{i}\n" for i in range(n)))
    for name in ("out.csv", "out.parquet"):
        if name == "out.parquet":
            pytest.importorskip("pyarrow")
        with TableOutput(TablePlan.of(str(tmp_path / name), str(batch), SCHEMA, has_facts=False), False) as output:
            for item in read_batch(str(batch)):
                output.write({"id": item.id}, value=f'{{"name": "n{item.id}"}}')
        _, rows = read(tmp_path / name)
        assert [row[:2] for row in rows] == [(f"t{i}", f"n{i}") for i in range(n)]


def test_a_run_that_was_stopped_goes_on(tmp_path):
    batch, out = tmp_path / "t.csv", tmp_path / "out.csv"
    batch.write_text("text\na\nb\nc\n")
    plan = TablePlan.of(str(out), str(batch), SCHEMA, has_facts=False)
    items = list(read_batch(str(batch)))

    def answer(resume, stop_at=None):
        with TableOutput(plan, resume) as output:
            todo = [item for n, item in enumerate(items) if not output.has(n, item)]
            for item in todo:
                if item.id == stop_at:
                    raise KeyboardInterrupt
                output.write({"id": item.id}, value=json.dumps({"name": item.text}))
        return len(todo), output.n_failed

    with pytest.raises(KeyboardInterrupt):
        answer(False, stop_at=2)
    assert not out.exists() and (tmp_path / "out.csv.lines").read_text().count("\n") == 2
    with pytest.raises(GuidedError, match=r"out\.csv\.lines' is there already"):
        answer(False)
    assert answer(True) == (1, 0)
    whole = out.read_text()
    assert whole == "text,name,age,tags,error\na,a,,,\nb,b,,,\nc,c,,,\n"
    with pytest.raises(GuidedError, match=r"out\.csv' is there already"):
        answer(False)
    assert answer(True) == (0, 0) and out.read_text() == whole
    out.write_text(whole.replace("c,c,,,", f"c,,,,{IN_WORDS}"))
    assert answer(True) == (0, 1)
    items.append(BatchItem(3, "d"))
    with pytest.raises(GuidedError, match="whole with 3 rows, and the batch has more"):
        answer(True)


@pytest.mark.parametrize("rows", ["a\nb\n", "a\nb\nc\nd\n"])
def test_a_batch_that_changed_meanwhile_is_said(tmp_path, rows):
    batch = tmp_path / "t.csv"
    batch.write_text("text\na\nb\nc\n")
    output = TableOutput(TablePlan.of(str(tmp_path / "out.csv"), str(batch), SCHEMA, has_facts=False), False)
    for item in read_batch(str(batch)):
        output.write({"id": item.id}, value="{}")
    batch.write_text("text\n" + rows)
    with pytest.raises(GuidedError, match="the batch changed"), output:
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv.lines", "t.csv"]


def test_what_csv_cannot_hold_keeps_the_answers(tmp_path):
    batch = tmp_path / "t.jsonl"
    batch.write_text('"a"\n')
    output = TableOutput(TablePlan.of(str(tmp_path / "out.csv"), str(batch), SCHEMA, has_facts=False), False)
    output.write({"id": 0}, value='{"name": "\\ud83d"}')
    with pytest.raises(UnsupportedError, match="half a surrogate pair"), output:
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv.lines", "t.jsonl"]
    plan = TablePlan.of(str(tmp_path / "out.csv"), str(batch), SCHEMA, into="all", has_facts=False)
    with TableOutput(plan, True):
        pass
    assert (tmp_path / "out.csv").read_text() == 'id,all,all_error\n0,"{""name"": ""\\ud83d""}",\n'


@pytest.mark.parametrize(("header", "into"), [("text,age", None), ("text,error", None), ("text,p", "p")])
def test_two_columns_of_one_name_are_refused(tmp_path, header, into):
    batch = tmp_path / "t.csv"
    batch.write_text(f"{header}\na,b\n")
    with pytest.raises(UnsupportedError, match="two columns would be named"):
        TablePlan.of(str(tmp_path / "out.csv"), str(batch), SCHEMA, into=into, has_facts=False)
    TablePlan.of(str(tmp_path / "out.csv"), str(batch), SCHEMA, into="q", has_facts=False)


def test_what_samplers_say_is_a_column(tmp_path):
    batch = tmp_path / "t.jsonl"
    batch.write_text('"a"\n')
    with TableOutput(TablePlan.of(str(tmp_path / "o.csv"), str(batch), SCHEMA, has_facts=True), False) as output:
        output.write({"id": 0, "log_ml": -1.5, "ess": 2.0}, value="{}")
    (row,) = csv.DictReader((tmp_path / "o.csv").open())
    assert json.loads(row["facts"]) == {"log_ml": -1.5, "ess": 2.0}
