"""A model folder made on the spot, a small database, and a runner that shows both streams."""

from __future__ import annotations

import json
import sqlite3
from functools import cache
from pathlib import Path

import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner, Result

from guided.cli.application import application

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}

# A runner makes all commands anew for each call, 21 ms of processor time, though nothing changes them.
typer.testing._get_command = cache(typer.main.get_command)


@pytest.fixture
def guided_cli():
    """Run the command line in this process: ``guided_cli("check", "x.json") -> Result``."""

    def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(application, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def person(tmp_path: Path) -> Path:
    path = tmp_path / "person.json"
    path.write_text(json.dumps(PERSON))
    return path


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter.txt"
    path.write_text("Ada Lovelace turned 36 in London.\n")
    return path


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    """A Llama of two tiny layers with random weights and a byte-level tokenizer, as `save_pretrained` writes them."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(['{"name": "Ada", "age": 36}', "SELECT name FROM people WHERE age = 3"] * 20, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token="<pad>", bos_token="<s>", eos_token="</s>", padding_side="left"
    )
    torch.manual_seed(1)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer) + 6,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=1024,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        )
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6.0)
        # Random weights write white space without an end wherever JSON may have some, so a number of the state stays
        # as it is through all layers, and makes white space unlikely.
        model.get_input_embeddings().weight[:, 0] = 6.0
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0.0
            layer.mlp.down_proj.weight[0] = 0.0
        for token in range(len(tokenizer)):
            if tokenizer.decode([token]).isspace():
                model.lm_head.weight[token] = 0.0
                model.lm_head.weight[token, 0] = -1.0
    folder = tmp_path_factory.mktemp("models") / "tiny"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def database(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("databases") / "people.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, age INTEGER);
        INSERT INTO people VALUES (1, 'Ada', 36), (2, 'Grace', 85), (3, NULL, 41);
        """
    )
    connection.close()
    return path


def one_line(text: str) -> str:
    """The text of standard error: exactly one line, and no traceback."""
    assert text.endswith("\n"), text
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    return text[:-1]
