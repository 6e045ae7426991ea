"""What the lattice of a canvas costs: beside a denoiser's step, and as positions, states and the vocabulary grow.

    python benchmarks/canvases.py --tokenizer tokenizers/llama2 --tokenizer tokenizers/llama3 --out canvases

For each tokenizer and grammar: the first canvas, for which all states behind tokens are found, then the median over
canvases of other distributions (later steps of a denoiser, or later texts) of making the lattice, of its likeliest
text, of one sample and of all marginals, in milliseconds a position.  Distributions are made up: the softmax of normal
scores with a deviation of 4.  Beside them one step of a masked language model of 110 million parameters (random
weights, the shape of BERT with the ids of the tokenizer).  All on one thread, and in processor time, which a busy
machine changes less than a clock's; ``elapsed`` is the clock's for making the lattice and the likeliest text.  Writes
JSON, and plots where matplotlib is installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from figures import machine
from numpy.typing import NDArray
from report import save_plot
from results import Curves
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

import guided
from guided.diffusion.lattice import Lattice
from guided.grammar.ir import Grammar

LENGTH = 128


def record() -> Grammar:
    """An object of bounded strings, a number and a list."""
    bounded = {"type": "string", "maxLength": 40}
    fields = {"a": bounded, "b": bounded, "c": {"type": "number"}, "d": {"type": "array", "items": {"type": "string"}}}
    schema = {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
    return guided.json_schema(schema)


def strings(n: int, longest: int | None = None) -> Grammar:
    """An object of ``n`` strings."""
    kind = {"type": "string"} if longest is None else {"type": "string", "maxLength": longest}
    names = [f"field{i}" for i in range(n)]
    schema = {"type": "object", "properties": dict.fromkeys(names, kind), "required": names}
    return guided.json_schema({**schema, "additionalProperties": False})


GRAMMARS: dict[str, Callable[[], Grammar]] = {
    "words and a number": lambda: guided.regex("[a-z]{1,60} [0-9]+"),
    "an object of 3 strings": lambda: strings(3),
    "an object of 6 strings": lambda: strings(6),
    "an object of 2 strings up to 40": lambda: strings(2, 40),
    "2 strings up to 40, a number and a list": record,
}


def distributions(seed: int, length: int, width: int) -> NDArray[np.float32]:
    """Logarithms of made-up distributions."""
    scores = 4 * np.random.default_rng(seed).normal(size=(length, width)).astype(np.float32)
    scores -= scores.max(1, keepdims=True)
    found: NDArray[np.float32] = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    return found


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of processor time."""
    began = time.process_time()
    found = run()
    return 1e3 * (time.process_time() - began), found


def cost(grammar: Grammar, vocabulary: guided.Vocabulary, length: int, repeats: int) -> dict[str, Any]:
    """Milliseconds a position."""
    constraint = guided.compile(grammar, vocabulary)
    first, _ = timed(lambda: Lattice(constraint, distributions(0, length, vocabulary.size)))
    times: dict[str, list[float]] = {"make": [], "best": [], "sample": [], "marginals": [], "elapsed": []}
    for seed in range(1, repeats + 1):
        logp = distributions(seed, length, vocabulary.size)
        began = time.perf_counter()
        took, lattice = timed(lambda logp=logp: Lattice(constraint, logp))
        times["make"].append(took)
        times["best"].append(timed(lattice.best)[0])
        times["elapsed"].append(1e3 * (time.perf_counter() - began))
        times["sample"].append(timed(lambda lattice=lattice, seed=seed: lattice.sample(seed))[0])
        times["marginals"].append(timed(lambda lattice=lattice: [lattice.marginal(i).max() for i in range(length)])[0])
    return {
        "first": round(first / length, 3),
        **{name: round(statistics.median(each) / length, 3) for name, each in times.items()},
        "least_make_and_best": round((min(times["make"]) + min(times["best"])) / length, 3),
        "states": round(lattice.n_states / length),
        "edges": round(lattice.n_edges / length),
        "bound": lattice.bound,
    }


def step(width: int, repeats: int) -> float:
    """Milliseconds of one pass of the model over the canvas, the median."""
    model = BertForMaskedLM(BertConfig(vocab_size=width)).eval()
    ids = torch.randint(0, width, (1, LENGTH))
    with torch.inference_mode():
        model(ids)
        return statistics.median(timed(lambda: model(ids).logits)[0] for _ in range(repeats))


def smaller(vocabulary: guided.Vocabulary, n: int) -> guided.Vocabulary:
    """The single bytes and the first tokens of a vocabulary, ``n`` together, and an end of text."""
    texts = [bytes([byte]) for byte in range(256)]
    seen = {*texts}
    for token in range(vocabulary.size):
        text = vocabulary.token_bytes(token)
        if len(texts) == n:
            break
        if text and text not in seen:
            seen.add(text)
            texts.append(text)
    return guided.Vocabulary.from_tokens([*texts, None], eos_ids=[len(texts)])


GROWING = {"positions": "positions", "states": "states a position", "vocabulary": "ids"}
"""What grows, and what the axis says."""


def growth(vocabulary: guided.Vocabulary, repeats: int) -> dict[str, list[list[float]]]:
    """Milliseconds a canvas to make its lattice and find the likeliest text, as one thing grows."""

    def line(cases: list[tuple[float, Grammar, guided.Vocabulary, int]], by_states: bool = False) -> list[list[float]]:
        points = []
        for x, grammar, of, length in cases:
            found = cost(grammar, of, length, repeats)
            points.append([found["states"] if by_states else x, length * (found["make"] + found["best"])])
        return points

    lengths = [16, 32, 64, 128, 256]
    sizes = sorted({n for n in (1000, 4000, 16_000, 64_000) if n < vocabulary.size} | {vocabulary.size})
    return {
        "positions": line([(n, strings(3), vocabulary, n) for n in lengths]),
        "states": line([(n, strings(n), vocabulary, LENGTH) for n in (1, 2, 4, 8)], True),
        "vocabulary": line([(n, strings(3), smaller(vocabulary, n), LENGTH) for n in sizes]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, action="append", required=True, help="a tokenizer's folder")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    facts: dict[str, Any] = {"machine": machine(), "positions": LENGTH, "tokenizers": {}}
    grown: dict[str, dict[str, list[list[float]]]] = {what: {} for what in GROWING}
    for path in options.tokenizer:
        vocabulary = guided.Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(path))
        model = step(vocabulary.size, options.repeats)
        rows = {name: cost(make(), vocabulary, LENGTH, options.repeats) for name, make in GRAMMARS.items()}
        for name, row in rows.items():
            row["share_of_step"] = round(LENGTH * (row["make"] + row["best"]) / model, 3)
            print(path.name, name, row)
        lines = growth(vocabulary, max(options.repeats // 2, 1))
        for what, points in lines.items():
            grown[what][f"{vocabulary.size:,} ids"] = points
        facts["tokenizers"][path.name] = {
            "ids": vocabulary.size, "step_ms": round(model, 1), "grammars": rows, "growth": lines,
        }  # fmt: skip
        print(path.name, f"one step of the model: {model:.0f} ms")
    for what, by_vocabulary in grown.items():
        title = f"Lattice and likeliest text: {GROWING[what]}"
        curves = Curves(title, GROWING[what], "processor ms a canvas", by_vocabulary)
        save_plot(curves, options.out / f"canvases-{what}.png")
    (options.out / "canvases.json").write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
