"""Turns guided-nano into guided-nano-diffusion: a masked denoiser of the same size, trained on the same tasks.

    python train_denoiser.py --out runs/denoiser --minutes 75
    python train_denoiser.py --out runs/gpu --minutes 8 --device cuda --rows 192 --workers 14

The weights begin as guided-nano's, with one more token, the mask.  The prompt is read causally, as before; a canvas
sees its prompt and, both ways, itself; the output at a place is still about the next one, so that what was learned
about following tokens stays of use.  The loss is that of masked diffusion: cross-entropy of masked tokens over the
share of masks (Sahoo et al. 2024, "Simple and Effective Masked Diffusion Language Models", equation 10).

The learning rate follows the clock, because the time was what was given; started again with the same ``--out``, it
goes on from the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from noising import ROW_LENGTH, assembled, chunk, chunk_of
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast

from guided.nano import MODEL_PATH

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "train_nano"))

from chunks import made_ahead

__all__ = ["begun", "export", "train"]

SEED = 5
"""Another stream of tasks than guided-nano's own (1)."""
MATRIX_RATE = 3e-3
VECTOR_RATE = 2e-3
RATE = ((0.0, 0.02), (0.02, 1.0), (0.35, 1.0), (1.0, 0.0))
"""The learning rate's factor at these shares of the time, linear in between."""
SAVE_SECONDS = 180
MASK = "<mask>"
CANVAS_LENGTH = 96
"""Masks that a decoder shows at once, by the configuration: nearly all answers have no more tokens."""


def begun() -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """guided-nano with a mask token, whose embedding begins as the mean of all."""
    tokenizer = AutoTokenizer.from_pretrained(str(MODEL_PATH))
    tokenizer.add_special_tokens({"mask_token": MASK})
    model = AutoModelForCausalLM.from_pretrained(str(MODEL_PATH), dtype=torch.float32, attn_implementation="sdpa")
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    table = model.get_input_embeddings().weight
    with torch.no_grad():
        table[tokenizer.mask_token_id] = table[: tokenizer.mask_token_id].mean(0)
    return model, tokenizer


def _optimizers(model: LlamaForCausalLM) -> list[torch.optim.Optimizer]:
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        torch.optim.Muon(matrices, lr=MATRIX_RATE, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=VECTOR_RATE, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def export(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """The float16 model and its tokenizer in the form that ``from_pretrained`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    half = LlamaForCausalLM(model.config)
    half.load_state_dict(model.state_dict())
    half.config.mask_token_id = tokenizer.mask_token_id
    half.config.causal_prompt_denoiser = True
    half.config.canvas_length = CANVAS_LENGTH
    half.config.use_cache = False
    half.generation_config.eos_token_id = tokenizer.eos_token_id
    half.generation_config.pad_token_id = tokenizer.pad_token_id
    half.half().save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def _save(out: Path, model: LlamaForCausalLM, state: dict[str, Any]) -> None:
    """Model, optimizer and place in the stream, written aside and then moved: an interruption leaves the old one."""
    torch.save({"model": model.state_dict(), **state}, out / "checkpoint.new")
    (out / "checkpoint.new").replace(out / "checkpoint.pt")


def train(out: Path, minutes: float, rows: int, device: torch.device, workers: int, compiled: bool) -> Path:
    """Trains (or goes on) for ``minutes`` in all; returns the folder of the exported model."""
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    model, tokenizer = begun()
    model.to(device)
    optimizers = _optimizers(model)
    used, processor, step, seen = 0.0, 0.0, 0, 0
    if (out / "checkpoint.pt").exists():
        state = torch.load(out / "checkpoint.pt", map_location=device)
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        used, processor, step, seen = state["used"], state["processor"], state["step"], state["seen"]
    base = torch.compile(model.model) if compiled else model.model
    # What was left of the chunk of a run that goes on is let be.
    starts = count(-(-step // chunk_of(rows)) * chunk_of(rows), chunk_of(rows))
    fed = made_ahead(partial(chunk, tokenizer, tokenizer.mask_token_id, SEED, rows), starts, workers)
    shares, factors = zip(*RATE, strict=True)
    clock, worked, saved_at, averaged = time.perf_counter(), time.process_time(), used, math.nan
    losses: list[torch.Tensor] = []
    with (out / "log.jsonl").open("a", encoding="utf-8") as log:
        while used < 60 * minutes:
            made = next(fed)
            batch = assembled(made, device)
            factor = float(np.interp(used / (60 * minutes), shares, factors))
            for optimizer, peak in zip(optimizers, (MATRIX_RATE, VECTOR_RATE), strict=True):
                for group in optimizer.param_groups:
                    group["lr"] = peak * factor
            with torch.autocast(device.type, dtype=torch.bfloat16):
                hidden = base(
                    input_ids=batch.tokens, attention_mask=batch.mask, position_ids=batch.positions, use_cache=False
                ).last_hidden_state
                logits = model.lm_head(hidden.reshape(-1, hidden.shape[-1])[batch.predicting])
            loss = torch.nn.functional.cross_entropy(logits.float(), batch.targets, reduction="none") @ batch.weights
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            step, seen = step + 1, seen + made.n_tasks
            losses.append(loss.detach())
            if step % 50 == 0:  # Asking for a loss waits for the device.
                mean = torch.stack(losses).mean().item()
                losses, averaged = [], mean if math.isnan(averaged) else 0.7 * averaged + 0.3 * mean
            used, clock = used + time.perf_counter() - clock, time.perf_counter()
            processor, worked = processor + time.process_time() - worked, time.process_time()
            if step % 50 == 0:
                row = {"step": step, "seconds": round(used), "processor": round(processor), "loss": round(averaged, 4)}
                log.write(json.dumps({**row, "tasks": seen, "places": step * rows * ROW_LENGTH}) + "\n")
                log.flush()
            if used - saved_at > SAVE_SECONDS or used >= 60 * minutes:
                saved_at = used
                places = {"used": used, "processor": processor, "step": step, "seen": seen}
                _save(out, model, {"optimizers": [optimizer.state_dict() for optimizer in optimizers], **places})
                export(model, tokenizer, out / "weights")
    return out / "weights"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of checkpoints, log and the exported model")
    parser.add_argument("--minutes", type=float, default=75.0)
    parser.add_argument("--rows", type=int, default=10, help=f"rows of {ROW_LENGTH} tokens in a step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=0, help="processes that make rows; 0: the training one itself")
    parser.add_argument("--eager", action="store_true", help="without torch.compile, which wants a compiler")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device, compiled = torch.device(arguments.device), not arguments.eager and shutil.which("g++") is not None
    print(train(arguments.out, arguments.minutes, arguments.rows, device, arguments.workers, compiled))


if __name__ == "__main__":
    main()
