"""Trains guided-nano from nothing: tokenizer, corpus, model, and at the end the evaluation; resumable, seeded.

    python examples/train_nano/train.py --out runs/nano

Started again with the same ``--out``, it goes on from the last checkpoint.  Data and learning rate follow the number of
steps, so every machine does the same training, and a slow or busy one only takes longer; the log has processor time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from card import write_card
from constrained import grammar_constraint
from corpus import tasks
from evaluate import evaluate, quick_check, summary
from packing import ROW_LENGTH, batches
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from tokenizer import build_tokenizer
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

__all__ = ["model_config", "train"]

SEED = 0
STEPS = 9_250
RATE = (
    (0, 0.02),
    (80, 1.0),
    (3_960, 1.0),
    (7_940, 0.18),
    (8_100, 0.5),
    (8_250, 0.474),
    (8_750, 0.321),
    (STEPS, 0.0),
)
"""The learning rate's factor at these steps, linear in between: it rises again where the stream begins to drill
records (``corpus.DRILL_FROM``), because at the rate that it had fallen to little more would be learned."""
MATRIX_RATE = 4e-3
VECTOR_RATE = 3e-3
SAVE_EVERY = 250
CHECK_EVERY = 3
"""A look at held-out examples at every third checkpoint."""


def model_config(tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """A Llama of 4.4 million parameters: 8.9 MB in float16."""
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=1024,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        attn_implementation="sdpa",
    )


def _optimizers(model: LlamaForCausalLM) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for embeddings and norms: about half the steps of AdamW alone."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        torch.optim.Muon(matrices, lr=MATRIX_RATE, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=VECTOR_RATE, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def _rate(progress: float) -> float:
    """The learning rate's factor at a share of the training."""
    steps, factors = zip(*RATE, strict=True)
    return float(np.interp(progress * STEPS, steps, factors))


def _save(out: Path, model: LlamaForCausalLM, state: dict[str, Any]) -> None:
    """Model, optimizer and place in the stream, written aside and then moved: an interruption leaves the old one."""
    fresh = out / "checkpoint.new"
    torch.save({"model": model.state_dict(), **state}, fresh)
    fresh.replace(out / "checkpoint.pt")


def export(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """The float16 model and its tokenizer in the form that ``from_pretrained`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    half = LlamaForCausalLM(model.config)
    half.load_state_dict(model.state_dict())
    half.generation_config.eos_token_id = tokenizer.eos_token_id
    half.generation_config.pad_token_id = tokenizer.pad_token_id
    half.half().save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def train(out: Path, steps: int, rows: int) -> Path:
    """Trains (or goes on) up to ``steps``; returns the folder of the exported model."""
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "tokenizer").exists():
        build_tokenizer(SEED).save_pretrained(str(out / "tokenizer"))
    tokenizer = AutoTokenizer.from_pretrained(str(out / "tokenizer"))
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(model_config(tokenizer))
    optimizers = _optimizers(model)
    used, step, seen = 0.0, 0, 0
    if (out / "checkpoint.pt").exists():
        state = torch.load(out / "checkpoint.pt")
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        used, step, seen = state["used"], state["step"], state["seen"]
    base = model.model if shutil.which("g++") is None else torch.compile(model.model)
    stream = batches(itertools.islice(tasks(SEED + 1), seen, None), tokenizer, rows)
    before, averaged = time.process_time(), math.nan
    log = (out / "log.jsonl").open("a", encoding="utf-8")
    columns = (TextColumn("training"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with Progress(*columns, refresh_per_second=1) as bar:
        shown = bar.add_task("training", total=steps, completed=step, note="")
        while step < steps:
            batch = next(stream)
            factor = _rate((step + 1) / steps)
            for optimizer, peak in zip(optimizers, (MATRIX_RATE, VECTOR_RATE), strict=True):
                for group in optimizer.param_groups:
                    group["lr"] = peak * factor
            with torch.autocast("cpu", dtype=torch.bfloat16):
                hidden = base(
                    input_ids=batch.tokens, attention_mask=batch.mask, position_ids=batch.positions, use_cache=False
                ).last_hidden_state
                logits = model.lm_head(hidden.reshape(-1, hidden.shape[-1])[batch.predicting])
            loss = torch.nn.functional.cross_entropy(logits.float(), batch.targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            step, seen = step + 1, seen + batch.tasks
            averaged = loss.item() if math.isnan(averaged) else 0.97 * averaged + 0.03 * loss.item()
            now = time.process_time()
            used, before = used + now - before, now
            bar.update(shown, completed=step, note=f"step {step} of {steps}, loss {averaged:.3f}")
            if step % 50 == 0:
                row = {"step": step, "seconds": round(used), "loss": round(averaged, 4), "tasks": seen}
                log.write(json.dumps({**row, "places": step * rows * ROW_LENGTH}) + "\n")
                log.flush()
            if step % SAVE_EVERY == 0 or step == steps:
                places = {"used": used, "step": step, "seen": seen}
                _save(out, model, {"optimizers": [optimizer.state_dict() for optimizer in optimizers], **places})
                export(model, tokenizer, out / "weights")
                if step % (SAVE_EVERY * CHECK_EVERY) == 0:
                    log.write(json.dumps({"step": step, **quick_check(model, tokenizer)}) + "\n")
                    log.flush()
    log.close()
    return out / "weights"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of checkpoints, log and the exported model")
    parser.add_argument("--steps", type=int, default=STEPS, help="fewer: the same schedule, pressed together")
    parser.add_argument("--rows", type=int, default=10, help=f"rows of {ROW_LENGTH} tokens in a step")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    weights = train(arguments.out, arguments.steps, arguments.rows)
    for name, constraint in (("evaluation.json", None), ("evaluation-constrained.json", grammar_constraint)):
        results = evaluate(weights, constraint=constraint)
        (arguments.out / name).write_text(json.dumps(summary(results), indent=2) + "\n", encoding="utf-8")
    write_card(arguments.out, weights)
    print((weights / "MODEL_CARD.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
