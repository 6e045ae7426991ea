"""Every layout in which people have the benchmark gives the same rows, and anything else a clear error."""

from __future__ import annotations

import gzip
import itertools
import json

import pytest

from guided.errors import GuidedError
from guided.eval.corpus import SchemaRow, choose, read_rows

EASY = {"type": "object", "properties": {"a": {"type": "integer"}}}
HARD = {"oneOf": [{"type": "string"}, {"type": "null"}]}


def ids(rows):
    return [(row.split, row.id) for row in rows]


def table_row(name, schema):
    return {"json_schema": json.dumps(schema), "unique_id": name}


def write_lines(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def test_a_folder_of_schemas(benchmark_folder):
    rows = read_rows(benchmark_folder)
    assert ids(rows)[:2] == [("hard", "hard---never"), ("hard", "hard---union")]
    assert len(rows) == 5
    assert rows[1].schema["anyOf"][0] == {"const": "yes"}


def test_one_split_of_a_folder_of_schemas(benchmark_folder):
    assert {row.split for row in read_rows(benchmark_folder / "small")} == {"small"}


def test_a_checkout_of_the_repository_is_read_in_its_data_folder(tmp_path):
    (tmp_path / "data" / "Github_easy").mkdir(parents=True)
    (tmp_path / "data" / "Github_easy" / "o1.json").write_text(json.dumps(EASY))
    (tmp_path / "maskbench" / "reports").mkdir(parents=True)
    (tmp_path / "maskbench" / "reports" / "figures.json").write_text('{"not": "a schema"}')
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "settings.json").write_text("{}")
    assert ids(read_rows(tmp_path)) == [("Github_easy", "Github_easy---o1")]


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "json"])
def test_the_snapshot_of_the_data_set(tmp_path, kind):
    """Folders for the splits, and beside them ``data`` with the same rows and a union of several splits."""
    files = {
        "Github_easy/train-00000-of-00001": [table_row("o1", EASY)],
        "Github_easy/test-00000-of-00001": [table_row("o2", EASY)],
        "Github_hard/test-00000-of-00001": [table_row("o3", HARD)],
    }
    if kind != "json":
        files["data/Github-00000-of-00001"] = [table_row("o1", EASY), table_row("o3", HARD)]
    for name, values in files.items():
        path = tmp_path / f"{name}.{kind}"
        path.parent.mkdir(exist_ok=True)
        if kind == "parquet":
            pyarrow = pytest.importorskip("pyarrow")
            from pyarrow import parquet

            parquet.write_table(pyarrow.Table.from_pylist(values), path)
        elif kind == "jsonl":
            write_lines(path, values)
        else:
            path.write_text(json.dumps(values))
    (tmp_path / "dataset_infos.json").write_text("{}")
    rows = read_rows(tmp_path)
    assert ids(rows) == [("Github_easy", "o1"), ("Github_easy", "o2"), ("Github_hard", "o3")]
    assert rows[2].schema == HARD


def test_only_the_data_folder_of_the_snapshot(tmp_path):
    write_lines(tmp_path / "data" / "Github-00000-of-00001.jsonl", [table_row("o1", EASY), table_row("o3", HARD)])
    write_lines(tmp_path / "data" / "Github_easy-00000-of-00001.jsonl", [table_row("o1", EASY)])
    assert ids(read_rows(tmp_path)) == [("Github", "o3"), ("Github_easy", "o1")]
    assert ids(read_rows(tmp_path / "data")) == [("Github", "o3"), ("Github_easy", "o1")]


def test_maskbench_rows(tmp_path):
    values = [
        {"id": "Github_easy---o1", "schema": EASY, "tests": []},
        {"id": "BFCL_simple_7---0", "schema": EASY, "tests": []},
        {"id": "BFCL_java_0", "schema": HARD, "tests": []},
        {"id": "Glaiveai2K---track\u2028x", "schema": True, "tests": []},
    ]
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, values)).encode()))
    expected = [
        ("BFCL", "BFCL_java_0"),
        ("BFCL", "BFCL_simple_7---0"),
        ("Github_easy", "Github_easy---o1"),
        ("Glaiveai2K", "Glaiveai2K---track\u2028x"),
    ]
    assert ids(read_rows(packed)) == expected
    assert ids(read_rows(tmp_path)) == expected
    single = tmp_path / "single"
    single.mkdir()
    for number, value in enumerate(values):
        (single / f"{number}.json").write_text(json.dumps(value))
    assert ids(read_rows(single)) == expected


def test_the_development_rows(data):
    rows = read_rows(data / "maskbench-dev.jsonl.gz")
    assert len(rows) == 7959
    assert {"Github_easy", "Kubernetes", "Glaiveai2K", "JsonSchemaStore"} <= {row.split for row in rows}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "not JSON"),
        ("a.json", "3", "no JSON Schema: it holds a int"),
        ("a.jsonl", '{"schema": {}}\n', "neither the data set's nor MaskBench's: schema"),
        ("a.jsonl", '{"json_schema": "{", "unique_id": "x"}\n', "not JSON"),
        ("a.jsonl.gz", "no gzip", "cannot be read"),
        ("a.txt", "{}", "holds no schemas"),
        ("a.jsonl", "\n", "holds no schemas"),
        ("a.json", '{"a": "\udcff"}', "cannot be read"),
    ],
)
def test_anything_else_is_a_clear_error(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(GuidedError) as caught:
        read_rows(tmp_path)
    assert message in str(caught.value)


def test_no_such_folder(tmp_path):
    with pytest.raises(GuidedError, match="there is no data"):
        read_rows(tmp_path / "nothing")


def test_parquet_that_is_none(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "test.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(GuidedError, match="is not parquet"):
        read_rows(tmp_path)


def many(sizes):
    return [SchemaRow(f"{split}---{n}", split, True) for split, size in sizes.items() for n in range(size)]


def test_a_limit_takes_splits_in_turn_and_a_greater_one_adds():
    rows = many({"a": 1, "b": 5, "c": 50})
    chosen = [choose(rows, limit) for limit in range(1, 57)]
    assert [row.split for row in chosen[6]] == ["a", "b", "c", "b", "c", "b", "c"]
    for smaller, greater in itertools.pairwise(chosen):
        assert greater[: len(smaller)] == smaller
    assert {row.id for row in chosen[-1]} == {row.id for row in rows}
    assert choose(list(reversed(rows)), 20) == choose(rows, 20)
    assert [row.id for row in choose(rows, None, ["c"])] != [row.id for row in rows if row.split == "c"], "shuffled"


def test_splits_by_name():
    rows = many({"a": 2, "b": 2})
    assert {row.split for row in choose(rows, None, ["b"])} == {"b"}
    with pytest.raises(GuidedError, match=r"no split 'x'.*The splits are: a, b"):
        choose(rows, None, ["a", "x"])


def test_a_changed_schema_is_another_row():
    row = SchemaRow("a---1", "a", {"type": "string"})
    assert row.digest == SchemaRow("a---1", "a", {"type": "string"}).digest
    assert (
        len({row.digest, SchemaRow("a---1", "a", {"type": "null"}).digest, SchemaRow("a---2", "a", row.schema).digest})
        == 3
    )
