"""`Metrics`: counts and times for Prometheus, in a registry of the server's own."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

__all__ = ["Metrics"]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""From one token of the packaged model to a long answer of a large one."""


class Metrics:
    """What ``GET /metrics`` tells; names begin with ``guided_``, but for the process's own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        common: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("guided_requests", "Requests answered", ["path", "status"], **common)
        self.seconds = Histogram(
            "guided_request_seconds", "From a request to the end of its answer", ["path"], buckets=SECONDS, **common
        )
        self.running = Gauge("guided_requests_running", "Requests that are being answered", **common)
        self.compiling = Histogram(
            "guided_compile_seconds", "Waiting for a grammar, remembered ones too", buckets=SECONDS, **common
        )
        self.first_token = Histogram(
            "guided_first_token_seconds", "From a request's jobs to their first token", buckets=SECONDS, **common
        )
        self.between_tokens = Histogram(
            "guided_between_tokens_seconds", "From one token of a text to the next", buckets=SECONDS, **common
        )
        self.prompt_tokens = Counter("guided_prompt_tokens", "Tokens of prompts", **common)
        self.cached_tokens = Counter("guided_cached_tokens", "Those of them that were computed before", **common)
        self.written_tokens = Counter("guided_written_tokens", "Tokens of texts", **common)
        self.removed = Histogram(
            "guided_removed_probability", "What the mask took away before each token",
            buckets=(0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1), **common,
        )  # fmt: skip
        self.ends = Counter("guided_texts", "Texts by why they ended", ["reason"], **common)

    def text(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self.registry)
