"""``--sampler``, ``--steer`` and ``--replay`` of `guided extract` and `guided sql`, on a model with random weights."""

from __future__ import annotations

import json
import math

import pytest

from tests.amounts import each
from tests.unit.cli.conftest import one_line

WEATHER = {
    "type": "object",
    "properties": {"sky": {"enum": ["rain", "sun", "snow"]}},
    "required": ["sky"],
    "additionalProperties": False,
}
VALUES = [{"sky": sky} for sky in ("rain", "sun", "snow")]


@pytest.fixture
def weather(tmp_path):
    path = tmp_path / "weather.json"
    path.write_text(json.dumps(WEATHER))
    return path


@pytest.fixture
def extracted(guided_cli, weather, letter, model_folder):
    def run(*options):
        return guided_cli(
            "extract",
            "-s",
            weather,
            letter,
            "-m",
            model_folder,
            "--whitespace",
            "compact",
            "--max-new-tokens",
            16,
            *options,
        )

    return run


@pytest.mark.parametrize(
    "sampler", each(["local", "importance", "smc", "smc-steer", "asap", "mcmc", "best-of-n", "exact"], 3)
)
def test_each_sampler_writes_valid_json_and_its_weights(extracted, sampler):
    result = extracted("--sampler", sampler, "--particles", 4, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["value"] in VALUES
    assert found["value"] == json.loads(found["texts"][0]["text"]) or sampler == "best-of-n"
    assert all(json.loads(each["text"]) in VALUES for each in found["texts"])
    assert math.fsum(each["weight"] for each in found["texts"]) == pytest.approx(1)
    if sampler in ("importance", "smc", "smc-steer", "asap", "exact"):
        assert found["log_ml"] < 0
    assert (found["ess"] is not None) == (sampler in ("importance", "smc", "smc-steer"))


def test_rejection_that_finds_nothing_says_so_and_cars_finds_it(extracted):
    # Random weights do not write this by themselves; what fails is not tried again by cars.
    result = extracted("--sampler", "rejection", "--particles", 1)
    assert result.exit_code == 4
    assert "attempts" in one_line(result.stderr)
    assert json.loads(extracted("--sampler", "cars", "--particles", 1).stdout) in VALUES


def test_people_get_the_likeliest_text_only(extracted):
    result = extracted("--sampler", "smc", "--particles", 4, "--seed", 3)
    assert json.loads(result.stdout) in VALUES
    assert result.stdout.count("\n") == 1
    assert result.stdout == extracted("--sampler", "smc", "--particles", 4, "--seed", 3).stdout


def test_a_batch_has_weights_in_each_line(guided_cli, weather, model_folder, tmp_path):
    letters = tmp_path / "letters.jsonl"
    letters.write_text('"one"\n"two"\n')
    options = ("-m", model_folder, "--sampler", "smc", "--particles", 8, "--max-new-tokens", 32)
    result = guided_cli("extract", "-s", weather, "--batch", letters, *options)
    assert result.exit_code == 0, result.stderr + result.stdout
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["value"] in VALUES and "log_ml" in line for line in lines] == [True, True]


def test_statements_are_sampled_too(guided_cli, database, tmp_path):
    replay = tmp_path / "run.html"
    # Random weights rarely end a query, so this is the packaged model.
    result = guided_cli(
        *("sql", "--db", database, "How many people are there?", "--no-run", "--json", "--max-new-tokens", 60),
        *("--sampler", "smc", "--particles", 4, "--replay", replay),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["sql"] == found["texts"][0]["text"]
    page = replay.read_text()
    assert page.startswith("<!DOCTYPE html>") or page.lstrip().lower().startswith("<!doctype html>")
    assert "smc, 4 particles" in page


@pytest.mark.parametrize("sampler", each(["local", "exact", "best-of-n", "mcmc"], 2))
def test_every_kind_of_run_can_be_replayed(extracted, tmp_path, sampler):
    replay = tmp_path / "run.html"
    assert extracted("--sampler", sampler, "--particles", 2, "--replay", replay).exit_code == 0
    assert "</html>" in replay.read_text()


@pytest.mark.parametrize("sampler", [(), ("--sampler", "smc", "--particles", 2)])
def test_steering_with_and_without_a_sampler(extracted, model_folder, sampler):
    steer = ("--steer", f"contrastive:model={model_folder},alpha=0.05", "--steer", "cfg")
    result = extracted(*steer, *sampler)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) in VALUES


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sampler", "smcc"), ["smcc", "local", "importance", "smc-steer", "best-of-n", "exact"]),
        (("--steer", "contrastiv:model=x"), ["contrastiv", "Did you mean 'contrastive'?", "Known:"]),
        (("--replay", "x.html"), ["--sampler"]),
        (("--sampler", "smc", "--replay", "no/such/folder/x.html"), ["no folder"]),
        (("--sampler", "smc", "--temperature", 0), ["temperature 0"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(extracted, options, words):
    result = extracted(*options)
    assert result.exit_code == 2
    line = one_line(result.stderr)
    assert all(word in line for word in words), line


def test_colours_are_for_one_text(guided_cli, database, model_folder):
    result = guided_cli("sql", "--db", database, "x", "-m", model_folder, "--explain", "--sampler", "smc")
    assert result.exit_code == 2
    assert "--replay" in one_line(result.stderr)
