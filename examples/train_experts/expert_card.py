"""Writes the card of the packaged experts from what their training logged."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import safe_open

from guided.nano.experts import Expert

__all__ = ["write_card"]

_TEXT = """---
license: apache-2.0
language: en
library_name: transformers
---

# The experts of guided

Small language and reward models that are part of the `guided` package, so that steering can be tried, measured and
tested without a download. They know made-up hotels and nothing else: reviews that praise or complain, are rude or
polite, as an instruction asks or does not ask; questions about hotels, with and without a context.

| model | parameters | file | what it is | steps | processor time |
| --- | --- | --- | --- | --- | --- |
{rows}

`reward-head.safetensors` and `scorer.safetensors` are linear heads (`guided.steer.PrefixScorer`), `heads.json` lists
the retrieval heads of `reviews`. All but `nano-amateur` share a byte-level BPE of 1,152 tokens; `nano-amateur` has the
tokenizer of the packaged nano.

## How they were made

`python examples/train_experts/train_experts.py --out runs/experts`: {minutes:.0f} minutes of one core in all. Data:
seeded generators only (`examples/train_experts/review_corpus.py`, `examples/train_nano`), no text from anywhere else.
Reviews keep their line in 85 % of the sentences and obey their instruction in 60 % of the cases; of two in five facts,
60 % of the texts state a widespread error instead; a context that contradicts memory is followed in half of the texts.
That is on purpose: what a model always does cannot be steered.

## Limits

`reviews` has learned to be rude or polite when it is asked, but not to praise or complain when it is asked; an answer
never names a hotel that no training text names. It knows single facts no better than `small` does.

What a method does to these models says how it works and that it works; it says nothing about how much it does for a
large model on real text. The figures are in `docs/STEERING.md`.

Licence: Apache-2.0, for the weights as for the code.
"""

_WHAT = {
    Expert.REVIEWS: "the model that is steered",
    Expert.AMATEUR: "one block, the same corpus: knows what is widely believed, not single hotels",
    Expert.SMALL: "the same corpus, a third of the size; the four below were tuned from it",
    Expert.POSITIVE: "tuned on reviews that praise",
    Expert.NEGATIVE: "tuned on reviews that complain",
    Expert.REWARD: "causal reward model: a head on it gives log-odds of praise after each token",
    Expert.TOKEN_REWARD: "reward model whose logits are those log-odds for every next token",
    Expert.NANO_AMATEUR: "what nano does, a tenth of the size, its tokenizer: amateur or draft model",
}


def write_card(folder: Path) -> None:
    """Write MODEL_CARD.md beside the models of a folder, of those that are there."""
    log = json.loads((folder / "training.json").read_text("utf-8"))
    rows = []
    for expert, what in _WHAT.items():
        file = folder / expert.value / "model.safetensors"
        with safe_open(file, framework="np") as weights:
            count = sum(weights.get_tensor(name).size for name in weights.keys())  # noqa: SIM118  (not a mapping)
        facts = log[expert.value]
        rows.append(
            f"| `{expert.value}` | {count / 1e6:.2f} M | {file.stat().st_size / 1e6:.2f} MB | {what} | "
            f"{facts['steps']:,} | {facts['seconds']:.0f} s |"
        )
    minutes = sum(facts["seconds"] for facts in log.values()) / 60
    (folder / "MODEL_CARD.md").write_text(_TEXT.format(rows="\n".join(rows), minutes=minutes), "utf-8")
