"""`TokenDistribution`: one next-token distribution, prepared once for every particle that draws from it.

Drawing is by inversion over sums of blocks: at 128,000 ids a full cumulative sum takes 350 us, sums of
blocks 20 us, and Gumbel noise for each id 1,300 us (one core, NumPy).  No randomness here: callers bring the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guided.errors import GuidedError

if TYPE_CHECKING:
    import torch

__all__ = ["TokenDistribution", "distributions_of"]

BLOCK = 256
"""Ids a block of large vocabularies, `SHORT` of small ones: near the square root, so that both levels of a draw are
short.  A running sum costs some ns a number, which a sum does not."""
SHORT = 64
SMALL = 16_384


class TokenDistribution:
    """Unnormalised weights of the next token: ``exp(scores - shift)``, and what they summed to before ids were dropped.

    ``scores`` is ``float[V]``, in logarithms up to a constant; ``log_norm`` the logarithm of the sum over all that the
    model scored (None: over ``scores``).  Immutable.  Weights that underflow still have their score, and those who
    remove tokens ask for `only` or `without`, which scale anew where what is left would lose its digits.  Raises
    `GuidedError` for scores that are NaN or plus infinity.

    >>> import numpy as np
    >>> from guided.infer import TokenDistribution
    >>> tokens = TokenDistribution(np.log([0.5, 0.3, 0.2]))
    >>> kept = tokens.only(np.array([False, True, True]))
    >>> round(float(np.exp(kept.log_mass)), 3), round(float(np.exp(kept.logprob(1))), 3)
    (0.5, 0.3)
    """

    def __init__(self, scores: ArrayLike, log_norm: float | None = None) -> None:
        values = np.asarray(scores, np.float64)
        shift = float(values.max(initial=-math.inf))
        if not shift < math.inf:
            raise GuidedError(
                "the model's scores of the next token are not numbers",
                remedy="NaN or plus infinity came out of the model or of a steering step: look there.",
            )
        weights = np.exp(values - shift) if shift > -math.inf else np.zeros(values.shape)
        if log_norm is None:
            log_norm = shift + math.log(float(weights.sum())) if shift > -math.inf else -math.inf
        self._set(values, weights, shift, log_norm, None)

    def _set(
        self,
        scores: NDArray[np.float64],
        weights: NDArray[np.float64],
        shift: float,
        log_norm: float,
        allowed: NDArray[np.bool_] | None,
    ) -> None:
        self._scores = scores
        self._allowed = allowed
        self.weights = weights
        """``float64[V]``: relative to a common scale."""
        self.shift = shift
        """The logarithm of that scale: the score at weight 1."""
        self.log_norm = log_norm
        """The logarithm of the sum of ``exp(scores)`` over all that the model scored."""
        # Made when asked for.  Not cached properties, whose lock costs more than some of these: a draw asks for all.
        self._ends: NDArray[np.float64] | None = None
        self._block = BLOCK if weights.size > SMALL else SHORT
        self._sum = self._log_mass = math.nan
        self._pruned: tuple[NDArray[np.bool_], TokenDistribution] | None = None

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float64],
        weights: NDArray[np.float64],
        shift: float,
        log_norm: float,
        allowed: NDArray[np.bool_] | None = None,
    ) -> TokenDistribution:
        """A distribution whose exponentials are known; only ``allowed`` tokens (None: all) have weights."""
        self = object.__new__(cls)
        self._set(scores, weights, shift, log_norm, allowed)
        return self

    @property
    def size(self) -> int:
        """Number of ids."""
        return int(self.weights.size)

    @property
    def block_ends(self) -> NDArray[np.float64]:
        """``float64[ceil(V / block)]``: the running sums of blocks of weights."""
        if self._ends is None:
            self._ends = np.add.reduceat(self.weights, _starts(self.weights.size, self._block)).cumsum()
        return self._ends

    @property
    def sum(self) -> float:
        """The sum of weights."""
        if self._sum != self._sum:
            self._sum = float(self.block_ends[-1]) if self.size else 0.0
        return self._sum

    @property
    def log_mass(self) -> float:
        """The log probability of all tokens here; 0 when none was dropped, minus infinity when none is left."""
        if self._log_mass != self._log_mass:
            self._log_mass = self.shift + math.log(self.sum) - self.log_norm if self.sum > 0 else -math.inf
        return self._log_mass

    def has_share(self, share: float) -> bool:
        """Has one token here at least ``share`` of the sum, which is more than a half of it?"""
        # The middle of the sum then lies within it.
        return self.sum > 0 and self.weights.item(self.find(0.5)) >= share * self.sum

    def logprob(self, token: int) -> float:
        """The log probability of a token, where all tokens that the model scored sum to 1."""
        if self._allowed is not None and not self._allowed[token]:
            return -math.inf
        weight = float(self.weights[token])
        if weight > FAINT:
            # From the weight, so that it agrees to the last digit with the sums that it is part of.
            return math.log(weight) + self.shift - self.log_norm
        score = float(self._scores[token])
        return score - self.log_norm if score > -math.inf else -math.inf

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """``float64[V]``: log probabilities up to a constant; minus infinity for tokens that were dropped."""
        return self._scores if self._allowed is None else np.where(self._allowed, self._scores, -math.inf)

    @cached_property
    def logprobs(self) -> NDArray[np.float64]:
        """``float64[V]``: log probabilities; minus infinity for tokens that were dropped."""
        if self.log_norm == -math.inf:
            return np.full(self.size, -math.inf)
        values: NDArray[np.float64] = self.scores - self.log_norm
        return values

    def find(self, share: float) -> int:
        """The token at ``share`` in [0, 1) of the sum; never one without weight.  The sum must not be 0."""
        ends, size = self.block_ends, self._block
        at = share * self.sum
        block = int(ends.searchsorted(at, "right"))
        if block == ends.size:
            block = int(ends.searchsorted(ends[-1], "left"))
        inside = self.weights[block * size : (block + 1) * size].cumsum()
        place = int(inside.searchsorted(at - ends.item(block - 1) if block else at, "right"))
        if place == inside.size:
            # Rounding put the share behind the block's last token, which is the nearest with any weight.
            place = int(inside.searchsorted(inside[-1], "left"))
        return block * size + place

    def only(self, allowed: NDArray[np.bool_]) -> TokenDistribution:
        """The tokens of ``bool[V]`` alone; `log_mass` says what is left of the probability."""
        if self._allowed is not None:
            allowed = allowed & self._allowed
        kept = TokenDistribution.of(self._scores, self.weights * allowed, self.shift, self.log_norm, allowed)
        if kept.sum >= SMALLEST:
            return kept
        # Nothing, or too little to keep its digits: scale by the best score that is left.
        return TokenDistribution(kept.scores, self.log_norm)

    def without(self, removed: Sequence[int]) -> TokenDistribution:
        """All tokens but these."""
        allowed = np.ones(self.size, np.bool_)
        allowed[list(removed)] = False
        return self.only(allowed)

    def pruned(self, usable: NDArray[np.bool_], silent: NDArray[np.int64]) -> TokenDistribution:
        """As `only`, for the one mask that every particle asks with: remembered.  ``silent`` are the ids it drops.

        The distribution itself where they have next to no mass: those few are then rejected when they are drawn.
        """
        found = self._pruned
        if found is None or found[0] is not usable:
            pruned = self
            if self._allowed is not None or self.weights.take(silent).sum() > NEGLIGIBLE * self.sum:
                weights = self.weights.copy()
                weights[silent] = 0.0
                allowed = usable if self._allowed is None else usable & self._allowed
                pruned = TokenDistribution.of(self._scores, weights, self.shift, self.log_norm, allowed)
                if pruned.sum < SMALLEST:
                    pruned = self.only(usable)
            found = self._pruned = (usable, pruned)
        return found[1]


@cache
def _starts(size: int, block: int) -> NDArray[np.int64]:
    """Where blocks begin."""
    return np.arange(0, size, block)


NEGLIGIBLE = 1e-3
"""Share of the mass that is not worth a copy of all weights: a draw in a thousand is made again."""

SMALLEST = 1e-15
"""Sums below are scaled anew: whatever is lost of faint weights is then nothing beside the sum."""

FAINT = 1e-30
"""Weights up to this are taken from their scores: float32, in which weights may have been computed, loses digits from
1.2e-38 on."""


def distributions_of(logits: torch.Tensor, size: int) -> list[TokenDistribution]:
    """The distributions of rows of logits ``[k, width]``, over the first ``size`` ids; ids beyond ``width`` have none.

    Exponentials are taken in the logits' own precision, on their device, and summed in float64; every sampler then
    works with the same weights, so that nothing is lost but the last digits of the model itself.
    """
    import torch

    shifts = logits.max(dim=-1, keepdim=True).values
    weights = torch.exp(logits - shifts)
    sums = weights.sum(dim=-1, dtype=torch.float64).cpu().tolist()
    scores, shares = _sized(logits, size, -math.inf), _sized(weights, size, 0.0)
    found: list[TokenDistribution] = []
    for i, (shift, total) in enumerate(zip(shifts[:, 0].double().cpu().tolist(), sums, strict=True)):
        if math.isfinite(shift) and math.isfinite(total):
            found.append(TokenDistribution.of(scores[i], shares[i], shift, shift + math.log(total)))
        else:
            # NaN, plus infinity, or no token at all: the constructor says which.
            found.append(TokenDistribution(scores[i]))
    return found


def _sized(rows: torch.Tensor, size: int, fill: float) -> NDArray[np.float64]:
    """The first ``size`` numbers of each row, ``float64[k, size]``, or all and then ``fill``."""
    values: NDArray[np.float64] = rows[:, :size].cpu().numpy().astype(np.float64)
    missing = size - values.shape[1]
    return values if missing <= 0 else np.pad(values, ((0, 0), (0, missing)), constant_values=fill)
