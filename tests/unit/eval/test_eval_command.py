"""`guided eval jsonschemabench` as people and scripts use it, stopped by a signal among other things."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

COMMON = ("--max-new-tokens", 80, "--device", "cpu", "--offline", "--no-plot")


def command(folder, out, *more):
    return ("eval", "jsonschemabench", "--data", folder, "--out", out, *COMMON, *more)


def lines_of(out):
    path = out / "results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_run_and_the_same_again(guided_cli, benchmark_folder, tmp_path):
    result = guided_cli(*command(benchmark_folder, tmp_path, "--engine", "guided", "--engine", "none"))
    assert result.exit_code == 0
    assert "guided │ all" in " ".join(result.stdout.split())
    assert "80.0%" in result.stdout, "four of five schemas can be satisfied"
    assert "hard---never" in result.stdout, "failures are listed"
    assert "results.jsonl, summary.json" in result.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["done"], summary["of"]) == (10, 10)
    assert summary["settings"]["max_new_tokens"] == 80
    (ours,) = [one for one in summary["measures"] if (one["engine"], one["split"]) == ("guided", "all")]
    assert (ours["declared"], ours["empirical"], ours["compliance"]) == (0.8, 0.8, 1.0)
    assert ours["times"]["tpot_ms"]["p50"] > 0
    assert not (tmp_path / "plot.png").exists()
    written = (tmp_path / "results.jsonl").read_bytes()
    again = guided_cli(*command(benchmark_folder, tmp_path, "--engine", "guided", "--engine", "none", "--json"))
    assert json.loads(again.stdout)["measures"] == summary["measures"]
    assert (tmp_path / "results.jsonl").read_bytes() == written


def test_a_greater_limit_goes_on(guided_cli, benchmark_folder, tmp_path):
    first = json.loads(guided_cli(*command(benchmark_folder, tmp_path, "--limit", 2, "--json")).stdout)
    assert (first["done"], first["of"]) == (2, 2)
    kept = lines_of(tmp_path)
    more = json.loads(guided_cli(*command(benchmark_folder, tmp_path, "--limit", 3, "--json")).stdout)
    assert (more["done"], more["of"]) == (3, 3)
    assert lines_of(tmp_path)[:2] == kept
    one = json.loads(guided_cli(*command(benchmark_folder, tmp_path, "--split", "hard", "--json")).stdout)
    assert {measure["split"] for measure in one["measures"]} == {"hard", "all"}


def test_the_plot(guided_cli, benchmark_folder, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    arguments = [*command(benchmark_folder, tmp_path, "--limit", 1, "--json")]
    arguments.remove("--no-plot")
    assert guided_cli(*arguments).exit_code == 0
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_errors_are_one_line(guided_cli, tmp_path):
    result = guided_cli(*command(tmp_path / "none", tmp_path))
    assert result.exit_code == 2
    assert "there is no data at" in result.stderr
    unknown = guided_cli(*command(tmp_path, tmp_path, "--engine", "lmfe"))
    assert unknown.exit_code == 2
    assert "lmfe" in unknown.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_stopped_by_a_signal_and_resumed(guided_cli, benchmark_folder, tmp_path):
    """Ctrl-C in the middle of a real process: exit code 130, whole lines, and the rest by the same command."""
    arguments = command(benchmark_folder, tmp_path, "--sample")
    code = (
        # A shell starts what runs in the background with SIGINT ignored, and children inherit that.
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from guided.eval import evaluator\n"
        "inner = evaluator.decode\n"
        "calls = []\n"
        "def decode(*args, **kwargs):\n"
        # In the middle of a row, by the process itself: how fast this machine is decides nothing.
        "    calls.append(None)\n"
        "    if len(calls) == 3:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return inner(*args, **kwargs)\n"
        "evaluator.decode = decode\n"
        "from guided.cli import main\n"
        "main()\n"
    )
    process = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True)
    output, errors = process.stdout, process.stderr
    assert process.returncode == 130, errors
    assert b"interrupted with" in errors
    assert b"coverage" in output, "what there is, is shown"
    kept = lines_of(tmp_path)
    assert 1 <= len(kept) < 5
    result = guided_cli(*arguments, "--json")
    assert result.exit_code == 0
    rest = lines_of(tmp_path)
    assert rest[: len(kept)] == kept
    assert len(rest) == len({line["key"] for line in rest}) == 5
    assert json.loads(result.stdout)["done"] == 5


@pytest.mark.slow
def test_on_a_local_ray(guided_cli, benchmark_folder, tmp_path):
    """Two workers, interrupted after two results and resumed: nothing is lost and nothing done twice.

    Slow: Ray takes 10 s to start, twice, and each worker loads torch.
    """
    pytest.importorskip("ray")
    from guided.eval.corpus import read_rows
    from guided.eval.distributed import run_on_ray
    from guided.eval.engines.names import EngineName
    from guided.eval.records import Outcome, RecordLog
    from guided.eval.run import records_of, tasks_for
    from guided.eval.settings import Settings

    settings = Settings(device="cpu", offline=True, max_new_tokens=80)
    tasks = tasks_for(read_rows(benchmark_folder), [EngineName.GUIDED, EngineName.NONE])
    seen = 0

    def interrupt(record):
        nonlocal seen
        seen += 1
        if seen == 2:
            raise KeyboardInterrupt

    with RecordLog(tmp_path / "results.jsonl") as log:
        with pytest.raises(KeyboardInterrupt):
            run_on_ray(tasks, settings, log, workers=2, on_record=interrupt)
        assert len(log.records) == 2
    kept = lines_of(tmp_path)
    result = guided_cli(
        *command(benchmark_folder, tmp_path, "--engine", "guided", "--engine", "none", "--ray", "--json")
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["done"] == 10
    assert lines_of(tmp_path)[:2] == kept
    assert len(lines_of(tmp_path)) == 10
    with RecordLog(tmp_path / "results.jsonl") as log:
        records = records_of(tasks, settings, log)
    assert sum(one.outcome is Outcome.VALID for one in records if one.engine == "guided") == 4


@pytest.mark.slow
def test_a_worker_of_ray_that_cannot_load_the_model(benchmark_folder, tmp_path):
    pytest.importorskip("ray")
    from guided.errors import GuidedError
    from guided.eval.corpus import read_rows
    from guided.eval.distributed import run_on_ray
    from guided.eval.engines.names import EngineName
    from guided.eval.records import RecordLog
    from guided.eval.run import tasks_for
    from guided.eval.settings import Settings

    settings = Settings(model=str(tmp_path / "no model"), device="cpu", offline=True)
    tasks = tasks_for(read_rows(benchmark_folder), [EngineName.GUIDED])
    with RecordLog(tmp_path / "results.jsonl") as log, pytest.raises(GuidedError) as caught:
        run_on_ray(tasks, settings, log, workers=1)
    assert "no such folder" in str(caught.value)


def test_ray_that_is_not_installed(guided_cli, benchmark_folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    result = guided_cli(*command(benchmark_folder, tmp_path, "--ray"))
    assert result.exit_code == 2
    assert "pip install 'guided-decoding[ray]'" in result.stderr


def test_help_teaches_and_loads_nothing_heavy(guided_cli):
    group = guided_cli("eval", "--help")
    assert group.exit_code == 0
    assert "jsonschemabench" in group.stdout and "Exit codes" in group.stdout
    page = guided_cli("eval", "jsonschemabench", "--help")
    assert page.stdout.count("guided eval jsonschemabench") >= 4
    assert all(
        word in page.stdout for word in ("--json", "--ray", "outlines|none", "Declared coverage", "130 interrupted")
    )
    assert "jsonschemabench" in guided_cli("eval").stdout + guided_cli("eval").stderr
    code = (
        "import sys\n"
        "from guided.cli.application import application\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(application, ['eval', 'jsonschemabench', '--help']).exit_code == 0\n"
        "assert CliRunner().invoke(application, ['--help']).exit_code == 0\n"
        "print([m for m in ('torch', 'transformers', 'numba', 'numpy', 'jsonschema', 'ray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
