"""The benchmark suite without measuring: its inputs are what they say, its records survive, its report says it all."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import typer
from typer.testing import CliRunner

from tests.conftest import ROOT

FOLDER = ROOT / "benchmarks"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    # Their names are short and nobody else's business.
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


@pytest.mark.parametrize("size", [1, 4, 37])
def test_growing_schemas_have_the_instances_that_are_read(size):
    from maskbench_rows import nested_schema, nested_value, wide_schema, wide_value

    for schema, value in ((wide_schema(size), wide_value(size)), (nested_schema(size), nested_value(size))):
        jsonschema.Draft202012Validator(schema).validate(value)
    assert len(wide_schema(size)["properties"]) == size


def test_fixed_schemas_have_the_instances_that_are_read():
    from generation import SCHEMA, VALUE
    from long_texts import RECORDS
    from vocabularies import VALUE as RECORDS_VALUE

    for schema, value in ((SCHEMA, VALUE), (RECORDS, RECORDS_VALUE)):
        jsonschema.Draft202012Validator(schema).validate(value)


def test_rows_are_drawn_from_every_part_and_by_the_seed():
    from maskbench_rows import choose

    rows = [
        {"id": f"{name}---{i}"} for name in ("Github_easy", "BFCL_simple_7", "BFCL_other", "Snowplow") for i in range(9)
    ]
    drawn = choose(rows, 2, seed=1)
    assert len(drawn) == 6  # BFCL's are one part
    assert drawn == choose(rows, 2, seed=1)
    assert drawn != choose(rows, 2, seed=2)
    assert choose(rows, 0, seed=1) == rows


def test_resized_tokenizers_have_their_size_and_spell_any_text():
    from maskbench_rows import resized_tokenizer
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "a"), ("Ġ", "b"), ("Ġa", "b"), ("Ġb", "a"), ("a", "b")]
    words = [*letters, *("".join(pair) for pair in merges)]
    small = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges))
    small.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    small.decoder = decoders.ByteLevel()
    source = PreTrainedTokenizerFast(tokenizer_object=small, eos_token="<end>")
    for size in (257, 259, 264):
        made = resized_tokenizer(source, size)
        assert len(made) == size
        assert made.eos_token_id == size - 1
        text = 'é "ab ab'
        assert made.decode(made.encode(text, add_special_tokens=False)) == text


def test_engines_take_turns():
    from figures import turns

    orders = [turns("abc", number) for number in range(6)]
    assert [order[0] for order in orders] == list("abcabc")
    assert all(sorted(order) == list("abc") for order in orders)
    assert turns([], 3) == []


def test_a_time_limit_ends_the_block_and_only_that():
    from figures import TooSlow, time_limit

    def forever():
        while True:
            pass

    with time_limit(0.2), pytest.raises(TooSlow):
        forever()
    with time_limit(0.2):
        pass
    with time_limit(0.2, processor=True):
        time.sleep(0.4)  # what others do meanwhile does not count
    with time_limit(0.2, processor=True), pytest.raises(TooSlow):
        forever()


def test_percentiles_of_known_times():
    from figures import percentiles

    found = percentiles([float(i) for i in range(1001)])
    assert (found["n"], found["mean"], found["p50"], found["p90"], found["p99"], found["max"]) == (
        1001, 500, 500, 900, 990, 1000,
    )  # fmt: skip
    assert percentiles([]) == {}


def _setting():
    from results import Setting

    return Setting(tokenizer=Path("tokenizer"), engines=("guided", "llguidance"), quick=True)


def _result():
    from results import Bar, Curves, Result, Table

    table = Table("a | table", ["engine", "us"], [["guided", 1234.5678], ["a|b", None], ["n", 0.00123]], "A note.")
    curves = Curves("curve", "rows", "us", {"guided": [[1, 2.0], [10, 3.0]]})
    bars = [Bar("held", 1.0, 1.0, "x"), Bar("missed", 1.01, 1.0, "x"), Bar("not measured", None, 1.0, "x")]
    return Result([table], [curves], bars, {"more": 1})


def test_settings_and_results_survive_json():
    from results import Result, Setting

    setting, result = _setting(), _result()
    assert Setting.from_json(json.loads(json.dumps(setting.as_json()))) == setting
    record = json.loads(json.dumps(result.as_json()))
    assert [bar["holds"] for bar in record["bars"]] == [True, False, False]
    assert Result.from_json(record) == result


def _record(part: str) -> dict:
    from figures import machine

    return {
        "part": part, "title": f"About {part}", "machine": machine(), "setting": json.loads(json.dumps(_setting().as_json())),
        "seconds": 1.5, "result": json.loads(json.dumps(_result().as_json())),
    }  # fmt: skip


def test_a_part_is_taken_from_its_file_only_for_the_same_commit_and_setting(tmp_path):
    from suite import kept

    record = _record("batch")
    assert kept(tmp_path, "batch", _setting()) is None
    (tmp_path / "batch.json").write_text(json.dumps(record))
    assert kept(tmp_path, "batch", _setting()) == record
    assert kept(tmp_path, "batch", replace(_setting(), seed=1)) is None
    record["machine"]["commit"] = "another"
    (tmp_path / "batch.json").write_text(json.dumps(record))
    assert kept(tmp_path, "batch", _setting()) is None
    assert kept(tmp_path, "batch", _setting(), any_commit=True) == record
    (tmp_path / "batch.json").write_text(json.dumps(record)[:-9])
    assert kept(tmp_path, "batch", _setting(), any_commit=True) is None


def test_the_report_says_everything(tmp_path):
    from report import write_report

    page = write_report(tmp_path, [_record("batch"), _record("masks")]).read_text()
    assert "| batch | missed | 1.01 | 1 | x | NO |" in page
    assert "| batch | held | 1 | 1 | x | yes |" in page
    assert "| guided | 1,235 |" in page
    assert "| a\\|b | - |" in page
    assert "| n | 0.00123 |" in page
    assert "A note." in page and "About masks" in page
    assert len(json.loads((tmp_path / "report.json").read_text())["parts"]) == 2
    for name in ("plots/batch-0.png", "plots/masks-0.png"):
        assert f"({name})" in page
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_shares_are_of_the_schemas_that_both_answer():
    from masks import Score, compared

    ours, theirs = Score(), Score()
    for score, rows in (
        (ours, {"a": 1.0, "b": 2.0, "slow": 900.0}),
        (theirs, {"a": 4.0, "b": 4.0, "ours refuses": 1.0}),
    ):
        for row, taken in rows.items():
            score.first_mask_us[row] = taken
            score.mask_us[row] = [taken, taken]
    theirs.rows["timed out"].append("b")
    bars, counts = compared({"guided": ours, "llguidance": theirs})
    assert counts.rows == [["llguidance", 1, 2, 1]]
    assert {bar.measured for bar in bars} == {0.25}
    assert all(bar.holds == (bar.allowed >= 0.25) for bar in bars)


def test_the_least_of_runs_is_taken_step_by_step():
    from generation import _least

    assert _least([[1.0, 9.0, 3.0], [5.0, 2.0, 3.0]]) == 2.0


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / "run.py"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PATH": "", "GUIDED_DATA": "/nowhere"}
    )


def test_the_command_lists_its_parts_and_says_what_is_wrong(tmp_path):
    from run import main

    application = typer.Typer()
    application.command()(main)
    done = _run("--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "masks", "budget", "grammars", "compile", "batch", "long", "growth", "vocabulary", "memory", "first-use", "generate",
    ]  # fmt: skip
    for arguments, what in (
        (("--only", "speed"), "speed is none of masks"),
        (("--engine", "regexp"), "regexp is none of guided"),
        (("--only", "batch", "--out", str(tmp_path)), "there is no tokenizer"),
    ):
        done = CliRunner().invoke(application, arguments, env={"PATH": "", "GUIDED_DATA": "/nowhere"})
        assert done.exit_code == 2
        assert what in " ".join(done.stderr.replace("│", " ").split())


def test_both_sides_of_the_comparison_with_genlm_control_have_one_thread(monkeypatch):
    import genlm_control

    started = {}

    class Process:
        def __init__(self, command, env=None, **options):
            started.update(env or {})
            self.stdout = iter(['{"ready": true}\n'])

    monkeypatch.setattr(genlm_control.subprocess, "Popen", Process)
    genlm_control.Other("python", Path("model"), 4)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"):
        assert started[name] == "1"
    # Torch has its own say, on both sides.
    for file in ("genlm_side.py", "genlm_control.py"):
        assert "torch.set_num_threads(1)" in (FOLDER / file).read_text("utf-8")

    # This side starts itself anew with the same environment, before anything is loaded.
    def again(program, arguments, env):
        assert env.items() >= genlm_control.ONE_THREAD.items()
        raise SystemExit("started anew")

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(genlm_control.os, "execve", again)
    monkeypatch.setattr(sys, "argv", ["genlm_control.py", "--data", "."])
    with pytest.raises(SystemExit, match="started anew"):
        genlm_control.main()


def test_masks_under_a_budget_are_compared_over_what_both_come_by():
    import budgets
    from engines import GuidedEngine
    from results import Progress
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocab=letters, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>")
    engine = GuidedEngine(tokenizer)
    row = {
        "id": "a",
        "schema": {"type": "array", "items": {"type": "null"}},
        "tests": [{"valid": True, "data": [None] * 4}],
    }
    kinds = [budgets.BudgetEngine(engine, budget) for budget in (None, 9, 512)]
    starts = [kind.start(row["schema"]).constraint for kind in kinds]
    assert len({id(constraint) for constraint in starts}) == 3, "who comes first would make the masks of the others"
    times, first = budgets.compare([row], tokenizer, kinds, 30, Progress("test"), lambda: 0.0)
    # "[null," would leave too few tokens for the end: the mask that forbids the comma is the last.
    assert {name: len(found["a", 0]) for name, found in times.items()} == {"plain": 24, "budget 9": 6, "budget 512": 24}
    assert all(found == {"a": 0.0} for found in first.values())
