"""The results file survives being cut off anywhere, and keys tell results apart."""

from __future__ import annotations

import dataclasses
import json

import pytest

from guided.errors import GuidedError
from guided.eval.corpus import SchemaRow
from guided.eval.engines.names import EngineName
from guided.eval.records import Outcome, Record, RecordLog
from guided.eval.settings import Settings, result_key

RECORDS = [
    Record("k1", "a---1", "a", "guided", Outcome.VALID, gct_s=0.25, ttft_s=0.5, tpot_ms=1.5, mask_ms=0.1, n_prompt=3, n_tokens=2, text='{"é": "\u2028"}'),
    Record("k2", "a---2", "a", "guided", Outcome.REFUSED, reason="no: multi\nline"),
    Record("k3", "b---1", "b", "none", Outcome.INVALID, reason="lone \udc80", text="\ud83d"),
]  # fmt: skip


def test_records_come_back_as_they_were(tmp_path):
    path = tmp_path / "deep" / "results.jsonl"
    with RecordLog(path) as log:
        for record in RECORDS:
            log.append(record)
    with RecordLog(path) as log:
        assert list(log.records.values()) == RECORDS
    assert path.read_text().count("\n") == 3


def test_cut_off_at_every_byte(tmp_path):
    """Whatever was written whole is kept, the rest is as if it had never been, and the next line starts anew."""
    path = tmp_path / "results.jsonl"
    with RecordLog(path) as log:
        for record in RECORDS[:2]:
            log.append(record)
    data = path.read_bytes()
    whole = [0, data.index(b"\n") + 1, len(data)]
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        n_kept = sum(1 for end in whole[1:] if end <= cut)
        with RecordLog(path) as log:
            # A line that lacks nothing but its end counts as cut off too: it is done again.
            assert list(log.records.values()) == RECORDS[:n_kept]
            log.append(RECORDS[2])
        with RecordLog(path) as log:
            assert list(log.records.values()) == [*RECORDS[:n_kept], RECORDS[2]]


def test_the_first_of_equal_keys_counts(tmp_path):
    path = tmp_path / "results.jsonl"
    again = dataclasses.replace(RECORDS[0], outcome=Outcome.CRASHED)
    path.write_text(RECORDS[0].line() + again.line())
    with RecordLog(path) as log:
        assert list(log.records.values()) == RECORDS[:1]
        log.append(again)
        assert log.records["k1"].outcome is Outcome.VALID


@pytest.mark.parametrize("line", ["{}", "[]", "nonsense", '{"key": "a", "outcome": "splendid"}'])
def test_a_file_that_is_not_ours_is_left_alone(tmp_path, line):
    path = tmp_path / "results.jsonl"
    texts = [f"{line}\n{RECORDS[0].line()}"]
    if "key" not in line:  # else it might be a line of ours that was cut off
        texts.append(line)
    for text in texts:
        path.write_text(text)
        with pytest.raises(GuidedError, match=r"none of ours.*line 1"):
            RecordLog(path)
        assert path.read_text() == text


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(GuidedError, match="cannot write results"):
        RecordLog(tmp_path / "file" / "results.jsonl")


def test_keys_differ_whenever_a_result_might():
    row = SchemaRow("a---1", "a", {"type": "string"})
    settings = Settings()
    base = result_key(row, EngineName.GUIDED, settings)
    assert base == result_key(SchemaRow("a---1", "a", json.loads('{"type":"string"}')), EngineName.GUIDED, Settings())
    changes = {
        "model": "x", "device": "cpu", "max_new_tokens": 5, "temperature": 0.5, "seed": 1,
        "compile_seconds": 1.0, "generate_seconds": 1.0,
    }  # fmt: skip
    others = [result_key(row, EngineName.GUIDED, dataclasses.replace(settings, **{k: v})) for k, v in changes.items()]
    others.append(result_key(row, EngineName.NONE, settings))
    others.append(result_key(SchemaRow("a---1", "a", {"type": "null"}), EngineName.GUIDED, settings))
    assert len({base, *others}) == len(others) + 1
    assert {field.name for field in dataclasses.fields(Settings)} == {*changes, "offline"}
    assert base == result_key(row, EngineName.GUIDED, dataclasses.replace(settings, offline=True))
