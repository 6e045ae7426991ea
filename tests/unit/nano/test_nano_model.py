"""The packaged model: its files, its size, and that it loads and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guided.nano import MODEL_PATH, Column, Table, extraction_prompt, sql_prompt

pytestmark = pytest.mark.skipif(
    not (MODEL_PATH / "model.safetensors").exists(), reason="the weights are not in this checkout"
)


@pytest.fixture(scope="module")
def nano() -> tuple[Any, Any]:
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(str(MODEL_PATH))
    return model.float().eval(), transformers.AutoTokenizer.from_pretrained(str(MODEL_PATH))


def answer(nano: tuple[Any, Any], prompt: str) -> str:
    model, tokenizer = nano
    encoded = tokenizer(prompt, return_tensors="pt")
    row = model.generate(
        input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"], max_new_tokens=80, do_sample=False
    )[0]
    return tokenizer.decode(row[encoded["input_ids"].shape[1] :], skip_special_tokens=True)


def test_the_package_holds_the_whole_model_with_its_licence():
    for name in ("config.json", "generation_config.json", "tokenizer.json", "MODEL_CARD.md", "LICENSE"):
        assert (MODEL_PATH / name).stat().st_size > 0, name
    assert (MODEL_PATH / "model.safetensors").stat().st_size <= 12_000_000
    config = json.loads((MODEL_PATH / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]


def test_it_is_float16_and_finite():
    from safetensors import safe_open

    with safe_open(MODEL_PATH / "model.safetensors", framework="pt") as file:
        for name in file.keys():  # noqa: SIM118  (not a mapping)
            tensor = file.get_tensor(name)
            assert str(tensor.dtype) == "torch.float16"
            assert tensor.isfinite().all()


def test_it_extracts_a_record(nano: tuple[Any, Any]):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
        "required": ["name", "age", "city"],
    }
    written = answer(nano, extraction_prompt(schema, "Anna Smith is 34 years old and lives in Berlin."))
    assert json.loads(written) == {"name": "Anna Smith", "age": 34, "city": "Berlin"}


def test_it_answers_a_question_over_a_schema(nano: tuple[Any, Any]):
    table = Table("books", (Column("id", "INTEGER"), Column("title", "TEXT"), Column("pages", "INTEGER")))
    written = answer(nano, sql_prompt([table], "How many books are there with pages greater than 300?"))
    assert written == "SELECT COUNT(*) FROM books WHERE pages > 300"
