"""Wall-clock of drafts on a target whose forward pass is a real one: a Llama with random weights, run for its time.

    python benchmarks/speculation_clock.py [--texts 12] [--set records|familiar] [--hidden 1024] [--layers 16]
        [--only NAME ...]

Every pass of guided-nano, which decides what is written and accepted, is accompanied by a pass of the large model over
as many positions, behind a cache of 256 tokens; its logits are not used.  So the time is that of a model of its size,
and the texts and the share of accepted drafts are those of guided-nano, a model that does the task.  Prompts are read
by the small model alone: what is measured is decoding.  Plain constrained decoding, drafts, and transformers' own
greedy search and prompt lookup under the same grammar take turns on every text.

The first lines say what was run and what a pass of the large model costs at several numbers of positions, before and
after.  ``speed`` is relative to plain constrained decoding by the clock, ``processor`` the same by the time that this
process ran: other work on the machine is in the first and not in the second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

import guided
from guided.draft import Drafting, Fixed, PromptLookup, auto
from guided.hf import load
from guided.hf.draft_measurement import PLAIN, measure_drafts

sys.path.insert(0, str(Path(__file__).resolve().parent))

PAST = 256
"""Columns of the large model's cache: a prompt of usual length."""
LONGEST = 100
"""Positions of a pass that is still decoding; longer ones read prompts."""


class Target:
    """The large model."""

    def __init__(self, hidden: int, layers: int, dtype: torch.dtype) -> None:
        config = LlamaConfig(
            vocab_size=8192,
            hidden_size=hidden,
            intermediate_size=11 * hidden // 4,
            num_hidden_layers=layers,
            num_attention_heads=hidden // 64,
            max_position_embeddings=2048,
        )
        torch.manual_seed(0)
        self.model = LlamaForCausalLM(config).to(dtype).eval()
        self.cache = DynamicCache(config=config)
        self.run(PAST)
        self.n_parameters = sum(parameter.numel() for parameter in self.model.parameters())

    def run(self, n: int) -> None:
        """One pass over so many positions behind the cache."""
        with torch.inference_mode():
            self.model(torch.zeros((1, n), dtype=torch.long), past_key_values=self.cache, use_cache=True)
        excess = self.cache.get_seq_length() - PAST
        if excess:
            self.cache.crop(-excess)

    def accompany(self, small: torch.nn.Module) -> None:
        """Run beside each pass of the small model that is not about a prompt."""

        def begin(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
            if ids.shape[1] <= LONGEST:
                self.run(int(ids.shape[1]))

        small.register_forward_pre_hook(begin, with_kwargs=True)

    def costs(self) -> dict[int, float]:
        """Milliseconds of this process for a pass at several numbers of positions, the median of five."""
        found = {}
        for n in (1, 4, 8, 16, 32):
            seconds = []
            for _ in range(5):
                began = time.process_time()
                self.run(n)
                seconds.append(time.process_time() - began)
            found[n] = round(1000 * statistics.median(seconds), 1)
        return found


def main() -> None:
    from speculation import cases

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=12)
    parser.add_argument("--set", choices=["records", "familiar"], default="familiar")
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--float32", action="store_true", help="instead of bfloat16")
    parser.add_argument("--only", nargs="*", help="of the drafts, those whose names hold one of these")
    parser.add_argument("--max-tokens", type=int, default=160)
    options = parser.parse_args()
    torch.set_num_threads(1)
    loaded = load("nano", device="cpu")
    chosen = cases(options.set, options.texts)
    prompts = [loaded.tokenizer(prompt)["input_ids"] for prompt, _ in chosen]
    grammars = [guided.compile(grammar, loaded.vocabulary) for _, grammar in chosen]
    target = Target(options.hidden, options.layers, torch.float32 if options.float32 else torch.bfloat16)
    print(json.dumps({"run": vars(options), "parameters": target.n_parameters, "pass_ms": target.costs()}))
    target.accompany(loaded.model)
    ways = {
        "auto": auto(),
        "all without a model, 8 nodes": Drafting(auto().drafter, Fixed(8)),
        "all without a model, 16 nodes": Drafting(auto().drafter, Fixed(16)),
        "prompt lookup": Drafting(PromptLookup(), Fixed(10)),
    }
    ways = {name: way for name, way in ways.items() if not options.only or any(word in name for word in options.only)}
    lines = measure_drafts(loaded, prompts, grammars, ways, max_tokens=options.max_tokens)
    plain = next(line for line in lines if line.name == PLAIN)
    print(f"{'':32} passes/token  speed  processor  different")
    for line in lines:
        speed = plain.seconds / plain.tokens * line.tokens / line.seconds
        busy = plain.processor_seconds / plain.tokens * line.tokens / line.processor_seconds
        print(
            f"{line.name:32} {line.passes_per_token:12.3f} {speed:6.2f} {busy:10.2f} {line.different:6d}/{line.texts}"
        )
    print(json.dumps({"pass_ms": target.costs()}))


if __name__ == "__main__":
    main()
