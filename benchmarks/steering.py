"""What steering costs beside the plain models that it runs, and whether a step's cost grows with the text.

Random Llama models, so nothing is downloaded; times do not depend on the weights.  All variants take turns, step by
step, in one process, and every figure is a ratio of medians of that run; attention grows as in plain rows as long.
Lines with a bound are the three promises of docs/STEERING.md; the others say what is paid for what a method computes.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from guided.hf.language_model import TransformersModel
from guided.lm import LanguageModel
from guided.steer import (
    RAD,
    ClassifierFree,
    Contrastive,
    ContrastiveSearch,
    DeCoRe,
    DoLa,
    ModelReward,
    Momentum,
    Replaced,
    SelfDebiasing,
    Stack,
)

VOCABULARY = 16_000
SHORT, LONG = 100, 1000
WARM_UP = 3
SAME_ROWS = {"cfg, negative prompt": "plain, 2 rows", "self-debiasing, 2 prompts": "plain, 3 rows"}
"""Methods whose prompts are rows of one pass: their attention grows as that of a plain batch of these rows."""


def llama(hidden: int, layers: int, seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=max(hidden // 64, 1),
        max_position_embeddings=4096,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config).eval()


def parameters(model: LlamaForCausalLM) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def prompt(length: int, seed: int) -> list[int]:
    return torch.randint(3, VOCABULARY, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def stepper(model: LanguageModel, prompts: list[list[int]]) -> Callable[[int], float]:
    """A function that appends one token to every row, looks at the scores, and gives the seconds that took."""
    sequences = model.start(prompts)
    sequences.last  # noqa: B018

    def step(token: int) -> float:
        began = time.perf_counter()
        sequences.extend([[token]] * len(prompts))
        sequences.last.logits.argmax(-1).tolist()
        return time.perf_counter() - began

    return step


def measured(variants: dict[str, Callable[[int], float]], steps: int) -> dict[str, float]:
    """Median seconds a step of each variant; they take turns, and each goes first as often as the others."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    for number in range(steps + WARM_UP):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            seconds = variants[name](3 + number)
            if number >= WARM_UP:
                times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items()}


def methods(amateur: LanguageModel) -> dict[str, Any]:
    heads = ((0, 0), (3, 1))
    return {
        "contrastive": Contrastive(amateur),
        "cfg, negative prompt": ClassifierFree(negative_prompt=Replaced(prompt(SHORT, 9))),
        "self-debiasing, 2 prompts": SelfDebiasing((Replaced(prompt(SHORT, 8)), Replaced(prompt(SHORT, 7)))),
        "dola": DoLa(),
        "decore": DeCoRe(heads),
        "momentum": Momentum(),
        "contrastive search, k=4": ContrastiveSearch(),
        "rad, causal reward model, k=20": RAD(ModelReward(lambda hidden: torch.sigmoid(hidden[:, 0]), amateur)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30, help="steps of each round (30)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median ratio is shown (3)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=512, help="width of the large model (512)")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--out", type=Path, help="all figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    big, small = llama(options.hidden, options.layers, 0), llama(64, 4, 1)
    base, amateur = TransformersModel(big), TransformersModel(small)
    one, two = prompt(SHORT, 0), prompt(SHORT, 9)
    rounds: list[dict[str, float]] = []
    for _ in range(options.rounds):
        ratios: dict[str, float] = {}
        steered = {name: Stack([steerer]).over(base) for name, steerer in methods(amateur).items()}
        far = prompt(LONG, 0)
        variants = {name: stepper(model, [one]) for name, model in steered.items()}
        variants |= {f"{name} at {LONG}": stepper(model, [far]) for name, model in steered.items()}
        variants["plain"] = stepper(base, [one])
        variants[f"plain at {LONG}"] = stepper(base, [far])
        variants["amateur"] = stepper(amateur, [one])
        three = prompt(SHORT, 8)
        variants["plain, 2 rows"] = stepper(base, [one, two])
        variants["plain, 3 rows"] = stepper(base, [one, two, three])
        variants[f"plain, 2 rows at {LONG}"] = stepper(base, [far, two])
        variants[f"plain, 3 rows at {LONG}"] = stepper(base, [far, two, three])
        seconds = measured(variants, options.steps)
        del variants
        ratios["contrastive / (model + amateur)"] = seconds["contrastive"] / (seconds["plain"] + seconds["amateur"])
        ratios["cfg / batch of two"] = seconds["cfg, negative prompt"] / seconds["plain, 2 rows"]
        ratios["self-debiasing, 2 prompts / batch of three"] = (
            seconds["self-debiasing, 2 prompts"] / seconds["plain, 3 rows"]
        )
        for name in steered:
            ratios[f"{name} / plain"] = seconds[name] / seconds["plain"]
        growth = {
            rows: seconds[f"{rows} at {LONG}"] - seconds[rows] for rows in ("plain", "plain, 2 rows", "plain, 3 rows")
        }
        ratios[f"plain: {LONG} / {SHORT} tokens"] = seconds[f"plain at {LONG}"] / seconds["plain"]
        for name in steered:
            attention = growth[SAME_ROWS.get(name, "plain")]
            ratios[f"{name}: ({LONG} - attention) / {SHORT} tokens"] = (
                seconds[f"{name} at {LONG}"] - attention
            ) / seconds[name]
        rounds.append(ratios)
    bounds = {"contrastive / (model + amateur)": 1.25, "cfg / batch of two": 1.15}
    print(f"large {parameters(big):,} parameters, small {parameters(small):,}, {options.threads} thread(s)")
    for key in rounds[0]:
        values = sorted(each[key] for each in rounds)
        bound = bounds.get(key, 1.3 if "attention" in key else None)
        shown = "" if bound is None else f"  promised at most {bound:.2f}"
        print(f"{key:55} {statistics.median(values):6.2f}  ({values[0]:.2f} to {values[-1]:.2f}){shown}")
    if options.out:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip()
        about = {
            "commit": commit,
            "machine": platform.processor() or platform.machine(),
            "torch": torch.__version__,
            "threads": options.threads,
            "steps": options.steps,
        }
        options.out.write_text(json.dumps({"about": about, "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
