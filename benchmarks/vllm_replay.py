"""What vLLM's masks and accepting cost without its model: the engine's calls, recorded once and replayed.

    .venv-serving/bin/python benchmarks/vllm_replay.py DATA record CALLS [--backend guided] [--schemas 100]
    .venv-serving/bin/python benchmarks/vllm_replay.py DATA replay CALLS... [--trees .,../base] [--rounds 3] [--reasons]

A record has the requests of `vllm_backends.py`, and what each step asked of the backend.  A replay makes the same calls
of ``StructuredOutputManager`` alone, in a process of its own.  As a pass of the model would, it writes memory before:
64 MB before the masks of a step, and 2 MB before a request's tokens are accepted.  Trees take turns.
Of each call the least time of all rounds counts, by the clock on the wall: that leaves out some of what other processes
take.  Whether the masks of a record were the same in all rounds is said as well.  With ``--reasons`` there is a
reasoning parser, whose reasoning ends with the prompt.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from vllm_backends import ENVIRONMENT, OPTIONS, engine_of, model_path, schemas, serve

BEFORE = {"masks": 64 << 20, "accept": 2 << 20}
"""Bytes that are written: so masks and accepting take what they take in the engine, by its processor's clock."""


class EndedReasoning:
    """A reasoning parser: all that the model writes is the answer."""

    def __init__(self, **_: Any) -> None:
        """Nothing of the tokenizer is asked."""

    def is_reasoning_end(self, prompt_ids: Any) -> bool:
        return True


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("data", type=Path)
    options.add_argument("what", choices=["record", "replay", "one"])
    options.add_argument("calls", type=Path, nargs="+")
    options.add_argument("--backend", default="guided")
    options.add_argument("--schemas", type=int, default=100)
    options.add_argument("--tokenizer", type=Path)
    options.add_argument("--max-tokens", type=int, default=150)
    options.add_argument("--trees", default=".")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--reasons", action="store_true")
    given = options.parse_args()
    given.whole = False
    if given.what == "record":
        record(given)
    elif given.what == "one":
        sys.stdout.buffer.write(pickle.dumps(replayed(given)))
    else:
        replay(given)


def record(given: argparse.Namespace) -> None:
    llm = engine_of(given, given.backend)
    from vllm.v1.structured_output import StructuredOutputManager as Manager

    calls: list[tuple[Any, ...]] = []
    begin, masks, accept = Manager.grammar_init, Manager.grammar_bitmask, Manager.accept_tokens

    def begun(self: Any, request: Any) -> None:
        calls.append(("begin", request.request_id, request.sampling_params, request.prompt_token_ids))
        begin(self, request)

    def masked(self: Any, requests: Any, ids: list[str], drafts: Any) -> Any:
        calls.append(("masks", tuple(ids)))
        return masks(self, requests, ids, drafts)

    def accepted(self: Any, request: Any, tokens: list[int]) -> bool:
        calls.append(("accept", request.request_id, tuple(tokens)))
        return accept(self, request, tokens)

    Manager.grammar_init, Manager.grammar_bitmask, Manager.accept_tokens = begun, masked, accepted
    serve(llm.llm_engine, schemas(given.data / "maskbench-dev.jsonl.gz", given.schemas), given, given.backend)
    given.calls[0].write_bytes(pickle.dumps(calls))


def replay(given: argparse.Namespace) -> None:
    for calls in given.calls:
        found: dict[str, list[Any]] = {tree: [] for tree in given.trees.split(",")}
        for _ in range(given.rounds):
            for tree, rounds in found.items():
                more = [] if given.tokenizer is None else ["--tokenizer", str(given.tokenizer)]
                more += ["--reasons"] * given.reasons
                command = [sys.executable, __file__, str(given.data), "one", str(calls), *more]
                environment = os.environ | {"PYTHONPATH": str(Path(tree).resolve())}
                rounds.append(pickle.loads(subprocess.run(command, env=environment, stdout=-1, check=True).stdout))
        digests = {digest for rounds in found.values() for digest, _, _ in rounds}
        for tree, rounds in found.items():
            times = np.min([taken for _, taken, _ in rounds], axis=0)
            is_mask, n_tokens = rounds[0][2]
            masks, accepting = (1e-3 * times[which].sum() / n_tokens for which in (is_mask, ~is_mask))
            row = {"calls": calls.name, "tree": tree, "tokens": n_tokens, "masks": round(masks, 2)}
            row |= {"accepting": round(accepting, 2), "us a token": round(masks + accepting, 2)}
            print(json.dumps(row | {"masks are the same": len(digests) == 1}), flush=True)


def replayed(given: argparse.Namespace) -> tuple[str, list[int], tuple[Any, int]]:
    """A digest of masks, the nanoseconds of each call; which calls were for masks, and the number of tokens."""
    os.environ |= ENVIRONMENT
    import tempfile

    from vllm.engine.arg_utils import EngineArgs
    from vllm.plugins import load_general_plugins
    from vllm.v1.request import Request
    from vllm.v1.structured_output import StructuredOutputManager

    load_general_plugins()
    calls = pickle.loads(given.calls[0].read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        arguments = EngineArgs(model_path(given.tokenizer, Path(folder)), **OPTIONS)
        manager = StructuredOutputManager(arguments.create_engine_config())
    if given.reasons:
        manager.reasoner_cls = EndedReasoning
    memory = np.zeros(max(BEFORE.values()), np.uint8)
    requests: dict[str, Any] = {}
    digest, times, is_mask, n_tokens = hashlib.sha256(), [], [], 0
    for what, *given_with in calls:
        if what == "begin":
            name, params, prompt = given_with
            request = requests[name] = Request(name, prompt, params, None)
            manager.grammar_init(request)
            while request.structured_output_request.grammar is None:
                time.sleep(0.001)
            continue
        memory[: BEFORE[what]] += 1
        if what == "masks":
            ids = [requests[name].request_id for name in given_with[0]]
            began = time.perf_counter_ns()
            masks = manager.grammar_bitmask(requests, ids, {})
            times.append(time.perf_counter_ns() - began)
            digest.update(np.ascontiguousarray(masks))
        else:
            name, tokens = given_with
            request, tokens = requests[name], [*tokens]
            request.append_output_token_ids(tokens)
            began = time.perf_counter_ns()
            manager.accept_tokens(request, tokens)
            times.append(time.perf_counter_ns() - began)
            n_tokens += len(tokens)
        is_mask.append(what == "masks")
    return digest.hexdigest(), times, (np.array(is_mask), n_tokens)


if __name__ == "__main__":
    main()
