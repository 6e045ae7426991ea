"""Trains prompt tokens (PPD) of guided-nano, which stays as it is; minutes on one core, seeded.

    python examples/train_draft_heads/train_prompts.py --out runs/prompts.safetensors [--tokens 3] [--texts 1200]

They learn from the same texts as Medusa's heads (`train_heads.py`), and are calibrated on others.
"""

from __future__ import annotations

import time

import torch
from train_heads import CALIBRATION_SEED, SEED, options, prompts_and_answers, reporter

from guided.hf import load
from guided.hf.language_model import TransformersModel
from guided.hf.prompt_tokens import PromptTokens


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--tokens", type=int, default=3)
    parser.add_argument("--rate", type=float, default=1e-2)
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    loaded = load("nano", device="cpu")
    prompted = PromptTokens(TransformersModel(loaded), arguments.tokens)
    began = time.process_time()
    texts = prompts_and_answers(loaded.tokenizer, SEED, arguments.texts)
    prompted.fit(*texts, epochs=arguments.epochs, rate=arguments.rate, seed=SEED, done=reporter("prompts"))
    prompted.calibrate(*prompts_and_answers(loaded.tokenizer, CALIBRATION_SEED, 120))
    prompted.save(arguments.out)
    for number, accuracies in enumerate(prompted.accuracies, 1):
        print(number, [round(share, 3) for share in accuracies[:4]])
    print(f"{time.process_time() - began:.0f} s")


if __name__ == "__main__":
    main()
