"""A model that the tests can serve, and engines that serve it; all of it needs vLLM (`make test-serving`).

The model is the packaged one with a chat template and four more tokens, those of reasoning and of tool calls in many
models.  It was trained on neither, so what it writes is up to the constraint and to biases.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guided.nano import MODEL_PATH

MORE_TOKENS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROCESSING_METHOD": "spawn",
}
"""For a small machine without a network."""

os.environ.update(ENVIRONMENT)


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    import torch
    from safetensors.torch import load_file, save_file

    folder = tmp_path_factory.mktemp("model") / "nano"
    shutil.copytree(MODEL_PATH, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    first = json.loads((folder / "config.json").read_text())["vocab_size"]
    tokenizer["added_tokens"] += [
        {
            "id": first + n, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False,
        }
        for n, content in enumerate(MORE_TOKENS)
    ]  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    _change(folder / "config.json", vocab_size=first + len(MORE_TOKENS))
    template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    _change(folder / "tokenizer_config.json", chat_template=template)
    weights = load_file(folder / "model.safetensors")
    for name, matrix in weights.items():
        if matrix.shape[0] == first:
            weights[name] = torch.cat([matrix, matrix.new_zeros(len(MORE_TOKENS), matrix.shape[1])])
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return str(folder)


def _change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture(scope="module")
def engine(model_path: str) -> Callable[..., Any]:
    """Makes engines; their options are those of ``vllm.LLM``.

    Each has a process of its own, which is spawned: vLLM's model runner for processors looks through all modules when
    it starts, and trips over those of llvmlite where they are loaded by then.
    """
    pytest.importorskip("vllm", reason="vLLM is not installed: make test-serving")
    from vllm import LLM

    def made(**options: Any) -> Any:
        given = {
            "dtype": "float32", "max_model_len": 512, "max_num_seqs": 32, "enforce_eager": True,
            "gpu_memory_utilization": 0.2, "structured_outputs_config": {"backend": "guided"},
        }  # fmt: skip
        return LLM(model_path, **(given | options))

    return made


@contextlib.contextmanager
def serving(model_path: str, log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address and process of vLLM's server of the OpenAI interface, which runs while the block does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model_path, "--served-model-name", "nano",
        "--dtype", "float32", "--max-model-len", "512", "--max-num-seqs", "32", "--enforce-eager",
        "--gpu-memory-utilization", "0.2", "--port", str(port), "--host", "127.0.0.1",
        "--structured-outputs-config", '{"backend": "guided"}',
        "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
    ]  # fmt: skip
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True) as process,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                # One that is still starting does not listen; its engine would outlive it.
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def server(model_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs while the session does."""
    pytest.importorskip("vllm", reason="vLLM is not installed: make test-serving")
    with serving(model_path, tmp_path_factory.mktemp("server") / "log") as (address, _):
        yield address


def _wait(address: str, process: subprocess.Popen[bytes], log: Path, seconds: int = 300) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(1)
    raise RuntimeError(f"the server did not start:\n{log.read_text()[-4000:]}")
