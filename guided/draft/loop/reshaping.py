"""The seam for what else shapes the target's law: functions of the text so far, on either side of the mask.

They hold for the target as it is verified, so that the law is kept by whatever order they have without drafts: what
comes before the mask sees all tokens, what comes after it (temperature, truncation) only those that are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from guided.errors import GuidedError

__all__ = ["Reshaping"]


class Reshaping(Protocol):
    """Changes the scores of a next token; a pure function of its arguments."""

    @property
    def changes_all(self) -> bool:
        """Does anything come before the mask?"""

    def before(self, row: int, emitted: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """The scores ``[V]`` before the mask, after the tokens that row number ``row`` of the run has emitted."""

    def nothing_left(self, row: int, emitted: Sequence[int], allowed: torch.Tensor) -> GuidedError:
        """The error for a text after which what comes before the mask leaves none of the allowed tokens ``bool[V]``."""

    def after(self, row: int, emitted: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """The scores ``[V]`` after the mask, some of them minus infinity; where tokens are drawn only."""
