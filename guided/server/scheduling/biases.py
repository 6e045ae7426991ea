"""`Biases`: what is added to a model's logits before the mask, by the token and by how often it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Biases"]


@dataclass(frozen=True)
class Biases:
    """OpenAI's ``logit_bias``, ``presence_penalty`` and ``frequency_penalty``, of generated tokens alone.

    A token that was written c times gets ``bias - c * frequency - (c > 0) * presence`` (OpenAI's API reference,
    "Advanced usage", 2024).

    >>> Biases({5: 2.0}, presence=0.5, frequency=0.25).shift({5: 2, 7: 1})
    {5: 1.0, 7: -0.75}
    """

    of_tokens: Mapping[int, float] = field(default_factory=dict)
    presence: float = 0.0
    frequency: float = 0.0

    def __bool__(self) -> bool:
        """Does it change anything?"""
        return bool(any(self.of_tokens.values()) or self.presence or self.frequency)

    def shift(self, counts: Mapping[int, int]) -> dict[int, float]:
        """What is added to each token's logit, 0 for others; ``counts`` say how often each was written."""
        found = dict(self.of_tokens)
        if self.presence or self.frequency:
            for token, count in counts.items():
                found[token] = found.get(token, 0.0) - count * self.frequency - self.presence
        return found
