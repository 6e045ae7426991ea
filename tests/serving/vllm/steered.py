"""A logits processor of the tests: rewards of texts, and a second model."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import guided
from guided.serving.vllm.steering import SteeringProcessor
from guided.steer import ARGS, ClassifierFree, Contrastive, TextReward

MODEL = "GUIDED_TEST_MODEL"
"""The environment variable that names the model's folder, for the engine's process."""


@lru_cache(maxsize=1)
def loaded() -> Any:
    return guided.hf.load(os.environ[MODEL])


@lru_cache(maxsize=8)
def steerers(argument: str) -> list[Any]:
    if argument == "digits":
        reward = TextReward(lambda texts: [float(text.count("5")) for text in texts], loaded().tokenizer.decode)
        return [ARGS(reward, 20.0)]
    if argument == "contrast":
        return [Contrastive(loaded(), alpha=0.1, beta=0.5)]
    if argument == "prompt":
        return [ClassifierFree()]
    raise guided.GuidedError(f"there is no steering {argument!r}", remedy="Ask for digits or contrast.")


class Steered(SteeringProcessor):
    @classmethod
    def steerers(cls, argument: Any) -> list[Any]:
        return steerers(argument)
