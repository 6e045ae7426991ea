"""Trains EAGLE-1's and EAGLE-3's heads on guided-nano, which stays as it is; minutes on one core, seeded.

    python examples/train_draft_heads/train_eagle.py --out runs/eagle [--kinds eagle eagle3] [--texts 1200] [--epochs 2]

Both learn from the same texts as Medusa's and Hydra's heads (`train_heads.py`): prompts and answers of the kind that
guided-nano was trained on.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from train_heads import SEED, options, prompts_and_answers, reporter

from guided.draft import BlockSizes, DraftLoss, Eagle3Head, EagleHead, feature_examples, fit_features
from guided.hf import load
from guided.hf.draft_heads import base_of
from guided.hf.language_model import TransformersModel

BLOCKS = (2, 3, 5)
"""Low, middle and high of guided-nano's six blocks: EAGLE-3's own rule, made for longer models, names 2, 3 and 3."""


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--kinds", nargs="+", choices=["eagle", "eagle3"], default=["eagle", "eagle3"])
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--loss", choices=[loss.value for loss in DraftLoss], default=DraftLoss.FORWARD_KL.value)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--begin", type=Path, help="a folder with a head of EAGLE-1 to go on with")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    loaded = load("nano", device=arguments.device)
    model = TransformersModel(loaded)
    base = base_of(model)
    sizes = BlockSizes.of(loaded.model.config.to_dict())
    began = time.process_time()
    prompts, answers = prompts_and_answers(loaded.tokenizer, arguments.seed, arguments.texts)
    print(f"{len(answers)} texts, {time.process_time() - began:.0f} s", flush=True)
    for kind in arguments.kinds:
        torch.manual_seed(arguments.seed)
        blocks = BLOCKS if kind == "eagle3" else ()
        found = feature_examples(model, prompts, answers, blocks, batch=arguments.batch, dtype=torch.float16)
        print(f"{len(found)} texts read, {time.process_time() - began:.0f} s", flush=True)
        if kind == "eagle":
            head = EagleHead(sizes, base)
            if arguments.begin:
                head.load_state_dict(load_file(str(arguments.begin / "model.safetensors")))
        else:
            head = Eagle3Head(sizes, base, len(blocks) * sizes.hidden_size, blocks=blocks)
            with torch.no_grad():
                head.lm_head.weight.copy_(base.unembeddings)
        head.to(arguments.device)
        fit_features(
            head, found, base.unembeddings, loss=DraftLoss(arguments.loss), steps=arguments.steps,
            regression=1.0 if kind == "eagle" else 0.0, epochs=arguments.epochs, batch=arguments.batch,
            seed=arguments.seed, done=reporter(kind),
        )  # fmt: skip
        head.save(arguments.out / kind)
        print(kind, f"{time.process_time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
