"""Small models that steer, offline: a model of hotel reviews, an amateur, two experts, rewards, and their world.

All share a tokenizer, but for `Expert.NANO_AMATEUR`, which has that of the packaged model.  Importing this loads
neither torch nor transformers.  ``name_to_load`` is what `guided.hf.load`, ``--model`` and ``--steer NAME:model=``
take, ``path`` what ``from_pretrained`` takes.  How they were made: ``examples/train_experts`` in the repository; what
they are worth: ``weights/MODEL_CARD.md``.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

__all__ = ["HEADS_PATH", "REWARD_HEAD_PATH", "SCORER_PATH", "WEIGHTS_PATH", "Expert"]

WEIGHTS_PATH = Path(__file__).parent / "weights"
"""The folder of all of them."""

REWARD_HEAD_PATH = WEIGHTS_PATH / "reward-head.safetensors"
"""A linear head on the hidden states of `Expert.REWARD`: the log-odds that the text will praise, after each token."""
SCORER_PATH = WEIGHTS_PATH / "scorer.safetensors"
"""A prefix scorer on the hidden states of `Expert.REWARD`: from -1 (the text will complain) to 1 (will praise)."""
HEADS_PATH = WEIGHTS_PATH / "heads.json"
"""Retrieval heads of `Expert.REVIEWS` as [block, head], best first."""


class Expert(str, Enum):
    """A packaged model; all are causal models of transformers with a tokenizer."""

    REVIEWS = "reviews"
    """Writes hotel reviews and answers questions about made-up hotels; the one to steer."""
    AMATEUR = "amateur"
    """One block, trained for seconds: knows how texts go and what is widely believed, but nothing of single hotels."""
    SMALL = "small"
    """A third of the size: what the experts and reward models were tuned from."""
    POSITIVE = "positive"
    """The small model, tuned on reviews that praise."""
    NEGATIVE = "negative"
    """The small model, tuned on reviews that complain."""
    REWARD = "reward"
    """A causal reward model: see `REWARD_HEAD_PATH`."""
    TOKEN_REWARD = "token-reward"
    """A reward model whose logits are the log-odds that the text will praise if that token is next."""
    NANO_AMATEUR = "nano-amateur"
    """A small model of what the packaged nano does, with nano's tokenizer: an amateur, or a draft model."""

    @property
    def path(self) -> Path:
        """Its folder."""
        return WEIGHTS_PATH / self.value

    @property
    def name_to_load(self) -> str:
        """What it is called among all models: "nano-amateur", "reviews", "reviews-positive", ..."""
        own = self in (Expert.REVIEWS, Expert.NANO_AMATEUR)
        return self.value if own else f"{Expert.REVIEWS.value}-{self.value}"
