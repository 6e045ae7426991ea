"""Contrastive decoding of the packaged nano against its amateur: execution match on held-out questions.

    python examples/train_experts/nano_effect.py --count 200

The questions are those of ``examples/train_nano/evaluate.py``, on which guided-nano itself is evaluated: their tables
and columns are in no training text of either model.  A statement counts as right if it returns the expected rows in two
random databases.  Greedy decoding without a constraint.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

import torch

from guided.eval.steering.measures import estimate
from guided.hf import SteeringLogitsProcessor, TransformersModel, load
from guided.nano.experts import Expert
from guided.steer import Contrastive

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train_nano"))

from databases import database, same_result
from evaluate import BATCH, Example, examples, generate


def right(example: Example, written: str) -> float:
    assert example.source is not None
    return float(all(same_result(database(example.source, seed), written, example.answer) for seed in (1, 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--alpha", type=float, default=0.1, help="Contrastive's own default")
    parser.add_argument("--beta", type=float, default=0.5, help="Contrastive's own default")
    parser.add_argument("--seed", type=int, help="another set of questions than the one that is reported")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    nano, small = load("nano", device="cpu"), load(Expert.NANO_AMATEUR.path, device="cpu")
    steered = TransformersModel(nano)
    steerer = Contrastive(TransformersModel(small), alpha=arguments.alpha, beta=arguments.beta)
    stream = examples("sql") if arguments.seed is None else examples("sql", arguments.seed)
    chosen = sorted(itertools.islice(stream, arguments.count), key=lambda example: len(example.prompt))
    scores: dict[str, list[float]] = {"nano": [], "amateur": [], "contrastive": []}
    for start in range(0, len(chosen), BATCH):
        batch = chosen[start : start + BATCH]
        processor = SteeringLogitsProcessor([steerer], steered, pad_token_id=nano.tokenizer.pad_token_id)
        for name, loaded, constraint in (
            ("nano", nano, None),
            ("amateur", small, None),
            ("contrastive", nano, lambda batch, tokenizer, processor=processor: processor),
        ):
            written = generate(loaded.model, loaded.tokenizer, batch, constraint)
            scores[name] += [right(example, text) for example, text in zip(batch, written, strict=True)]
    for name, values in scores.items():
        found = estimate(values)
        print(f"{name:12} {found.mean:6.1%} [{found.low:.1%}, {found.high:.1%}]")
    gained = estimate([after - before for before, after in zip(scores["nano"], scores["contrastive"], strict=True)])
    print(f"contrastive less nano {gained.mean:+.1%} [{gained.low:+.1%}, {gained.high:+.1%}]")


if __name__ == "__main__":
    main()
