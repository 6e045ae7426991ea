"""A small model of what the packaged nano does: its tokenizer, its corpus, a tenth of its parameters.

As an amateur it shows what needs no skill (the form of a statement), for contrastive decoding; as a draft model it
proposes tokens for speculation.  The corpus and its packing are those of ``examples/train_nano``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from fitting import Shape, export, fit, new_model
from transformers import AutoTokenizer

from guided.nano import MODEL_PATH

__all__ = ["train_nano_amateur"]

SEED = 7
STEPS = 1500
ROWS = 8
NANO_SMALL = Shape(width=96, blocks=2, heads=4, inner=192)


def train_nano_amateur(folder: Path) -> dict[str, float]:
    """Train it and write it to a folder; gives what is to be logged."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "train_nano"))
    from corpus import tasks
    from packing import Batch, batches

    tokenizer = AutoTokenizer.from_pretrained(str(MODEL_PATH))
    model = new_model(NANO_SMALL, tokenizer, SEED)

    def loss(batch: Batch) -> torch.Tensor:
        hidden = model.model(
            input_ids=batch.tokens, attention_mask=batch.mask, position_ids=batch.positions, use_cache=False
        ).last_hidden_state
        logits = model.lm_head(hidden.flatten(0, 1)[batch.predicting])
        return torch.nn.functional.cross_entropy(logits, batch.targets)

    found = fit(model, loss, batches(tasks(SEED), tokenizer, ROWS), steps=STEPS, name="nano-amateur")
    export(model, tokenizer, folder)
    return {"steps": STEPS, "loss": round(found, 4)}
