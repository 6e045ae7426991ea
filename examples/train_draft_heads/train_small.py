"""Trains the small draft model of guided-nano: a Llama a sixth its size, with its tokenizer, on its training stream.

    python examples/train_draft_heads/train_small.py --out runs/small

Embeddings begin as the main directions of guided-nano's own, which is where a tokenizer's knowledge is; the rest begins
at random.  Labels are the stream's answers: guided-nano gives nearly the same ones.  Seeded, and resumable as
guided-nano's own training, whose loop this is; the model is in ``weights`` of the folder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from guided.nano import MODEL_PATH

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "train_nano"))

from train import Plan, arguments_of, fit

SEED = 77
"""Another stream than guided-nano's own (1), of the same kind."""
WIDTH = 128
STEPS = 6_000


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


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = arguments_of(parser, STEPS, 8)
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    tokenizer = AutoTokenizer.from_pretrained(MODEL_PATH)
    model = small_model(LlamaForCausalLM.from_pretrained(MODEL_PATH, dtype=torch.float32))
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    plan = Plan(
        given.steps, given.rows, given.device, given.workers, given.minutes, SEED, matrix_rate=6e-3, vector_rate=4e-3
    )
    print(fit(given.out, model, tokenizer, plan))


if __name__ == "__main__":
    main()
