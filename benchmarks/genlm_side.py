"""The other side of `genlm_control.py`: answers requests with genlm-control.  Not run by hand.

A line of JSON on standard input is a problem or a seed; a line on standard output is the answer.  Where this
interpreter can import guided as well, a condition can be guided's constraint, wrapped as a potential of genlm-control.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
import warnings
from typing import Any

import torch
from genlm.backend.llm import AsyncTransformer
from genlm.control import AWRS, BoolCFG, BoolFSA, Potential, PromptedLLM
from genlm.control.constant import EOS


class Counting(AWRS):
    """Counts the questions about single tokens."""

    asked = 0

    async def _accept(self, context: Any, token: Any, verbosity: int = 0) -> Any:
        self.asked += 1
        return await super()._accept(context, token, verbosity)


class Wrapped(Potential):
    """guided's constraint as a Boolean potential over the model's own tokens."""

    def __init__(self, constraint: Any, vocabulary: list[Any]) -> None:
        self.constraint = constraint
        self.states: dict[tuple[int, ...], int] = {(): constraint.start}
        super().__init__(vocabulary)

    def state(self, context: list[Any]) -> int:
        """The constraint's state; every context's beginning was asked about before."""
        ids = tuple(token.token_id for token in context)
        found = self.states.get(ids)
        if found is None:
            found = self.states[ids] = self.constraint.advance(self.state(context[:-1]), ids[-1])
        return found

    async def prefix(self, context: list[Any]) -> float:
        return 0.0 if self.state(context) else -math.inf

    async def complete(self, context: list[Any]) -> float:
        state = self.state(context)
        return 0.0 if state and self.constraint.is_accepting(state) else -math.inf


def condition_for(problem: dict[str, Any], model: PromptedLLM, native: bool) -> Any:
    """The problem's condition over the model's tokens."""
    if native:
        if problem["kind"] == "regex":
            return BoolFSA.from_regex(problem["grammar"]).coerce(model, f=b"".join)
        return BoolCFG.from_lark(problem["grammar"]).coerce(model, f=b"".join)
    import guided

    make = guided.regex if problem["kind"] == "regex" else guided.lark
    vocabulary = guided.Vocabulary.from_tokenizer(model.model.tokenizer, eos_ids=problem["eos_ids"])
    return Wrapped(guided.Constraint(make(problem["grammar"]), vocabulary), list(model.vocab))


def main() -> None:
    """Serve until standard input ends."""
    warnings.simplefilter("ignore")
    # The environment limits the libraries that read it (see `ONE_THREAD` in genlm_control.py); torch has its own say.
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    path, particles = sys.argv[1], int(sys.argv[2])
    # Its default waits 20 ms for more queries before each pass; here a pass begins as soon as all particles have asked.
    llm = AsyncTransformer.from_name(
        path, hf_opts={"torch_dtype": "float32", "device_map": None}, batch_size=particles, timeout=0.001
    )
    models: dict[tuple[int, ...], PromptedLLM] = {}
    problem: dict[str, Any] = {}
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            if "problem" in request:
                problem = request["problem"]
                ends = tuple(problem["eos_ids"])
                if ends not in models:
                    names = {llm.byte_vocab[token].byte_string for token in ends}
                    models[ends] = PromptedLLM(llm, eos_byte_strings=sorted(names))
                model = models[ends]
                model.prompt_ids = problem["prompt"]
                begin = time.perf_counter()
                condition = condition_for(problem, model, request["native"])
                answer = {"seconds": time.perf_counter() - begin}
            else:
                llm.clear_cache()
                sampler = Counting(model, condition, seed=request["seed"])
                begin = time.perf_counter()
                llm.cache_kv(problem["prompt"])
                run = sampler.smc(n_particles=particles, ess_threshold=0.5, max_tokens=problem["max_tokens"])
                found = asyncio.run(asyncio.wait_for(run, request["limit"]))
                seconds = time.perf_counter() - begin
                tokens = sum(len(context) for context, _ in found)
                texts: dict[str, float] = {}
                for (context, _), weight in zip(found, found.normalized_weights, strict=True):
                    if context and context[-1] is EOS:
                        text = b"".join(bytes(token) for token in context[:-1]).decode("utf-8", "replace")
                        texts[text] = texts.get(text, 0.0) + float(weight)
                log_ml = float(found.log_ml)
                answer = {
                    "log_ml": log_ml if log_ml > -math.inf else None,
                    "texts": {text: share for text, share in texts.items() if share > 0},
                    "seconds": seconds,
                    "calls": sampler.asked,
                    "tokens": tokens,
                }
        except asyncio.TimeoutError:
            answer = {"error": "out of time"}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
