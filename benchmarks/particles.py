"""64 particles with one prompt beside a plain batch of 64 of transformers, in one interleaved run, as ratios.

    python benchmarks/particles.py [--rows 64] [--prompt 200] [--steps 40] [--rounds 5] [--model nano|llama|FOLDER]

Both sides read the same tokens, compute the same logits and take turns after every step.  The plain side does what
transformers' `generate` does: a prefill of the whole batch, then one token a row and step with its `DynamicCache`.
Ratios of CPU time (of wall time on an accelerator), ours by plain:

- ``whole``: the prompt and the steps; ``after_prompt``: the steps alone;
- ``resampled``: the steps, every eighth of which replaces a quarter of the rows (plain: `reorder_cache`);
- ``ragged``: the steps with prompts of 64 lengths, which plain pads on the left.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from guided.hf import load
from guided.hf.language_model import Caching, TransformersModel

LLAMA = {
    "vocab_size": 32000,
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}
"""A random model of 56 million parameters: the time does not depend on the weights."""


@dataclass(frozen=True)
class Task:
    """What both sides read."""

    prompts: list[list[int]]
    tokens: NDArray[np.int64]
    """``[steps, rows]``."""
    ancestors: list[list[int] | None]
    """For each step the resampling after it."""


def ours(model: LlamaForCausalLM, task: Task) -> Iterator[None]:
    """The prompts, then the steps, pausing after each."""
    sequences = TransformersModel(model, caching=Caching.RAGGED).start(task.prompts)
    last = sequences.last
    yield
    for step, chosen in zip(task.tokens.tolist(), task.ancestors, strict=True):
        sequences.extend([[token] for token in step])
        last = sequences.last
        if chosen is not None:
            sequences.select(chosen)
        yield
    assert last.logits.shape[0] == len(task.prompts)


def plain(model: LlamaForCausalLM, task: Task) -> Iterator[None]:
    """The same with transformers alone."""
    longest = max(map(len, task.prompts))
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in task.prompts], device=model.device)
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in task.prompts], device=model.device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    with torch.inference_mode():
        model(ids, attention_mask=mask, position_ids=positions, past_key_values=cache, logits_to_keep=1).logits.float()
    yield
    positions = positions[:, -1:]
    for step, chosen in zip(task.tokens, task.ancestors, strict=True):
        with torch.inference_mode():
            ids = torch.tensor(step, device=model.device)[:, None]
            mask = torch.cat([mask, torch.ones_like(ids)], 1)
            positions = positions + 1
            model(ids, attention_mask=mask, position_ids=positions, past_key_values=cache).logits[:, -1].float()
            if chosen is not None:
                cache.reorder_cache(torch.tensor(chosen, device=model.device))
        yield


def interleaved(model: LlamaForCausalLM, task: Task, turn: int) -> list[tuple[float, float]]:
    """Seconds of the prompt and of the steps, of ours and of plain, which take turns after every step."""
    runs = [ours(model, task), plain(model, task)]
    seconds = [[0.0, 0.0], [0.0, 0.0]]
    for step in range(len(task.tokens) + 1):
        for side in (0, 1) if (step + turn) % 2 else (1, 0):
            begin = now(model.device)
            next(runs[side])
            seconds[side][step > 0] += now(model.device) - begin
    return [(prompt, steps) for prompt, steps in seconds]


def now(device: torch.device) -> float:
    """Seconds of this process on the CPU, which other processes do not add to; of the clock on an accelerator."""
    if device.type != "cuda":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def tasks(rows: int, length: int, steps: int, width: int) -> dict[str, Task]:
    """The same tokens with one prompt, with resampling, and with prompts of many lengths."""
    rng = np.random.default_rng(0)
    prompt = rng.integers(3, width, length).tolist()
    tokens = rng.integers(3, width, (steps, rows))
    never: list[list[int] | None] = [None] * steps
    resampling = list(never)
    for step in range(7, steps, 8):
        chosen = np.arange(rows)
        lost = rng.choice(rows, rows // 4, replace=False)
        chosen[lost] = rng.choice(np.setdiff1d(chosen, lost), lost.size)
        resampling[step] = chosen.tolist()
    cut = np.linspace(length // 2, length, rows).astype(int)
    return {
        "one": Task([prompt] * rows, tokens, never),
        "resampled": Task([prompt] * rows, tokens, resampling),
        "ragged": Task([rng.integers(3, width, n).tolist() for n in cut], tokens, never),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=200)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.model == "llama":
        torch.manual_seed(0)
        model = LlamaForCausalLM(LlamaConfig(**LLAMA)).eval().to(options.device)
    else:
        model = load(options.model, device=options.device).model
    given = tasks(options.rows, options.prompt, options.steps, model.config.vocab_size)
    ratios: dict[str, list[float]] = {"whole": [], "after_prompt": [], "resampled": [], "ragged": []}
    for number in range(options.rounds + 1):
        took = {}
        for name, task in given.items():
            gc.collect()
            took[name] = interleaved(model, task, number)
        if number == 0:
            continue  # the first round warms up
        (prompt, steps), (plain_prompt, plain_steps) = took["one"]
        ratios["whole"].append((prompt + steps) / (plain_prompt + plain_steps))
        for ratio, name in (("after_prompt", "one"), ("resampled", "resampled"), ("ragged", "ragged")):
            ratios[ratio].append(took[name][0][1] / took[name][1][1])
    found = {
        name: {"median": round(statistics.median(r), 2), "all": np.round(r, 2).tolist()} for name, r in ratios.items()
    }
    print(json.dumps({**vars(options), "threads": torch.get_num_threads(), "ours by plain": found}))


if __name__ == "__main__":
    main()
