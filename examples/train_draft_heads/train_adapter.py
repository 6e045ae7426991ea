"""Trains Kangaroo's adapter after some of guided-nano's blocks, which stay as they are; two minutes, seeded.

    python examples/train_draft_heads/train_adapter.py --out runs/adapter-3.safetensors --blocks 3

It learns guided-nano's law along prompts and answers of the kind that guided-nano was trained on.
"""

from __future__ import annotations

import torch
from train_heads import SEED, options, prompts_and_answers, reporter

from guided.draft import DraftLoss, distil
from guided.hf import load
from guided.hf.adapted_exit import AdaptedExit
from guided.hf.language_model import TransformersModel
from guided.hf.skipped_layers import SkippedLayers


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--blocks", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    loaded = load("nano", device="cpu")
    model = TransformersModel(loaded)
    prompts, answers = prompts_and_answers(loaded.tokenizer, SEED, arguments.texts)
    made = AdaptedExit(SkippedLayers(model), arguments.blocks)
    distil(
        made.adapter,
        made.scoring,
        model,
        prompts,
        answers,
        loss=DraftLoss.FORWARD_KL,
        epochs=arguments.epochs,
        rate=2e-3,
        seed=SEED,
        done=reporter(f"after {arguments.blocks} blocks"),
    )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    made.save(arguments.out)


if __name__ == "__main__":
    main()
