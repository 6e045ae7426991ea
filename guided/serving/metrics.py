"""What was compiled, refused and failed, as Prometheus counts it; servers show it at ``/metrics`` beside their own.

Each process counts for itself.  vLLM's server shows its own counts (requests that were checked and refused); those of
the engine core too where ``PROMETHEUS_MULTIPROC_DIR`` names a folder, which vLLM sets by itself for several servers,
and SGLang wherever it counts.  Without the package prometheus_client, which both require, nothing is counted.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import Any

__all__ = ["compiled", "failed", "found_again", "refused"]

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def compiled(kind: str, seconds: float) -> None:
    """A request was compiled, in so many seconds."""
    if (meters := _meters()) is not None:
        meters["compile"].labels(kind).observe(seconds)


def found_again() -> None:
    """A request was compiled before."""
    if (meters := _meters()) is not None:
        meters["hits"].inc()


def refused(kind: str, error: str) -> None:
    """A request was refused, by an error of this name."""
    if (meters := _meters()) is not None:
        meters["refused"].labels(kind, error).inc()


def failed() -> None:
    """A request came to a limit while it ran."""
    if (meters := _meters()) is not None:
        meters["failed"].inc()


@lru_cache(maxsize=1)
def _meters() -> dict[str, Any] | None:
    if importlib.util.find_spec("prometheus_client") is None:
        return None
    from prometheus_client import Counter, Histogram

    return {
        "compile": Histogram(
            "guided:compile_seconds", "Seconds to compile a request's grammar.", ["kind"], buckets=_SECONDS
        ),
        "hits": Counter("guided:compile_cache_hits", "Requests whose grammar was compiled before."),
        "refused": Counter("guided:refused", "Requests refused before they ran.", ["kind", "error"]),
        "failed": Counter("guided:failed", "Requests that came to a limit while they ran."),
    }
