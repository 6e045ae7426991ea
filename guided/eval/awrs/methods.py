"""The five ways to answer, with the numbers of particles and thresholds of the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

__all__ = ["PARTICLES", "MethodName", "answer"]


class MethodName(str, Enum):
    """The methods; the values are what the command line and the tables call them."""

    BASE = "base"
    """The model alone."""
    LOCAL = "local"
    """Masking token by token."""
    RERANK = "rerank"
    """The model alone, its whole texts weighed by the condition: importance sampling."""
    TWISTED = "twisted-smc"
    """The model alone, resampled by what the condition says of beginnings."""
    AWRS = "awrs-smc"
    """Every token drawn by adaptive weighted rejection, resampled by the weights."""


PARTICLES = {
    MethodName.BASE: 10,
    MethodName.LOCAL: 10,
    MethodName.RERANK: 10,
    MethodName.TWISTED: 10,
    MethodName.AWRS: 5,
}
"""As in the paper; the first two are not populations there, and have as many samples as the others have particles."""


def answer(
    method: MethodName,
    seed: int,
    model: Any,
    question: Any,
    *,
    n: int | None,
    max_tokens: int,
    progress: Callable[[Any], None] | None = None,
) -> Any:
    """A `Population` or `Samples` of answers; ``n`` None is the paper's number."""
    from guided.infer import AWRS, Anything, Direct, as_potential, importance, local, smc

    free, condition = Anything(question.vocabulary), as_potential(question.condition)
    common: dict[str, Any] = {"n": n or PARTICLES[method], "max_tokens": max_tokens, "progress": progress}
    prompt = question.prompt
    if method is MethodName.BASE:
        return local(seed, model, prompt, free, sampler=Direct(), **common)
    if method is MethodName.LOCAL:
        masked = condition.allowed_each([condition.start()]) is not None
        # Without a mask the first allowed token of the model's draws is the same distribution.
        way: Any = Direct() if masked else AWRS(proper_weights=False)
        return local(seed, model, prompt, condition, sampler=way, **common)
    if method is MethodName.RERANK:
        return importance(seed, model, prompt, free, critic=condition, **common)
    if method is MethodName.TWISTED:
        return smc(seed, model, prompt, free, critic=condition, ess_threshold=0.9, **common)
    return smc(seed, model, prompt, condition, sampler=AWRS(), ess_threshold=0.5, **common)
