"""What a step makes of a denoiser's scores: the law of each position, and one token proposed for each.

`Free` takes positions for themselves.  Whatever has `Law`'s one method may stand there: `guided.diffusion.constrained`
has the one of a constraint.  A law that is `Committing` also decides which of its tokens a step commits
(`guided.diffusion.baselines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.denoiser import Canvas
from guided.errors import GuidedError

__all__ = [
    "Commit",
    "Committing",
    "Free",
    "Law",
    "Proposal",
    "Standing",
    "check_temperature",
    "end_for_pad",
    "folded",
    "log_softmax",
    "pinned",
    "tempered",
    "without",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Proposal:
    """The law of each position, ``[L, width]``, and a token for each, ``[L]``; at known positions the known one.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> canvas = diffusion.blank(denoiser, [], 2, fixed={0: 1})
    >>> scores, chance = denoiser.scores([canvas])[0], np.random.default_rng(0)
    >>> found = diffusion.Free().proposal(diffusion.Standing(canvas), scores, chance)
    >>> found.tokens.tolist(), np.asarray(found.probabilities)[1].round(2).tolist()
    ([1, 1], [0.2, 0.8, 0.0])
    """

    probabilities: Array
    tokens: NDArray[np.int64]
    n_text: int | None = None
    """Where the tokens are together one text and its end: how many stand before the end.  None: they are not, or the
    text does not end here."""

    @property
    def behind(self) -> NDArray[np.bool_]:
        """``bool[L]``: positions behind the end of the text, which say nothing but how long it is."""
        return np.arange(len(self.tokens)) > (len(self.tokens) if self.n_text is None else self.n_text)


@dataclass(frozen=True, eq=False)
class Standing:
    """A canvas within its text.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> standing = diffusion.Standing(diffusion.blank(denoiser, [], 2, fixed={0: 1}))
    >>> standing.canvas.unknown, standing.written
    (1, ())
    """

    canvas: Canvas
    written: tuple[int, ...] = ()
    """The text's tokens before the canvas, which the model reads as the end of its prompt."""
    room: int = 0
    """Positions of the text after the canvas."""
    ahead: Mapping[int, int] = field(default_factory=dict)
    """Tokens that are fixed there, by position from the canvas's end on."""
    proposed: NDArray[np.int64] | None = None
    """What the step before proposed for the canvas: under a constraint a text that fits all that is known."""
    left: Any = None
    """What a `Committing` law left for its next step; None in the first."""


class Law(Protocol):
    """From scores to what may be committed.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> laws: list[diffusion.Law] = [diffusion.Free(), diffusion.Free(never=frozenset({0}))]
    >>> canvas = diffusion.blank(denoiser, [], 2)
    >>> scores = denoiser.scores([canvas])[0]
    >>> [law.proposal(diffusion.Standing(canvas), scores, np.random.default_rng(0)).tokens.tolist() for law in laws]
    [[0, 0], [1, 1]]
    """

    def proposal(self, at: Standing, scores: NDArray[np.float32], chance: np.random.Generator) -> Proposal:
        """The law of each position given the canvas and the model's scores ``[L, width]``."""


@dataclass(frozen=True, eq=False)
class Commit:
    """What a `Committing` law did in a step."""

    canvas: Canvas
    """The canvas after it.  Positions may have been taken back."""
    left: Any = None
    """What it reads in its next step."""
    whole: tuple[int, ...] | None = None
    """The text, where it ends here whatever is left of the canvas: given up, or completed by other means.  It need not
    fit the canvas."""


@runtime_checkable
class Committing(Protocol):
    """A law that reads commits one by one and may refuse them; the policy only says how many a step has."""

    def proposal(self, at: Standing, scores: NDArray[np.float32], chance: np.random.Generator) -> Proposal:
        """As of a `Law`."""

    def commit(self, at: Standing, proposal: Proposal, end: int, n: int, chance: np.random.Generator) -> Commit:
        """Commit about ``n`` unknown positions before ``end``, where the block ends, or end the text.

        In a bounded number of steps a text is written.
        """


@dataclass(frozen=True)
class Free:
    """Each position by itself: its likeliest token, or with a ``temperature`` above 0 one that is drawn.

    Ids ``never`` are not proposed.  The law is the model's own; the temperature changes what is drawn from it.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> never_0 = diffusion.Free(never=frozenset({0}))
    >>> diffusion.denoise(denoiser, [diffusion.Job((), 2, law=never_0)])[0].tokens
    (1, 1)
    >>> drawn = [diffusion.Job((), 2, law=diffusion.Free(temperature=1.0))] * 40
    >>> texts = diffusion.denoise(denoiser, drawn, chance=0)
    >>> sum(text.tokens[0] == text.tokens[1] for text in texts) > 25  # four in five would agree
    True
    """

    temperature: float = 0.0
    never: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def proposal(self, at: Standing, scores: NDArray[np.float32], chance: np.random.Generator) -> Proposal:
        """The model's law, and a token of each position's own."""
        logp = log_softmax(without(scores, self.never))
        if self.temperature > 0:
            tokens = (logp / self.temperature + chance.gumbel(size=logp.shape)).argmax(1)
        else:
            tokens = logp.argmax(1)
        return pinned(at.canvas, np.exp(logp), tokens)


def pinned(canvas: Canvas, probabilities: Array, tokens: NDArray[np.int64]) -> Proposal:
    """A proposal that has known positions as they are."""
    places = np.flatnonzero(canvas.known)
    probabilities[places] = 0.0
    probabilities[places, canvas.tokens[places]] = 1.0
    return Proposal(probabilities, np.where(canvas.known, canvas.tokens, tokens))


def without(scores: NDArray[np.float32], never: Iterable[int]) -> NDArray[np.float32]:
    """The scores in which some ids cannot be written."""
    ids = list(never)
    if not ids:
        return scores
    left = scores.copy()
    left[:, ids] = -np.inf
    return left


def log_softmax(scores: NDArray[np.float32]) -> Array:
    """Natural logarithms of probabilities in float64; raises `GuidedError` where a position has no token left."""
    wide = scores.astype(np.float64)
    best = wide.max(1, keepdims=True)
    if not np.isfinite(best).all():
        place = int(np.flatnonzero(~np.isfinite(best[:, 0]))[0])
        raise GuidedError(
            f"the model's scores of position {place} are {best[place, 0]}",
            remedy="Check its weights and dtype: a score must be finite, or -inf for what is never written.",
        )
    shifted = wide - best
    normalised: Array = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return normalised


def tempered(logp: Array, temperature: float) -> Array:
    """The laws with a temperature above 0, normalised."""
    if temperature in (0.0, 1.0):
        return logp
    scaled = logp / temperature
    best = scaled.max(1, keepdims=True)
    normalised: Array = scaled - best - np.log(np.exp(scaled - best).sum(1, keepdims=True))
    return normalised


def folded(logp: Array, end: int | None, pad_id: int | None) -> Array:
    """The laws in which the probability of padding counts as that of the end, in place; as they are without ``end``.

    A position by itself does not know which end is the first, and so whether the model writes an end there or what it
    writes behind one.
    """
    if end is not None:
        logp[:, end] = np.logaddexp(logp[:, end], logp[:, pad_id])
        logp[:, pad_id] = -np.inf
    return logp


def end_for_pad(ends: Iterable[int], pad_id: int | None) -> int | None:
    """The end-of-text id as which padding is read, None where nothing is to be read so."""
    return None if pad_id is None or pad_id in ends else min(ends, default=None)


def check_temperature(temperature: float) -> None:
    """Raise `GuidedError` for a temperature that is none."""
    if not (temperature >= 0 and np.isfinite(temperature)):
        raise GuidedError(f"temperature is {temperature}", remedy="It must be 0 or more, and finite.")
