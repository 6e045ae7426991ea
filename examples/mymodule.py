"""A reward for ``--steer`` and ``--search``: shorter texts are worth more."""

from __future__ import annotations


def score(texts: list[str]) -> list[float]:
    """One number between 0 and 1 for each text."""
    return [1 / (1 + len(text) / 100) for text in texts]
