"""Trains the small draft model of guided-nano: a Llama a sixth its size, with its tokenizer, on its training stream.

    python examples/train_draft_heads/train_small.py --out runs/small [--minutes 12]

Embeddings begin as the main directions of guided-nano's own, which is where a tokenizer's knowledge is; the rest begins
at random.  Labels are the stream's answers: guided-nano gives nearly the same ones.  Seeded; time is processor time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import time
from pathlib import Path

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from guided.nano import MODEL_PATH

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "train_nano"))

from corpus import tasks
from packing import batches

SEED = 77
"""Another stream than guided-nano's own (1), of the same kind."""
WIDTH = 128
MATRIX_RATE, VECTOR_RATE = 6e-3, 4e-3
WARM_UP, DECAY_FROM = 0.01, 0.4


def small_config(teacher: LlamaConfig) -> LlamaConfig:
    """722,000 parameters: 1.4 MB in float16."""
    return LlamaConfig(
        vocab_size=teacher.vocab_size,
        hidden_size=WIDTH,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=teacher.max_position_embeddings,
        rope_parameters=teacher.rope_parameters,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=teacher.eos_token_id,
        pad_token_id=teacher.pad_token_id,
        attn_implementation="sdpa",
    )


def small_model(teacher: LlamaForCausalLM) -> LlamaForCausalLM:
    """A new model whose embeddings are the teacher's in their ``WIDTH`` main directions, at the usual scale."""
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(small_config(teacher.config))
    table = teacher.get_input_embeddings().weight.detach().float()
    _, _, directions = torch.linalg.svd(table - table.mean(0), full_matrices=False)
    projected = (table - table.mean(0)) @ directions[:WIDTH].T
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(projected * (0.02 / projected.std()))
    return model


def train(out: Path, minutes: float, rows: int) -> None:
    """Train for ``minutes`` of processor time and save the float16 model with the tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(MODEL_PATH)
    model = small_model(LlamaForCausalLM.from_pretrained(MODEL_PATH, dtype=torch.float32))
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    optimizers = [
        torch.optim.Muon(matrices, lr=MATRIX_RATE, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=VECTOR_RATE, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    base = model.model if shutil.which("g++") is None else torch.compile(model.model)
    stream = batches(itertools.islice(tasks(SEED), 0, None), tokenizer, rows)
    began, step, averaged = time.process_time(), 0, 0.0
    while (progress := (time.process_time() - began) / (60 * minutes)) < 1:
        factor = max(progress / WARM_UP, 0.02) if progress < WARM_UP else min(1.0, (1 - progress) / (1 - DECAY_FROM))
        for optimizer, peak in zip(optimizers, (MATRIX_RATE, VECTOR_RATE), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
        batch = next(stream)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = base(
                input_ids=batch.tokens, attention_mask=batch.mask, position_ids=batch.positions, use_cache=False
            ).last_hidden_state
            logits = model.lm_head(hidden.reshape(-1, WIDTH)[batch.predicting])
        loss = torch.nn.functional.cross_entropy(logits.float(), batch.targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        averaged = loss.item() if step == 1 else 0.97 * averaged + 0.03 * loss.item()
        if step % 50 == 0:
            seconds = round(time.process_time() - began)
            print(json.dumps({"step": step, "cpu_seconds": seconds, "loss": round(averaged, 4)}), flush=True)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.half().save_pretrained(str(out))
    tokenizer.save_pretrained(str(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=12.0, help="processor time")
    parser.add_argument("--rows", type=int, default=8, help="packed rows of a step")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train(arguments.out, arguments.minutes, arguments.rows)


if __name__ == "__main__":
    main()
