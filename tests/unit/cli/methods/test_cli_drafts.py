"""``--draft`` of `guided extract` and `guided sql`: the same answers, what they cost, and what is refused."""

from __future__ import annotations

import json

import pytest

from tests.amounts import each
from tests.unit.cli.conftest import one_line


@pytest.fixture
def extracted(guided_cli, person, letter, model_folder):
    def run(*options, file=letter):
        limits = ("--whitespace", "compact", "--max-new-tokens", 40)
        return guided_cli("extract", "-s", person, file, "-m", model_folder, *limits, *options)

    return run


@pytest.mark.parametrize(
    "draft", each(["auto", "lookup", "recycling", "ngrams", "trigrams", "suffixes", "copy", "model"], 3)
)
def test_each_draft_writes_the_same_record_and_says_what_it_cost(extracted, model_folder, draft):
    name = f"model:{model_folder}" if draft == "model" else draft
    plain = json.loads(extracted("--json").stdout)
    result = extracted("--draft", name, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["value"], found["tokens"]) == (plain["value"], plain["tokens"])
    assert "drafts" not in plain
    drafts = found["drafts"]
    assert drafts["tokens"] in (found["tokens"], found["tokens"] + 1)
    assert 0 < drafts["passes"] <= drafts["tokens"]
    assert drafts["accepted"] <= drafts["drafted"]
    assert drafts["trees"] is True
    assert set(drafts["seconds"]) == {"draft", "model", "constraint", "verify"}
    if draft == "model":
        assert drafts["tokens_per_pass"] > 2, "the target itself drafts"


def test_people_get_a_line_about_it(extracted):
    plain, drafted = extracted(), extracted("--draft", "lookup")
    assert drafted.stdout == plain.stdout
    line = one_line(drafted.stderr)
    assert "passes of the model" in line and "drafted tokens accepted" in line


def test_batches_and_samplers_have_it_in_each_line(extracted, tmp_path):
    letters = tmp_path / "letters.jsonl"
    letters.write_text('"Ada turned 36"\n"Bob turned 7"\n')
    for options in ((), ("--sampler", "smc", "--particles", 3), ("--temperature", 2, "--seed", 1)):
        result = extracted("--batch", "--draft", "auto", *options, file=letters)
        assert result.exit_code == 0, result.stdout
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert all(line["drafts"]["passes"] > 0 and "name" in line["value"] for line in lines)
    options = ("--sampler", "smc", "--particles", 3, "--json")
    plain, drafted = (json.loads(extracted(*options, *draft).stdout) for draft in ((), ("--draft", "ngrams")))
    assert [each["text"] for each in plain["texts"]] == [each["text"] for each in drafted["texts"]]
    assert [each["weight"] for each in plain["texts"]] == pytest.approx([each["weight"] for each in drafted["texts"]])


def test_steering_is_the_same(extracted, model_folder):
    steer = ("--steer", f"contrastive:model={model_folder},alpha=0.05", "--steer", "cfg")
    assert extracted(*steer).stdout == extracted(*steer, "--draft", "auto").stdout


def test_statements(guided_cli, database, model_folder):
    options = ("sql", "--db", database, "How old?", "-m", model_folder, "--no-run", "--max-new-tokens", 40)
    plain, drafted = (json.loads(guided_cli(*options, "--json", *draft).stdout) for draft in ((), ("--draft", "auto")))
    assert drafted["sql"] == plain["sql"]
    assert drafted["drafts"]["passes"] > 0
    result = guided_cli(*options, "--draft", "auto")
    assert "drafted tokens accepted" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--draft", "lookap"), ["lookap", "Did you mean 'lookup'?", "Known: auto", "model:NAME_OR_PATH"]),
        (("--draft", "model:"), ["model:NAME_OR_PATH"]),
        (("--draft", "hydra"), ["trained for the packaged model", "auto", "--model nano"]),
        (("--draft", "auto", "--sampler", "mcmc"), ["--sampler mcmc has no speculative form", "smc or importance"]),
        (("--draft", "auto", "--search", "beam"), ["a search compares whole texts", "--search"]),
        (("--draft", "auto", "--must-include", "x"), ["a search compares whole texts"]),
        (("--draft", "model:no/such/folder", "--offline"), ["no/such/folder"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(extracted, options, words):
    result = extracted(*options)
    assert result.exit_code == 2
    line = one_line(result.stderr)
    assert all(word in line for word in words), line


def test_a_draft_model_of_another_vocabulary_is_refused_by_name(extracted, tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    small = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    folder = tmp_path / "other"
    LlamaForCausalLM(LlamaConfig(vocab_size=17, eos_token_id=2, **small)).save_pretrained(folder)
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {name: number for number, name in enumerate(["a", "b", "</s>"])}
    PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, "a")), eos_token="</s>").save_pretrained(
        folder
    )
    result = extracted("--draft", f"model:{folder}")
    assert result.exit_code == 3
    line = one_line(result.stderr)
    assert "the two models' tokenizers give different ids" in line and "OtherVocabulary" in line


def test_colours_are_of_every_pass(guided_cli, database, model_folder):
    result = guided_cli("sql", "--db", database, "x", "-m", model_folder, "--explain", "--draft", "auto")
    assert result.exit_code == 2
    assert "drafts leave out passes" in one_line(result.stderr)


@pytest.mark.slow
def test_drafts_of_the_packaged_model(guided_cli, person, letter):
    options = ("extract", "-s", person, letter, "--max-new-tokens", 60, "--json")
    plain = json.loads(guided_cli(*options).stdout)
    for name in ("small", "hydra", "eagle"):
        found = json.loads(guided_cli(*options, "--draft", name).stdout)
        assert found["value"] == plain["value"]
        assert found["drafts"]["passes"] < 0.7 * found["drafts"]["tokens"]
    result = guided_cli(*options, "--draft", "medusa", "--sampler", "smc")
    assert result.exit_code == 2 and "not for particles" in result.stdout + result.stderr
