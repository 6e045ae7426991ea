"""Tokens by rejection: what a loop of `generate` takes from masked scores, mostly without the mask.

A mask of a database's language takes milliseconds; whether one token is allowed, a twentieth of that.  So a token is
drawn from the scores as they are, and asked about.  A refused one is left out, and the next is drawn from what is left.
The first that is allowed is a draw from the masked law, whatever was refused before: each token's chance is its own
probability over what is left, and what is left is the same for all (rejection sampling without replacement, the
proposals of AWRS: Lipkin et al. 2025, arXiv 2504.05410; `guided.infer.AWRS` weighs them).  The greedy choice is
the same with the best token.

`generate` truncates what the mask has left, and a mask leaves no more than there was.  So a token may surely be kept
though the mask is not known.  Where that is not sure, the mask is made, and the token taken if it is kept; if not, the
loop draws from what is.  That is the law as well: a draw of which all that truncation drops is drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from guided.constraint.effects.shared_rows import KeptRow
from guided.constraint.protocol import TRIES
from guided.errors import UnsupportedError
from guided.hf.front.generate_call import truncation_of_call
from guided.hf.masking.apply import mask_scores
from guided.lm.transforms import Truncation

__all__ = ["Choosing", "choose_by_rejection"]

SURELY = 1 - 1e-4
"""What float32 leaves of a probability or a sum of them: over 128,256 random scores the error is 5e-5 at most."""

CUTS = ("temperature", "top_k", "top_p", "min_p")
"""Truncations of which it can be told that a token is kept whatever a mask leaves out."""


@dataclass(frozen=True)
class Choosing:
    """How a loop takes a token from the scores that a processor hands on."""

    greedy: bool
    cut: Truncation
    """What it does to the scores before it draws."""

    @classmethod
    def of(cls, behind: Sequence[Any], config: Any) -> Choosing | None:
        """From the processors that come behind, and the loop's configuration.

        None where something else than the choice sees the scores, or another cut than `CUTS` is made.
        """
        if config.return_dict_in_generate and config.output_scores:
            return None
        try:
            found = truncation_of_call(behind)
        except UnsupportedError:
            return None
        return cls(not config.do_sample, Truncation(**found)) if found.keys() <= set(CUTS) else None

    def keys(self, scores: torch.Tensor) -> torch.Tensor:
        """What is greatest for the token to be taken, then for that to be taken in its place, and so on."""
        if self.greedy:
            return scores
        noise = torch.empty_like(scores, dtype=torch.float32).exponential_()
        return scores.float() / self.cut.temperature - noise.log()

    def surely_keeps(self, scores: torch.Tensor, token: int) -> bool:
        """Is a token kept whichever others a mask leaves out of a row's scores?"""
        cut = self.cut
        if self.greedy:
            return True
        row = scores.float() / cut.temperature
        above = row >= row[token]
        above[token] = False
        if cut.top_k is not None and int(above.sum()) >= cut.top_k:
            return False
        if cut.min_p > 0 and float(row[token] - row.max()) < math.log(cut.min_p):
            return False
        if cut.top_p < 1:
            # Of what is left at least these are, so they are at most this share of it.
            probabilities = torch.softmax(row, -1)
            before, own = float(probabilities[above].sum()), SURELY * float(probabilities[token])
            return before < cut.top_p * (before + own)
        return True

    def keeps(self, masked: torch.Tensor, token: int) -> bool:
        """Is a token kept of a row's masked scores?"""
        return bool(masked[token] > -torch.inf) and (self.greedy or bool(self.cut(masked)[token] > -torch.inf))


def choose_by_rejection(
    scores: torch.Tensor,
    choosing: Choosing,
    judges: Sequence[Callable[[int], bool | None] | None],
    masks_of: Callable[[Sequence[int]], list[KeptRow]],
    out: torch.Tensor,
) -> torch.Tensor:
    """Write what makes a loop take the token that it takes of masked scores: -inf everywhere else.

    ``scores`` and ``out`` are ``float[rows, width]``, and may be the same.  A judge says of a token in its row whether
    it is allowed, and None where only the mask tells.  Rows without a judge, and those in which no token was found,
    become their masked scores.  Draws come from torch's generator.
    """
    tokens, sure = _proposals(scores, choosing, judges)
    unsure = [row for row, is_sure in enumerate(sure) if not is_sure]
    masked = mask_scores(scores[unsure], masks_of(unsure)) if unsure else scores
    left: list[int] = []
    for place, row in enumerate(unsure):
        token = tokens[row]
        sure[row] = token is not None and choosing.keeps(masked[place], token)
        left += [] if sure[row] else [place]
    taken = [(row, token) for row, token in enumerate(tokens) if sure[row] and token is not None]
    rows, chosen = [row for row, _ in taken], [token for _, token in taken]
    own = scores[rows, chosen] if taken else None
    out.fill_(-torch.inf)
    if left:
        out[[unsure[place] for place in left]] = masked[left]
    if own is not None:
        out[rows, chosen] = own
    return out


def _proposals(
    scores: torch.Tensor, choosing: Choosing, judges: Sequence[Callable[[int], bool | None] | None]
) -> tuple[list[int | None], list[bool]]:
    """The first token of each row that is not refused, None where none was found; and whether it surely is taken."""
    tokens: list[int | None] = [None] * len(judges)
    sure = [False] * len(judges)
    left, keys = scores, choosing.keys(scores)
    rows = [row for row, judge in enumerate(judges) if judge is not None]
    for _ in range(TRIES if rows else 0):
        best = (keys if len(rows) == len(judges) else keys[rows]).max(dim=-1)
        refused: list[tuple[int, int]] = []
        for row, key, token in zip(rows, best.values.tolist(), best.indices.tolist(), strict=True):
            judge = judges[row]
            assert judge is not None
            # Nothing is left, or a model has no numbers: that is the loop's own affair.
            if not math.isfinite(key):
                continue
            said = judge(token)
            if said is False:
                refused.append((row, token))
                continue
            tokens[row] = token
            sure[row] = said is True and choosing.surely_keeps(left[row], token)
        rows, without = [row for row, _ in refused], [token for _, token in refused]
        if not rows:
            break
        if left is scores:
            left, keys = scores.clone(), keys.clone()
        left[rows, without] = -torch.inf
        keys[rows, without] = -torch.inf
    return tokens, sure
