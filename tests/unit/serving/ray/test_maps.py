"""`Generate`: what an actor of a Ray data set does with a batch, and one real data set."""

import json
import pickle

import numpy as np
import pytest

import guided
from guided.serving.ray.maps import Generate, generate_texts

GRAMMAR = guided.json_schema(
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
)


def test_a_batch_gets_texts_and_errors():
    worker = Generate(GRAMMAR, prompt="asked", into="answer", max_new_tokens=30)
    batch = {"id": np.arange(3), "asked": np.array(["one", "word " * 3000, "three"])}
    made = worker(batch)
    assert list(made) == ["id", "asked", "answer", "answer_error"]
    assert [bool(error) for error in made["answer_error"]] == [False, True, False]
    assert set(json.loads(made["answer"][0])) == set(json.loads(made["answer"][2])) == {"n"}
    assert made["answer"][1] == ""
    (again,) = guided.hf.generate(worker.loaded, ["one"], GRAMMAR, max_new_tokens=30)
    assert again.text == made["answer"][0]


def test_a_column_that_is_not_there():
    worker = Generate(GRAMMAR)
    with pytest.raises(guided.GuidedError, match=r"no column 'prompt'.*'text'"):
        worker({"text": ["a"]})


def test_grammars_travel(tmp_path):
    import sqlite3

    path = tmp_path / "x.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE a (b INTEGER)")
    for grammar in (GRAMMAR, guided.sql(f"sqlite:///{path}"), guided.lark('start: "a"+'), guided.gbnf('root ::= "a"')):
        assert pickle.loads(pickle.dumps(grammar)).key == grammar.key


@pytest.mark.slow
def test_a_data_set():
    """Slow: Ray takes 10 s to start."""
    pytest.importorskip("ray")
    import ray
    import ray.data

    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        dataset = ray.data.from_items([{"prompt": f"number {n}"} for n in range(6)])
        rows = generate_texts(dataset, GRAMMAR, max_new_tokens=30, workers=1).take_all()
    finally:
        ray.shutdown()
    assert len(rows) == 6
    assert all(set(json.loads(row["text"])) == {"n"} and row["text_error"] == "" for row in rows)
