"""vLLM's backends on the same schemas and requests: right, wrong, refused, and what their masks cost.

    .venv-serving/bin/python benchmarks/vllm_backends.py DATA [--schemas 1000] [--backends guided,xgrammar,guidance]
        [--tokenizer DATA/tokenizers/llama3] [--whole]

DATA holds maskbench-dev.jsonl.gz.  The model is the packaged one, or, with a tokenizer, a random one of its width,
which says nothing of answers and all of masks.  Each backend has a process of its own; in it the engine runs in that
process, and the methods by which vLLM's scheduler asks the backend are timed from outside, the same for all of them:
``grammar_bitmask`` (the masks of a step) and ``accept_tokens``, in processor time of the thread that is asked, less
what the clock takes (1 us a token here).
Refusals and compiling are timed at ``_validate_structured_outputs`` and ``_create_grammar``, by the clock on the wall:
XGrammar compiles on threads of its own.  Ours finds in the second what it compiled in the first, which it does not
where the engine has its own process.  A few requests are served before the clocks start.  Run `guided warmup` before:
kernels that Numba loads when they are first called are counted as masks.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS = 32
PROMPT = "Write the record as JSON: "

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
}  # fmt: skip

OPTIONS: dict[str, Any] = {
    "dtype": "float32", "max_model_len": 512, "max_num_seqs": ROWS, "enforce_eager": True,
    "gpu_memory_utilization": 0.2,
}  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("data", type=Path)
    options.add_argument("--schemas", type=int, default=1000)
    options.add_argument("--backends", default="guided,xgrammar,guidance")
    options.add_argument("--tokenizer", type=Path)
    options.add_argument("--max-tokens", type=int, default=200)
    options.add_argument("--whole", action="store_true", help="ours: whole texts within the tokens")
    options.add_argument("--one", help="this backend, in this process")
    given = options.parse_args()
    if given.one:
        print(json.dumps(measured(given, given.one)))
        return
    for backend in given.backends.split(","):
        command = [sys.executable, __file__, *sys.argv[1:], "--one", backend]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
        print(lines[-1] if lines else f"{backend}: died, {run.returncode}: {run.stderr[-2000:]}", flush=True)


def measured(given: argparse.Namespace, backend: str) -> dict[str, Any]:
    llm = engine_of(given, backend)
    cases = schemas(given.data / "maskbench-dev.jsonl.gz", given.schemas)
    spent = clocks()
    began = time.perf_counter()
    verdicts, tokens, steps = serve(llm.llm_engine, cases, given, backend)
    total = time.perf_counter() - began
    masks, accepts = spent["grammar_bitmask"], spent["accept_tokens"]
    return {
        "backend": backend,
        "schemas": len(cases),
        **dict(sorted(verdicts.items())),
        "tokens": tokens,
        "steps": steps,
        "grammar us a token": round(1e6 * (masks + accepts) / max(tokens, 1), 2),
        "mask us a step": round(1e6 * masks / max(steps, 1), 1),
        "check ms a request": round(1e3 * spent["_validate_structured_outputs"] / len(cases), 2),
        "compile ms a request": round(1e3 * spent["_create_grammar"] / len(cases), 2),
        "seconds": round(total, 1),
    }


def engine_of(given: argparse.Namespace, backend: str) -> Any:
    """An engine in this process, which has served a few requests."""
    os.environ |= ENVIRONMENT
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    with tempfile.TemporaryDirectory() as folder:
        llm = LLM(model_path(given.tokenizer, Path(folder)), **OPTIONS, structured_outputs_config={"backend": backend})
    for schema in ({"type": "object"}, {"type": "array", "items": {"type": "integer"}}, {"enum": ["a", 1]}):
        structured = StructuredOutputsParams(json=schema)
        llm.generate([PROMPT], SamplingParams(max_tokens=30, structured_outputs=structured), use_tqdm=False)
    return llm


def serve(engine: Any, cases: list[Any], given: argparse.Namespace, backend: str) -> tuple[Counter[str], int, int]:
    """Serve each schema once, `ROWS` at a time: verdicts, tokens, steps."""
    from vllm import SamplingParams
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import StructuredOutputsParams

    verdicts: Counter[str] = Counter()
    running: dict[str, Any] = {}
    tokens = steps = 0
    waiting = list(reversed([*enumerate(cases)]))
    while waiting or engine.has_unfinished_requests():
        while waiting and engine.get_num_unfinished_requests() < ROWS:
            n, schema = waiting.pop()
            structured = StructuredOutputsParams(json=schema)
            extra = {"guided_whole": True} if given.whole and backend == "guided" else None
            params = SamplingParams(
                temperature=0.7, seed=n, max_tokens=given.max_tokens, structured_outputs=structured, extra_args=extra
            )
            try:
                engine.add_request(str(n), PROMPT, params)
                running[str(n)] = schema
            except VLLMValidationError:
                verdicts["refused"] += 1
            except Exception as error:  # a server answers these with 500
                verdicts[f"failed: {type(error).__name__}"] += 1
        steps += 1
        for output in engine.step():
            if output.finished:
                (answer,) = output.outputs
                tokens += len(answer.token_ids)
                found = verdict(answer, running.pop(output.request_id))
                verdicts[found] += 1
                if found not in ("right", "unfinished"):
                    print(output.request_id, found, answer.text, file=sys.stderr)
    return verdicts, tokens, steps


def clocks() -> Counter[str]:
    """Seconds by method, counted from now on."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output import StructuredOutputManager

    spent: Counter[str] = Counter()

    def clock(owner: Any, name: str, now: Callable[[], float] = time.thread_time) -> None:
        method = getattr(owner, name)
        ticks = [-now() + now() for _ in range(1001)]
        tick = sorted(ticks)[500]

        def timed(*args: Any, **options: Any) -> Any:
            began = now()
            try:
                return method(*args, **options)
            finally:
                spent[name] += now() - began - tick

        setattr(owner, name, timed)

    clock(SamplingParams, "_validate_structured_outputs", time.perf_counter)
    clock(StructuredOutputManager, "_create_grammar", time.perf_counter)
    for name in ("grammar_bitmask", "accept_tokens"):
        clock(StructuredOutputManager, name)
    return spent


def verdict(answer: Any, schema: Any) -> str:
    from guided.eval.validation import NoVerdictError, why_invalid

    if answer.finish_reason == "length":
        return "unfinished"
    if answer.finish_reason != "stop":
        return f"failed: {answer.finish_reason}"
    try:
        return "right" if why_invalid(answer.text, schema) is None else "wrong"
    except NoVerdictError:
        return "no verdict"


def schemas(path: Path, n: int) -> list[Any]:
    """``n`` schemas, spread over the file."""
    with gzip.open(path, "rt") as lines:
        found = [json.loads(line)["schema"] for line in lines]
    return found[:: max(1, len(found) // n)][:n]


def model_path(tokenizer: Path | None, folder: Path) -> str:
    if tokenizer is None:
        from guided.nano import MODEL_PATH

        return str(MODEL_PATH)
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    loaded = AutoTokenizer.from_pretrained(tokenizer)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(loaded), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, head_dim=32, max_position_embeddings=512, eos_token_id=loaded.eos_token_id,
        bos_token_id=None, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    loaded.save_pretrained(folder)
    return str(folder)


if __name__ == "__main__":
    main()
