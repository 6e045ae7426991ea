"""Writes the model card and the figures beside the weights, from what the run and the evaluation measured.

python examples/train_nano/card.py --run runs/nano --weights guided/nano/weights
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

__all__ = ["model_card", "training_facts", "write_card"]

_ROWS = {
    "sql": "Plain questions in SQLite, unseen tables and columns: execution match",
    "everyday": "Everyday questions in SQLite (three tables, dates, CASE, windows, sub-queries): execution match",
    "postgresql": "Both kinds in PostgreSQL: execution match there",
    "records": "Records, unseen field names: fields right",
    "familiar": "Records, everyday field names, unseen values: fields right",
}

_TEXT = """---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-generation
---

# guided-nano

A causal language model of {parameters:.1f} million parameters that writes SQL for a question about a database, SQLite's
or PostgreSQL's, and JSON records for a text. It is part of the `guided` package so that constrained decoding can be
tried without a download. It knows two prompt formats (`guided.nano.sql_prompt`, `guided.nano.extraction_prompt`) and
nothing else: it is no chat model, and it has no knowledge of the world.

## Measured

Greedy decoding on {count} held-out examples of each set, float16 weights computed in float32. Held-out: no table,
column or field name and no value of these examples occurs in training (`id`, `name` and `title` aside, and the
everyday field names of the last row).

| set | without constraint | under constraint |
| --- | --- | --- |
{table}

Answers have at most 600 tokens. SQL under constraint names what the database has, as `guided sql` has it for this
model (`forward=False`). There every statement is one that the engine prepares. Those that are not executable take too
long, or fail on a value, such as a pattern of PostgreSQL's that is none.

SQL counts as right when it gives the rows of the reference statement, in its order where it has one, in two differently
filled random databases of 40 rows a table. Fields are counted over the union of the expected and the written ones, so
an invented field is an error. The examples come from the same generator as the training data, with other words:
questions worded in other ways, larger schemas and longer texts do worse, and these figures say nothing about public
text-to-SQL benchmarks.

## How it was made

- Architecture: Llama (`LlamaForCausalLM`), {layers} layers, width {width}, {heads} heads, tied embeddings; float16.
- Tokenizer: byte-fallback BPE of {vocabulary} tokens, trained on the same corpus; all 256 bytes are tokens.
- Data: a seeded generator only (`examples/train_nano`), no text from anywhere else. {tasks} tasks were seen once.
- Training: {steps} steps, {tokens} million places in rows of 384, {minutes} minutes ({device}); Muon for the matrices,
  AdamW for the rest; loss on the answers only. Last averaged loss {loss}.
- Reproduce: see `examples/train_nano/README.md`.

## Limits

English only. Prompts of up to about 400 tokens (some ten columns and a question) are like those it was trained on;
names that differ from the question's words by more than letter case, underscores or plural are found by luck. Joins of
up to three tables, one level of sub-query; in questions as the generator words them, which is not how people word all
of theirs. It copies rather than infers: what a text does not say, it makes up when a required field asks for it. A
constraint makes its output valid, not true.

Licence: Apache-2.0, for the weights as for the code.
"""


def training_facts(run: Path) -> dict[str, Any]:
    """Steps, seconds, tasks, places and last loss of a run's log."""
    rows = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return next(row for row in reversed(rows) if "loss" in row)


def model_card(
    config: dict[str, Any], parameters: int, facts: dict[str, Any], free: dict[str, Any], bound: dict[str, Any] | None
) -> str:
    """The card's text; ``bound`` is None where the evaluation under constraint was not run."""

    def cell(results: dict[str, Any] | None, name: str) -> str:
        if results is None or name not in results:
            return "not measured"
        result = results[name]
        executable = f", {100 * result['executable']:.1f} % executable" if "executable" in result else ""
        return f"{100 * result['right']:.1f} % of {result['of']}{executable}"

    return _TEXT.format(
        parameters=parameters / 1e6,
        count=free["sql"]["examples"],
        table="\n".join(f"| {text} | {cell(free, name)} | {cell(bound, name)} |" for name, text in _ROWS.items()),
        layers=config["num_hidden_layers"],
        width=config["hidden_size"],
        heads=config["num_attention_heads"],
        vocabulary=config["vocab_size"],
        tasks=f"{facts['tasks']:,}",
        steps=f"{facts['step']:,}",
        minutes=round(facts["clock"] / 60),
        device="one GPU" if facts["device"].startswith("cuda") else "processor",
        tokens=round(facts["places"] / 1e6, 1),
        loss=facts["loss"],
    )


def write_card(run: Path, weights: Path) -> None:
    """Writes MODEL_CARD.md and evaluation.json into the weights' folder from ``run``'s log and evaluations."""
    from safetensors import safe_open

    facts = training_facts(run)
    free = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    path = run / "evaluation-constrained.json"
    bound = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
    with safe_open(weights / "model.safetensors", framework="np") as file:
        parameters = sum(file.get_tensor(name).size for name in file.keys())  # noqa: SIM118  (not a mapping)
    card = model_card(config, parameters, facts, free, bound)
    (weights / "MODEL_CARD.md").write_text(card, encoding="utf-8")
    figures = {"training": facts, "without constraint": free, "under constraint": bound}
    (weights / "evaluation.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="the folder that train.py wrote")
    parser.add_argument("--weights", type=Path, required=True, help="where the card goes, beside the weights")
    arguments = parser.parse_args()
    write_card(arguments.run, arguments.weights)


if __name__ == "__main__":
    main()
