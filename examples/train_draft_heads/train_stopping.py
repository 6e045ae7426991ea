"""Trains the head that stops guided-nano's small draft model before refusals (SpecDec++); seconds on one core, seeded.

    python examples/train_draft_heads/train_stopping.py --small runs/small/weights --out runs/heads [--texts 300]

Texts are guided-nano's own greedy answers to prompts of the kind it was trained on; at every place the small model's
likeliest token is right or wrong, which is what the head learns to foresee from the small model's hidden state.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from train_heads import prompts_and_answers
from transformers import AutoModelForCausalLM

from guided.draft import AcceptanceHead, acceptance_examples, fit_acceptance_head, speculate
from guided.hf import load
from guided.hf.language_model import TransformersModel

SEED = 33


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=Path, required=True, help="the small model's folder")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=300)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    loaded = load("nano", device="cpu")
    target = TransformersModel(loaded)
    half = AutoModelForCausalLM.from_pretrained(arguments.small, dtype=torch.float32).eval()
    small = TransformersModel(half, eos_ids=target.eos_ids)
    prompts, _ = prompts_and_answers(loaded.tokenizer, SEED, arguments.texts)
    written = []
    for first in range(0, len(prompts), 50):
        part = prompts[first : first + 50]
        texts, _ = speculate(0, target, part, [None] * len(part), max_tokens=120, greedy=True)
        written += [list(text.tokens) for text in texts]
    found = acceptance_examples(SEED, target, small, prompts, written, greedy=True)
    print(f"{found.accepted.numel()} tokens, {float(found.accepted.mean()):.3f} accepted", flush=True)
    split = int(0.85 * found.accepted.numel())
    head = AcceptanceHead(half.config.hidden_size)
    fit_acceptance_head(head, type(found)(found.hidden[:split], found.accepted[:split]), epochs=8, seed=SEED)
    with torch.inference_mode():
        foreseen = torch.sigmoid(head(found.hidden[split:])) > 0.5
    right = found.accepted[split:] > 0.5
    for name, kind in (("accepted", right), ("refused", ~right)):
        print(f"held out: {float((foreseen == right)[kind].float().mean()):.3f} of {int(kind.sum())} {name} foreseen")
    head.save(arguments.out / "stopping.safetensors")


if __name__ == "__main__":
    main()
