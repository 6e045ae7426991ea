"""Trains guided-nano from nothing: tokenizer, corpus, model, and at the end the evaluation; resumable, seeded.

    python examples/train_nano/train.py --out runs/nano

Started again with the same ``--out``, it goes on from the last checkpoint.  Data and learning rate follow the number of
steps, so every machine does the same training, and a slow or busy one only takes longer; the log has processor time.
``--device cuda`` trains on a GPU, for which several processes make the rows.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from card import write_card
from chunks import made_ahead
from constrained import grammar_constraint
from corpus import tasks
from evaluate import evaluate, quick_check, summary
from packing import ROW_LENGTH, Batch, Rows, assembled, packed
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from tokenizer import build_tokenizer
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

__all__ = ["Plan", "arguments_of", "fit", "model_config"]

SEED = 0
STEPS = 9_250
TASKS = 224_000
"""The tasks of a run of rows of ten, by which the stream's spread goes: a run of more rows meets more of each kind."""
TASKS_OF_A_ROW = 2.4
RATE = ((0.0, 0.02), (0.01, 1.0), (0.5, 1.0), (1.0, 0.0))
"""The learning rate's factor at these shares of the training, linear in between."""
SAVE_EVERY = 250
CHUNK = 50
"""Steps whose rows one process makes in one go, from a seed of their own: a run that goes on makes the same ones."""
CHECK_EVERY = 12
"""A look at held-out examples at every so many checkpoints."""


@dataclass(frozen=True)
class Plan:
    """How a model is trained: ``rows`` of a step, made by ``workers`` processes (0: this one), and learning rates.

    Within ``minutes`` by the clock the rates fall sooner, so that they are enough.
    """

    steps: int
    rows: int = 10
    device: str = "cpu"
    workers: int = 0
    minutes: float = math.inf
    seed: int = SEED
    matrix_rate: float = 4e-3
    vector_rate: float = 3e-3


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


def _optimizers(model: LlamaForCausalLM, plan: Plan) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for embeddings and norms: about half the steps of AdamW alone."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        torch.optim.Muon(matrices, lr=plan.matrix_rate, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=plan.vector_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def _rate(progress: float) -> float:
    """The learning rate's factor at a share of the training."""
    shares, factors = zip(*RATE, strict=True)
    return float(np.interp(progress, shares, factors))


def _chunk(tokenizer: PreTrainedTokenizerFast, plan: Plan, first: int) -> list[Rows]:
    """The rows of the ``CHUNK`` steps from ``first``."""
    pace = TASKS / plan.steps / (plan.rows * TASKS_OF_A_ROW)
    stream = tasks(f"{plan.seed + 1}/{first}", start=first / plan.steps * TASKS, pace=pace)
    return list(islice(packed(stream, tokenizer, plan.rows), min(CHUNK, plan.steps - first)))


def _save(out: Path, model: LlamaForCausalLM, state: dict[str, Any]) -> None:
    """Model, optimizer and place in the stream, written aside and then moved: an interruption leaves the old one."""
    fresh = out / "checkpoint.new"
    torch.save({"model": model.state_dict(), **state}, fresh)
    fresh.replace(out / "checkpoint.pt")


def export(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """The float16 model and its tokenizer in the form that ``from_pretrained`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    half = LlamaForCausalLM(model.config)
    half.load_state_dict({name: tensor.cpu() for name, tensor in model.state_dict().items()})
    half.generation_config.eos_token_id = tokenizer.eos_token_id
    half.generation_config.pad_token_id = tokenizer.pad_token_id
    half.half().save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def fit(
    out: Path,
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    plan: Plan,
    look: Callable[[Any, Any], dict[str, float]] | None = None,
) -> Path:
    """Train a new model on the corpus, or go on from the last checkpoint; returns the folder of the exported model.

    ``look`` gives what is to be logged now and then, with the checkpoint.
    """
    model.to(plan.device)
    optimizers = _optimizers(model, plan)
    used, step, seen = 0.0, 0, 0
    if (out / "checkpoint.pt").exists():
        state = torch.load(out / "checkpoint.pt", map_location=plan.device)
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        used, step, seen = state["used"], state["step"], state["seen"]
    base = torch.compile(model.model) if plan.device == "cpu" and shutil.which("g++") else model.model
    begun, before, averaged = time.monotonic(), time.process_time(), math.nan
    log = (out / "log.jsonl").open("a", encoding="utf-8")
    columns = (TextColumn("training"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with log, Progress(*columns, refresh_per_second=1) as bar:
        shown = bar.add_task("training", total=plan.steps, completed=step, note="")
        # A checkpoint is at the end of a chunk.
        for made in made_ahead(partial(_chunk, tokenizer, plan), range(step, plan.steps, CHUNK), plan.workers):
            progress = max((step + 1) / plan.steps, (time.monotonic() - begun) / 60 / plan.minutes)
            if progress > 1:
                break
            loss = _step(model, base, optimizers, plan, assembled(made, plan.device), _rate(progress))
            step, seen = step + 1, seen + made.tasks
            now = time.process_time()
            used, before = used + now - before, now
            if step % 10 == 0:
                averaged = loss.item() if math.isnan(averaged) else 0.8 * averaged + 0.2 * loss.item()
                bar.update(shown, completed=step, note=f"step {step} of {plan.steps}, loss {averaged:.3f}")
            if step % 50 == 0:
                row = {"step": step, "seconds": round(used), "clock": round(time.monotonic() - begun), "tasks": seen}
                row |= {"device": plan.device, "loss": round(averaged, 4), "places": step * plan.rows * ROW_LENGTH}
                log.write(json.dumps(row) + "\n")
                log.flush()
            if step % SAVE_EVERY == 0:
                places = {"used": used, "step": step, "seen": seen}
                _save(out, model, {"optimizers": [optimizer.state_dict() for optimizer in optimizers], **places})
                if look is not None and step % (SAVE_EVERY * CHECK_EVERY) == 0:
                    export(model, tokenizer, out / "weights")
                    log.write(json.dumps({"step": step, **look(model, tokenizer)}) + "\n")
                    log.flush()
    export(model, tokenizer, out / "weights")
    return out / "weights"


def _step(
    model: LlamaForCausalLM,
    base: Any,
    optimizers: list[torch.optim.Optimizer],
    plan: Plan,
    batch: Batch,
    factor: float,
) -> torch.Tensor:
    """One step of training; the loss is still on the device."""
    for optimizer, peak in zip(optimizers, (plan.matrix_rate, plan.vector_rate), strict=True):
        for group in optimizer.param_groups:
            group["lr"] = peak * factor
    with torch.autocast(batch.tokens.device.type, dtype=torch.bfloat16):
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
    return loss.detach()


def arguments_of(parser: argparse.ArgumentParser, steps: int, rows: int) -> argparse.Namespace:
    """The command line's options of a plan, added to ``parser`` and read."""
    parser.add_argument("--out", type=Path, required=True, help="folder of checkpoints, log and the exported model")
    parser.add_argument("--steps", type=int, default=steps, help="fewer: the same schedule, pressed together")
    parser.add_argument("--rows", type=int, default=rows, help=f"rows of {ROW_LENGTH} tokens in a step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="where the model is: cpu or cuda")
    parser.add_argument("--workers", type=int, default=0, help="processes that make rows; 0: this one")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after so many, whatever the steps")
    return parser.parse_args()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, help="the folder of one that is there; without it one is made")
    parser.add_argument("--no-evaluation", action="store_true", help="leave the evaluation and the card for later")
    given = arguments_of(parser, STEPS, 10)
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    folder = given.tokenizer or given.out / "tokenizer"
    if not folder.exists():
        build_tokenizer(SEED).save_pretrained(str(folder))
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    torch.manual_seed(SEED)
    plan = Plan(given.steps, given.rows, given.device, given.workers, given.minutes)
    weights = fit(given.out, LlamaForCausalLM(model_config(tokenizer)), tokenizer, plan, quick_check)
    if given.no_evaluation:
        return
    for name, constraint in (("evaluation.json", None), ("evaluation-constrained.json", grammar_constraint)):
        results = evaluate(weights, constraint=constraint)
        (given.out / name).write_text(json.dumps(summary(results), indent=2) + "\n", encoding="utf-8")
    write_card(given.out, weights)
    print((weights / "MODEL_CARD.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
