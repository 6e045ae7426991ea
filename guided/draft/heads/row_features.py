"""`RowFeatures`: the target's features of each row's tokens, as they come, and the caches of a head that reads them.

A row is followed from its prompt on: the features of the prompt come with its first context, those of later tokens with
what each pass of the target has kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from guided.draft.drafter import Context, Observed
from guided.draft.heads.decoder_block import KeyValues

__all__ = ["Kept", "RowFeatures"]


@dataclass
class Kept:
    """What is known of one row: features of its first tokens, and a head's keys and values for them."""

    caches: list[KeyValues]
    waiting: list[torch.Tensor] = field(default_factory=list)
    """Features that the head has not read, ``[n, f]`` each."""
    n_read: int = 0
    n_features: int = 0
    last: torch.Tensor | None = None
    """The head's output at the last position it read, ``[1, 1, d]``."""

    def add(self, features: torch.Tensor) -> None:
        """Features of the next tokens."""
        self.waiting.append(features)
        self.n_features += int(features.shape[0])

    def taken(self) -> torch.Tensor:
        """The features that were waiting, ``[n, f]``, for the head to read."""
        features = torch.cat(self.waiting)
        self.waiting = []
        return features


class RowFeatures:
    """The features of all rows; ``caches`` makes a head's empty caches for a new one."""

    def __init__(self, caches: Callable[[], list[KeyValues]], device: torch.device) -> None:
        self._caches = caches
        self._device = device
        self._rows: dict[int, Kept] = {}

    def complete(self, context: Context) -> Kept | None:
        """What is known of a row, if that is all that the target has read; None for rows not seen from the start."""
        kept = self._rows.get(context.row)
        if kept is None and context.prompt_hidden is not None and context.n_prompt:
            if len(context.tokens) - context.n_unseen != context.n_prompt:
                return None
            kept = self._begun(context.row, context.prompt_hidden)
        if kept is None or not kept.n_features or kept.n_features != len(context.tokens) - context.n_unseen:
            return None
        return kept

    def learn(self, observed: Sequence[Observed]) -> None:
        """Keep the features of what the target has read and kept."""
        for seen in observed:
            kept = self._rows.get(seen.context.row)
            if kept is None:
                # A row that is seen for the first time: its tokens have grown since its context was made.
                context = seen.context
                if context.prompt_hidden is None or seen.before is None or _before(seen) != context.n_prompt:
                    continue
                kept = self._begun(context.row, context.prompt_hidden)
            if seen.hidden is None:
                continue
            children = {(parent, seen.tree.tokens[node]): node for node, parent in enumerate(seen.tree.parents)}
            kept_nodes = list(range(seen.context.n_unseen))
            at = seen.context.n_unseen - 1
            for token in seen.emitted[: len(seen.accepted)]:
                at = children[at, token]
                kept_nodes.append(at)
            kept.add(self._brought(seen.hidden[torch.tensor(kept_nodes, device=seen.hidden.device)]))

    def leave(self, rows: Sequence[int]) -> None:
        """Forget rows that have ended."""
        for row in rows:
            self._rows.pop(row, None)

    def _begun(self, row: int, prompt: torch.Tensor) -> Kept:
        kept = self._rows[row] = Kept(self._caches())
        kept.add(self._brought(prompt))
        return kept

    def _brought(self, features: torch.Tensor) -> torch.Tensor:
        return features.to(self._device, torch.float32)


def _before(seen: Observed) -> int:
    """How many tokens of a row the model had read before its last pass."""
    return len(seen.context.tokens) - len(seen.emitted) - seen.context.n_unseen
