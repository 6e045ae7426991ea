"""Batches on Ray: the same lines as here, in order, resumable; and the order of lines without Ray."""

from __future__ import annotations

import json
import random
import sys

import pytest

from guided.cli.batches import on_ray
from guided.cli.batches.answering import Answer
from guided.cli.batches.lines import BatchOutput, read_batch
from guided.cli.methods.options import Decoding, ModelOptions
from guided.errors import GuidedError, LimitError


class Job:
    running = ModelOptions()
    how = Decoding(None, None, 0)

    def begin(self, *, quiet):
        return self

    def answers(self, texts):
        return [
            LimitError("too long", remedy="Cut it.")
            if "x" in text
            else Answer({"n": len(text)}, {"value": f'"{text}"'})
            for text in texts
        ]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("seed", range(5))
def test_lines_are_in_order_whatever_order_workers_finish_in(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    texts = ["a", "", "bb", "xx", "ccc", "", "", "x", "d"] * 3
    batch = tmp_path / "batch.jsonl"
    batch.write_text("".join(json.dumps(text) + "\n" for text in texts))
    stop_after = rng.randrange(6)

    def map_on_ray(worker, job, tasks, *, on_line, **options):
        made = worker(job)
        lines = [made({"task": [json.dumps(task)]})["line"][0] for task in tasks]
        rng.shuffle(lines)
        for number, line in enumerate(lines):
            if number == stop_after and not resumed:
                raise KeyboardInterrupt
            on_line(line)

    monkeypatch.setattr(on_ray, "map_on_ray", map_on_ray)
    out = tmp_path / "out.jsonl"
    for resumed in (False, True):
        with BatchOutput(str(out), resumed) as output:
            arguments = (Job(), read_batch(str(batch)), output)
            options = {"workers": 2, "size": rng.randrange(1, 5), "what": "", "quiet": True}
            if not resumed:
                with pytest.raises(KeyboardInterrupt):
                    on_ray.answer_on_ray(*arguments, **options)
            else:
                assert on_ray.answer_on_ray(*arguments, **options) == len(texts)
                assert output.n_failed == 15
    found = lines_of(out)
    assert [line["id"] for line in found] == list(range(len(texts)))
    for text, line in zip(texts, found, strict=True):
        if not text:
            assert "empty" in line["error"]["message"]
        elif "x" in text:
            assert (line["error"]["kind"], line["error"]["message"]) == ("LimitError", "too long")
        else:
            assert (line["value"], line["n"]) == (text, len(text))


def test_errors_travel_whole():
    error = GuidedError("what", where="where", remedy="Do.")
    told = on_ray._heard(json.loads(json.dumps(on_ray._told(error))))
    assert (type(told), told.what, told.where, told.remedy) == (GuidedError, "what", "where", "Do.")


def test_only_a_batch_runs_on_ray(guided_cli, person, letter, database):
    for command in (("extract", "-s", person, letter), ("sql", "--db", database, "How many?")):
        result = guided_cli(*command, "--ray")
        assert result.exit_code == 2
        assert "Add --batch" in result.stderr


def test_ray_that_is_not_installed(guided_cli, person, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    batch = tmp_path / "batch.jsonl"
    batch.write_text('"Ada"\n')
    result = guided_cli("extract", "-s", person, "--batch", batch, "--ray")
    assert result.exit_code == 2
    assert "pip install 'guided-decoding[ray]'" in result.stderr


@pytest.mark.slow
def test_a_local_ray_answers_as_this_process_does(guided_cli, person, database, model_folder, tmp_path):
    """Slow: Ray takes 10 s to start, twice, and each worker loads torch."""
    pytest.importorskip("ray")
    letters, questions = tmp_path / "letters.jsonl", tmp_path / "questions.jsonl"
    letters.write_text("".join(json.dumps(f"Letter {n} of Ada") + "\n" for n in range(5)))
    questions.write_text("".join(json.dumps(f"How many users {n}?") + "\n" for n in range(4)))
    for command, where in (
        (("extract", "-s", person, "--batch", letters, "--batch-size", 2, "-m", model_folder), "--out"),
        (("sql", "--db", database, "--batch", questions, "-m", model_folder), "--output"),
    ):
        found = []
        for name, place in (("here", ()), ("ray", ("--ray", "--workers", 2))):
            path = tmp_path / f"{command[0]}-{name}.jsonl"
            guided_cli(*command, where, path, *place)
            found.append([{key: value for key, value in line.items() if key != "seconds"} for line in lines_of(path)])
        assert found[0] == found[1] and len(found[0]) >= 4
