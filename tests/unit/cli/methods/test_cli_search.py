"""``--search``, ``--must-include`` and ``--must-exclude`` of `guided extract` and `guided sql`, on random weights."""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
import subprocess
import sys

import pytest

import guided
import guided.search
from guided.cli.methods.search_methods import SEARCHES, SearchKind
from guided.cli.methods.searching import alternatives, parse_search, search_function
from guided.errors import GuidedError
from guided.search import LookAhead, Stopping, block_search, deal_search, mcts_search, neurologic_search
from tests.amounts import each, mostly_slow
from tests.unit.cli.conftest import one_line

WEATHER = {
    "type": "object",
    "properties": {"sky": {"enum": ["rain", "sun", "snow"]}, "wind": {"enum": ["north", "south"]}},
    "required": ["sky", "wind"],
    "additionalProperties": False,
}
VALUES = [{"sky": sky, "wind": wind} for sky in ("rain", "sun", "snow") for wind in ("north", "south")]


@pytest.fixture
def extracted(guided_cli, tmp_path, letter, model_folder):
    path = tmp_path / "weather.json"
    path.write_text(json.dumps(WEATHER))

    def run(*options, file=letter):
        fixed = ("-s", path, "-m", model_folder, "--whitespace", "compact", "--max-new-tokens", 40)
        return guided_cli("extract", *fixed, *options, file)

    return run


SAMPLES = {
    SearchKind.COUNT: "2",
    SearchKind.COUNT_OR_NONE: "none",
    SearchKind.NUMBER: "0.5",
    SearchKind.REWARD: f"{__name__}:shortness",
    SearchKind.STOPPING: "first",
}


def brevity(texts):
    """A reward: less for each letter."""
    return [-float(len(text)) for text in texts]


def shortness(texts):
    """A reward above 0, as tree searches want it."""
    return [1 / (1 + len(text)) for text in texts]


def snow(texts):
    """A reward: for snow."""
    return [float("snow" in text) for text in texts]


def decode(tokens):
    raise AssertionError("no text was to be read")


def least(name):
    """The search with the settings that it must have."""
    required = [
        f"{key}={SAMPLES[setting.kind]}" for key, setting in SEARCHES[name].settings.items() if setting.required
    ]
    return f"{name}:{','.join(required)}" if required else name


@pytest.mark.parametrize("name", SEARCHES)
def test_every_setting_is_an_option_of_its_search(name):
    method = SEARCHES[name]
    settings = [f"{key}={SAMPLES[setting.kind]}" for key, setting in method.settings.items()]
    search = search_function(f"{name}:{','.join(settings)}", decode)
    assert isinstance(search, functools.partial)
    assert search.func.__name__ in guided.search.__all__
    assert set(search.keywords) <= set(inspect.signature(search.func).parameters)
    plural = {"phrases", "clauses"} & set(inspect.signature(search.func).parameters)
    assert bool(plural) == (method.includes or method.excludes)


def test_settings_reach_the_search():
    found = search_function("neurologic:beams=8,ahead=3,ahead-weight=0.5", decode)
    assert found.func is neurologic_search
    assert found.keywords == {"width": 8, "look_ahead": LookAhead(3, 0.5)}
    assert search_function("beam:stopping=current_length", decode).keywords == {"stopping": Stopping.CURRENT_LENGTH}
    assert search_function("lattice:ngram=none", decode).keywords == {"ngram": None}
    found = search_function(f"deal:reward={__name__}:brevity,ahead=3,weight=2,expand=5", decode)
    assert found.func is deal_search
    assert (found.keywords["look_ahead"], found.keywords["weight"], found.keywords["expand"]) == (3, 2.0, 5)
    assert found.keywords["heuristic"].score is brevity and not found.keywords["heuristic"].prompt
    found = search_function(f"blocks:reward={__name__}:brevity,blocks=3,tokens=5", decode)
    assert found.func is block_search
    assert (found.keywords["blocks"], found.keywords["block_tokens"]) == (3, 5)


@pytest.mark.parametrize(
    "search", ["best-first:beams=6,n_best=3", *mostly_slow(map(least, SEARCHES), len(SEARCHES) // 4)]
)
def test_each_search_writes_valid_json_and_its_scores(extracted, search):
    result = extracted("--search", search, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["value"] in VALUES
    assert found["value"] == json.loads(found["texts"][0]["text"])
    assert all(json.loads(each["text"]) in VALUES and each["score"] < 0 for each in found["texts"])
    assert found["cost"]["rows"] > 0


def test_best_first_finds_what_beams_find_from_fewer_rows(extracted):
    plain, best = (
        json.loads(extracted("--search", f"{name}:beams=6,n_best=2", "--json").stdout)
        for name in ("beam", "best-first")
    )
    assert [each["text"] for each in plain["texts"]] == [each["text"] for each in best["texts"]]
    assert best["cost"]["rows"] <= plain["cost"]["rows"]


@pytest.mark.parametrize("value", each(VALUES, 3))
def test_phrases_decide(extracted, value):
    result = extracted("--must-include", value["sky"], "--must-include", value["wind"])
    assert (result.exit_code, json.loads(result.stdout)) == (0, value), result.stderr
    others = [word for word in ("rain", "sun", "snow", "north", "south") if word not in value.values()]
    result = extracted("--must-exclude", "|".join(others))
    assert (result.exit_code, json.loads(result.stdout)) == (0, value), result.stderr


def test_phrases_with_steering_and_batches(extracted, model_folder, tmp_path):
    letters = tmp_path / "letters.jsonl"
    letters.write_text('"one"\n"two"\n')
    steer = ("--steer", f"contrastive:model={model_folder},alpha=0")
    result = extracted("--batch", "--must-include", "snow|sun", *steer, file=letters)
    assert result.exit_code == 0, result.stderr
    for line in map(json.loads, result.stdout.splitlines()):
        assert line["value"]["sky"] in ("snow", "sun") and line["texts"][0]["score"] < 0


def test_rewards_decide(extracted):
    for search in (
        f"deal:reward={__name__}:snow,weight=100,expand=300",
        f"blocks:reward={__name__}:snow,blocks=40",
    ):
        result = extracted("--search", search, "--json")
        assert (result.exit_code, result.stderr) == (0, ""), search
        assert json.loads(result.stdout)["value"]["sky"] == "snow"


def worse(texts):
    return [-1.0 for _ in texts]


def test_tree_searches_read_the_reward_as_weights(extracted):
    found = search_function(f"mcts:reward={__name__}:snow,rollouts=7", decode)
    assert found.func is mcts_search and found.keywords["rollouts"] == 7
    vocabulary = guided.Vocabulary.from_tokens([b"snow", b"sun", None], eos_ids=[2])
    weights = found.keywords["reward"](vocabulary)
    assert weights.complete([0]) == math.log(snow(["snow"])[0]) and weights.complete([1]) == -math.inf
    judge = search_function(f"a-star:reward={__name__}:snow", decode).keywords["judge"](vocabulary)
    assert judge.complete([0]) == judge.prefix([0]) == snow(["snow"])[0] > judge.prefix([1])
    assert search_function("a-star:expand=none", decode).keywords == {"expand": None}
    result = extracted("--search", f"mcts:reward={__name__}:worse")
    assert result.exit_code != 0 and "the reward gave -1.0" in result.stderr


def test_a_reward_in_this_folder(extracted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", ".")])
    (tmp_path / "sunny_reward.py").write_text(
        "def score(texts):\n    return [float('sun' in text) for text in texts]\n"
    )
    result = extracted("--search", "deal:reward=sunny_reward:score,weight=100,expand=300")
    assert (result.exit_code, json.loads(result.stdout)["sky"]) == (0, "sun"), result.stderr


def test_only_blocks_draw_and_by_the_seed(extracted):
    def drawn(seed):
        return extracted("--search", f"blocks:reward={__name__}:brevity,blocks=1,tokens=4", "--seed", seed).stdout

    first = drawn(1)
    assert first == drawn(1)
    assert any(drawn(seed) != first for seed in range(2, 8))


def test_help_of_searches_teaches(guided_cli):
    result = guided_cli("extract", "--search", "help")
    assert result.exit_code == 0
    for words in ("best-first:[beams=COUNT]", "lattice", "fewer rows", "deal:reward=MODULE:FUNCTION", "Examples:"):
        assert words in result.stdout


def test_statements_are_searched_too(guided_cli, database, model_folder):
    result = guided_cli(
        *("sql", "--db", database, "How old?", "-m", model_folder, "--no-run", "--json", "--max-new-tokens", 40),
        *("--search", "beam:beams=2"),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["sql"] == found["texts"][0]["text"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--search", "beem"), ["no search is called 'beem'", "Did you mean 'beam'?", "neurologic"]),
        (("--search", "beam:width=3"), ["beam has no setting 'width'", "[beams=COUNT]"]),
        (("--search", "beam:beams=many"), ["'many' is not COUNT"]),
        (("--search", "beam:stopping=never"), ["'never' is not bound|current_length|first"]),
        (("--search", "deal"), ["deal needs reward", "reward=MODULE:FUNCTION"]),
        (("--search", "deal:reward=no.such:f"), ["no reward function"]),
        (("--search", "blocks:reward=math:pi"), ["math:pi is no function"]),
        (("--search", "beam", "--sampler", "smc"), ["a sampler draws texts", "Leave out --sampler or --search"]),
        (("--must-include", "x", "--sampler", "smc"), ["Leave out --sampler or --must-include"]),
        (("--search", "beam", "--sample"), ["a search compares texts", "--sample"]),
        (("--search", "beam", "--temperature", 0.5), ["a search compares texts", "--temperature"]),
        (("--search", "beam", "--must-include", "x"), ["beam cannot place phrases", "dynamic or grid or neurologic"]),
        (("--search", "grid", "--must-exclude", "x"), ["grid cannot exclude phrases", "--search neurologic"]),
        (("--must-include", "a||b"), ["a phrase is empty", "ONE|OTHER"]),
        (("--search", "beam", "--replay", "x.html"), ["--sampler"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line_before_anything_is_loaded(extracted, options, words):
    result = extracted(*options, "-m", "no-such-model")
    assert result.exit_code == 2
    line = one_line(result.stderr)
    assert all(word in line for word in words), line


@pytest.mark.parametrize(("option", "phrase"), [("--must-include", "hail"), ("--must-exclude", "rain|sun|snow")])
def test_phrases_that_cannot_be(extracted, option, phrase):
    result = extracted(option, phrase)
    assert result.exit_code == 4
    line = one_line(result.stderr)
    assert "found no text" in line and re.findall("--must-[a-z]*", line) == [option]


def test_colours_are_for_one_text(guided_cli, database, model_folder):
    result = guided_cli("sql", "--db", database, "x", "-m", model_folder, "--explain", "--must-include", "a")
    assert result.exit_code == 2
    assert "a search compares whole texts" in one_line(result.stderr)


def test_bars_and_backslashes():
    assert alternatives(r"a\|b|c\\") == ["a|b", "c\\"]
    with pytest.raises(GuidedError, match="a phrase is empty"):
        alternatives("")


def test_help_names_the_searches_without_torch(guided_cli):
    shown = " ".join(guided_cli("extract", "--help").stdout.replace("│", " ").split())
    assert "best-first:beams=8" in shown and "--must-include" in shown and "--must-exclude" in shown
    code = (
        "import sys\nfrom guided.cli.methods.searching import parse_search, check_search\n"
        "from guided.cli.methods.options import SamplingOptions, ModelOptions\n"
        "check_search(SamplingOptions(search='beam:beams=2,stopping=first'), ModelOptions())\n"
        "print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    assert parse_search("grid").name == "grid"
