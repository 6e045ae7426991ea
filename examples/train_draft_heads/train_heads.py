"""Trains Medusa, Hydra, Clover and Chimera heads on guided-nano, which stays as it is; minutes on one core, seeded.

    python examples/train_draft_heads/train_heads.py --out runs/heads [--texts 1200] [--epochs 2]

The heads learn from prompts and answers of the kind that guided-nano was trained on, and their tree is shaped by how
often they are right about what guided-nano itself writes for other prompts.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from guided.draft import (
    BlockSizes,
    PrefixedHeads,
    calibrate_heads,
    feature_examples,
    fit_heads,
    fit_prefixed,
    head_examples,
    new_heads,
    prefixed_examples,
    speculate,
)
from guided.hf import load
from guided.hf.draft_heads import base_of
from guided.hf.language_model import TransformersModel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "train_nano"))

from evaluate import examples

HEADS = {"medusa": (5, 2), "hydra": (4, 1), "clover": (4, 1), "chimera": (4, 1)}
"""Heads and blocks of each kind: 1.3, 2.3, 0.9 and 2.1 MB in float16."""
SHARES = {"familiar": 2, "records": 2, "sql": 1}
SEED, CALIBRATION_SEED = 31, 32
CALIBRATED_ON = 120


def prompts_and_answers(tokenizer, seed: int, count: int) -> tuple[list[list[int]], list[list[int]]]:
    """Training examples of the three tasks, with the end token."""
    streams = {name: examples(name, seed, held_out=False) for name in SHARES}
    order = itertools.cycle([name for name, share in SHARES.items() for _ in range(share)])
    chosen = [next(streams[name]) for name in itertools.islice(order, count)]
    prompts = tokenizer([example.prompt for example in chosen])["input_ids"]
    answers = tokenizer([example.answer for example in chosen], add_special_tokens=False)["input_ids"]
    return prompts, [[*answer, tokenizer.eos_token_id] for answer in answers]


def reporter(kind: str) -> Callable[[int, float], bool]:
    """Prints now and then how the training goes, and never stops it."""

    def report(step: int, loss: float) -> bool:
        if step % 50 == 0:
            print(f"{kind} step {step}, loss {loss:.3f}, {time.process_time():.0f} s", flush=True)
        return False

    return report


def options(description: str | None) -> argparse.ArgumentParser:
    """The options of the trainers that learn from these texts."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=1200)
    parser.add_argument("--epochs", type=float, default=2.0)
    return parser


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--kind", action="append", choices=HEADS, help="only these heads; all without it")
    parser.add_argument("--prefix", action="store_true", help="with a block over the text before the heads")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    loaded = load("nano", device="cpu")
    model = TransformersModel(loaded)
    arguments.out.mkdir(parents=True, exist_ok=True)
    most = max(heads for heads, _ in HEADS.values())

    if arguments.prefix:
        train_prefixed(model, loaded.model.config.to_dict(), arguments)
        return
    began = time.process_time()
    prompts, answers = prompts_and_answers(loaded.tokenizer, SEED, arguments.texts)
    found = head_examples(model, prompts, answers, most, dtype=torch.float16)
    print(f"{len(found)} places of {len(prompts)} texts, {time.process_time() - began:.0f} s", flush=True)

    prompts, _ = prompts_and_answers(loaded.tokenizer, CALIBRATION_SEED, CALIBRATED_ON)
    written, _ = speculate(0, model, prompts, [None] * len(prompts), max_tokens=120, greedy=True)
    own = head_examples(model, prompts, [list(text.tokens) for text in written], most)
    print(f"{len(own)} places of own texts, {time.process_time() - began:.0f} s", flush=True)

    for kind in arguments.kind or HEADS:
        count, blocks = HEADS[kind]
        heads = new_heads(kind, count, base_of(model), blocks=blocks)
        fit_heads(heads, found, epochs=arguments.epochs, seed=SEED, done=reporter(kind))
        calibrate_heads(heads, own)
        heads.save(arguments.out / f"{kind}.safetensors")
        print(kind, [row[:3] for row in heads.settings.accuracies], f"{time.process_time() - began:.0f} s", flush=True)


def train_prefixed(model: TransformersModel, config: dict, arguments: argparse.Namespace) -> None:
    """The same heads behind a block of the model's own sizes, trained together."""
    prompts, answers = prompts_and_answers(model.tokenizer, SEED, arguments.texts)
    found = feature_examples(model, prompts, answers)
    prompts, _ = prompts_and_answers(model.tokenizer, CALIBRATION_SEED, CALIBRATED_ON)
    written, _ = speculate(0, model, prompts, [None] * len(prompts), max_tokens=120, greedy=True)
    own = feature_examples(model, prompts, [list(text.tokens) for text in written])
    for kind in arguments.kind or HEADS:
        count, blocks = HEADS[kind]
        heads = PrefixedHeads(new_heads(kind, count, base_of(model), blocks=blocks), BlockSizes.of(config))
        fit_prefixed(heads, found, epochs=arguments.epochs, seed=SEED, done=reporter(kind))
        calibrate_heads(heads.heads, prefixed_examples(heads, own))
        heads.save(arguments.out / f"prefixed-{kind}")
        print(kind, [row[:3] for row in heads.heads.settings.accuracies], flush=True)


if __name__ == "__main__":
    main()
