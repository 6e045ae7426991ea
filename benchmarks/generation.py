"""What a grammar adds to each token of transformers' `generate`, with the model's own time replaced by a sleep.

The model is real, its forward pass is not: it sleeps 5 ms and returns scores whose best token is the next of a given
text, so that every run, constrained or not, takes the same steps and writes the same tokens.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from engines import open_engines
from figures import turns
from maskbench_rows import load_tokenizer
from results import Bar, Progress, Result, Setting, Table, rounded

TITLE = "End to end: what a grammar adds to each token of generate"
ABOUT = "transformers' generate with and without a grammar, 5 ms of sleep for a model"
NEEDS_DATA = False

SLEEP = 0.005

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 80},
        "tags": {"type": "array", "items": {"type": "string"}},
        "price": {"type": "number"},
        "state": {"enum": ["new", "open", "closed"]},
        "text": {"type": "string"},
    },
    "required": ["name", "tags", "price", "state", "text"],
}
VALUE = {
    "name": "A kettle that whistles before it boils",
    "tags": ["kitchen", "steel", "two litres", "blue"],
    "price": 31.75,
    "state": "open",
    "text": "It whistles a little early, which is what its makers meant: nobody waits for water that announces itself. "
    "The handle stays cool, the lid does not fall off, and the sound is that of a small and distant train.",
}


class Scripted:
    """A model whose forward pass sleeps and wants the tokens of ``script`` one after the other."""

    def __init__(self, model: Any, width: int, script: Sequence[int]) -> None:
        import torch

        self.model, self.script = model, list(script)
        generator = torch.Generator().manual_seed(0)
        self.scores = torch.randn(1, 1, width, generator=generator)
        self.began: list[float] = []
        model.forward = self.forward

    def forward(self, input_ids: Any = None, past_key_values: Any = None, **_: Any) -> Any:
        """In place of the model's: one row."""
        from transformers.modeling_outputs import CausalLMOutputWithPast

        self.began.append(time.perf_counter())
        time.sleep(SLEEP)
        position = len(self.began) - 1
        if position:
            self.scores[0, 0, self.script[position - 1]] = 0.0
        self.scores[0, 0, self.script[position]] = 50.0
        return CausalLMOutputWithPast(logits=self.scores, past_key_values=past_key_values)

    def run(self, processors: list[Any]) -> list[float]:
        """Microseconds of each step but the last; raises where another text than the script came out."""
        import torch

        self.began = []
        prompt = torch.tensor([[1, 2, 3]])
        out = self.model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=len(self.script), do_sample=False,
            eos_token_id=self.script[-1], pad_token_id=self.script[-1], logits_processor=processors,
        )  # fmt: skip
        self.scores[0, 0, self.script[-1]] = 0.0
        if out[0, 3:].tolist() != self.script:
            raise AssertionError("constrained generation did not write the text that the model wanted")
        return [1e6 * (after - before) for before, after in zip(self.began, self.began[1:])]


class PeerProcessor:
    """A peer's matcher as a logits processor for one row: take the last token, fill the mask, apply it in place."""

    def __init__(self, compiled: Any, row: Any) -> None:
        import torch
        import xgrammar

        self.matcher = compiled.start()
        self.row = torch.from_numpy(np.atleast_2d(np.asarray(row)).view(np.int32))
        self.apply = xgrammar.apply_token_bitmask_inplace
        self.begun = False

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if self.begun:
            self.matcher.step(int(input_ids[0, -1]))
        self.begun = True
        self.matcher.mask()
        self.apply(scores, self.row)
        return scores


class Timed:
    """A processor with the time that each of its calls took."""

    def __init__(self, processor: Any, times: list[float]) -> None:
        self.processor, self.times = processor, times

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        began = time.perf_counter()
        masked = self.processor(input_ids, scores)
        self.times.append(1e6 * (time.perf_counter() - began))
        return masked


def processor_maker(engine: Any, tokens: int) -> Callable[[Any], Any]:
    """From a schema to a new processor, in the way that the engine's users get one."""
    if engine.name == "guided":
        from guided.hf import GuidedLogitsProcessor

        return lambda schema: GuidedLogitsProcessor(engine.compile(schema).constraint, max_new_tokens=tokens)
    return lambda schema: PeerProcessor(engine.compile(schema), engine.row)


def measure(setting: Setting, progress: Progress) -> Result:
    """The part of the suite.

    The same text is generated several times by each engine in turns; per step the least of those times is taken, then
    the mean over the steps.  The first text of each grammar is counted apart.
    """
    import torch
    from transformers import AutoModelForCausalLM

    from guided.nano import MODEL_PATH

    torch.set_num_threads(1)
    passes = 4 if setting.quick else 12
    tables, bars = [], []
    model = AutoModelForCausalLM.from_pretrained(setting.model or MODEL_PATH, local_files_only=True).eval()
    widths = {"the tokenizer given": load_tokenizer(setting.tokenizer)}
    if not setting.quick:
        widths["the model's own tokenizer"] = load_tokenizer(setting.model or MODEL_PATH)
    for which, tokenizer in widths.items():
        script = [*tokenizer.encode(json.dumps(VALUE), add_special_tokens=False), tokenizer.eos_token_id]
        scripted = Scripted(model, len(tokenizer), script)
        engines = open_engines(setting.engines, tokenizer)
        makers = {engine.name: processor_maker(engine, len(script) + 40) for engine in engines}
        kept = {name: SCHEMA if name == "outlines-core" else {**SCHEMA, "title": "kept"} for name in makers}
        names = ["none", *makers]
        steps: dict[str, list[list[float]]] = {name: [] for name in names}
        calls: dict[str, list[list[float]]] = {name: [] for name in names}
        first: dict[str, list[list[float]]] = {name: [] for name in makers if name != "outlines-core"}
        failed: dict[str, str] = {}
        with progress.steps(which, (passes + 1) * len(names)) as step:
            for number in range(passes + 1):
                for name in turns(names, number):
                    step(name)
                    if name in failed:
                        continue
                    times: list[float] = []
                    try:
                        found = scripted.run([makers[name](kept[name])] if name != "none" else [])
                        if name != "none":
                            # In a run of its own: the wrapper costs a step 30 us.
                            scripted.run([Timed(makers[name](kept[name]), times)])
                        if name in first:
                            new = makers[name]({**SCHEMA, "title": f"number {number}"})
                            first[name].append(scripted.run([new]))
                    except Exception as error:  # a peer that refuses the schema
                        if name in ("none", "guided"):
                            raise
                        failed[name] = f"{type(error).__name__}: {error}"[:200]
                        continue
                    if number:
                        steps[name].append(found)
                        calls[name].append(times)
        least = {name: _least(times) for name, times in steps.items() if times}
        base = least["none"]
        rows = []
        for name, each in least.items():
            again = statistics.median(t for one in steps[name] for t in one)
            new = _least(first[name][1:]) if name in first else None
            inside = _least(calls[name]) if name != "none" else None
            middle = statistics.median(t for one in calls[name] for t in one) if name != "none" else None
            rows.append([
                name, *(rounded(value, 4) for value in (each, again)), rounded(each - base), rounded(each / base - 1),
                rounded(inside), rounded(middle), None if new is None else rounded(new - base),
            ])  # fmt: skip
        columns = ["engine", "a step", "a step, median", "over none", "share over none", "in the processor",
                   "in the processor, median", "over none, each grammar's first text"]  # fmt: skip
        note = f"{len(script)} tokens, scores of width {len(tokenizer)}, {1000 * SLEEP:g} ms of sleep a step. "
        note += "Where it does not say median: the least of several runs at each step, then the mean over the steps."
        if failed:
            note += " Refused: " + "; ".join(f"{name}: {why}" for name, why in failed.items())
        tables.append(Table(f"{which}: us", columns, rows, note))
        if "guided" in least:
            over = least["guided"] - base
            bars.append(Bar(f"{which}: constrained over unconstrained, a token", rounded(over / base), 0.03, "share"))
            bars.append(Bar(f"{which}: constrained less unconstrained, a token", rounded(over), 150, "us"))
            bars.append(Bar(f"{which}: in the processor, least", rounded(_least(calls["guided"])), 150, "us"))
    return Result(tables, [], bars)


def _least(runs: Sequence[Sequence[float]]) -> float:
    """The least time of each step over the runs, then the mean over the steps."""
    return float(np.minimum.reduce([np.asarray(run) for run in runs]).mean())
