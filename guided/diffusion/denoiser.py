"""The interface between denoisers and everything that decodes with them: `Denoiser`, `Canvas`, `Noise`.

A denoiser reads a prompt and a canvas, a row of positions of which some are known, and scores the token **at** each
position.  `guided.lm` is the interface to models that score the next token.  Nothing here computes a score, and nothing
here knows a constraint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guided.errors import GuidedError, UnsupportedError

__all__ = ["Canvas", "Denoiser", "Noise", "blank", "check_canvases", "check_room"]


class Noise(Enum):
    """What stands at a position that is not known.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> denoiser.noise.value, denoiser.mask_id, [noise.value for noise in diffusion.Noise]
    ('masked', 2, ['masked', 'uniform'])
    """

    MASKED = "masked"
    """One mask token, which says so (LLaDA, Dream, masked language models)."""
    UNIFORM = "uniform"
    """Any token: the model is not told which positions are noise (DiffusionGemma)."""


@dataclass(frozen=True, eq=False)
class Canvas:
    """A prompt and the positions after it, some of them known; the arrays may not be written to.

    Raises `GuidedError` for arrays of other shapes than ``[L]``.

    >>> canvas = Canvas([5, 9, 9], [True, False, False], prompt=(1, 2))
    >>> len(canvas), canvas.unknown, canvas.filled([1], [7]).tokens.tolist()
    (3, 2, [5, 7, 9])
    """

    tokens: NDArray[np.int64]
    """``[L]``: the known tokens, and at the other positions what the model reads there, its mask or noise."""
    known: NDArray[np.bool_]
    """``[L]``: True where the token is given or committed."""
    prompt: tuple[int, ...] = ()
    """What the model reads before the canvas; all of it known."""

    def __post_init__(self) -> None:
        tokens, known = np.array(self.tokens, np.int64), np.array(self.known, bool)
        if tokens.ndim != 1 or tokens.shape != known.shape:
            raise GuidedError(
                f"a canvas of {tokens.shape} tokens has {known.shape} marks of what is known",
                remedy="Pass one token and one mark for each position.",
            )
        tokens.setflags(write=False)
        known.setflags(write=False)
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "prompt", tuple(map(int, self.prompt)))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def unknown(self) -> int:
        """How many positions are not known."""
        return int(len(self) - self.known.sum())

    def filled(self, positions: ArrayLike, tokens: ArrayLike) -> Canvas:
        """The canvas with tokens committed at positions."""
        places = np.asarray(positions, np.int64)
        written, known = self.tokens.copy(), self.known.copy()
        written[places], known[places] = np.asarray(tokens, np.int64), True
        return Canvas(written, known, self.prompt)

    def cleared(self, positions: ArrayLike, noise: ArrayLike) -> Canvas:
        """The canvas with positions made unknown again; ``noise`` are the tokens that stand there, or the mask."""
        places = np.asarray(positions, np.int64)
        written, known = self.tokens.copy(), self.known.copy()
        written[places], known[places] = np.asarray(noise, np.int64), False
        return Canvas(written, known, self.prompt)


@runtime_checkable
class Denoiser(Protocol):
    """Scores of the token at every position of a canvas, given all that is known of it.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> model: diffusion.Denoiser = denoiser
    >>> model.width, model.mask_id, model.noise.value
    (3, 2, 'masked')
    >>> np.exp(model.scores([diffusion.blank(model, [], 2, fixed={0: 1})])[0, 1].astype(float)).round(2).tolist()
    [0.2, 0.8, 0.0]
    """

    @property
    def width(self) -> int:
        """Number of ids scored, the mask among them; may exceed the tokenizer's."""

    @property
    def mask_id(self) -> int | None:
        """The id that stands at unknown positions; None for uniform noise."""

    @property
    def noise(self) -> Noise:
        """What stands at unknown positions."""

    @property
    def eos_ids(self) -> frozenset[int]:
        """The ids that end a text; the positions after the first of them hold such ids, or ``pad_id``."""

    @property
    def pad_id(self) -> int | None:
        """The id that the model writes after the end of a text where that is not an end-of-text id."""

    @property
    def block(self) -> int | None:
        """The one length of canvas that the model knows: longer texts are written block by block, and a block that is
        finished joins the prompt.  None: canvases of any length."""

    @property
    def window(self) -> int | None:
        """How many unknown positions at once the model was trained on; longer texts are shown it part by part."""

    @property
    def longest(self) -> int | None:
        """The most tokens of prompt and canvas together; None where there is no bound."""

    def scores(self, canvases: Sequence[Canvas]) -> NDArray[np.float32]:
        """Logits ``[len(canvases), L, width]`` of the token at each position, in a new array, not normalised.

        The canvases have one length; prompts may differ.  Known positions are scored too.  An id that the model never
        writes, its mask for one, has -inf.  Cost: one forward pass.  Raises as `check_canvases` does.
        """


def check_room(denoiser: Denoiser, prompt: int, length: int) -> None:
    """Raise `GuidedError` where ``prompt`` and ``length`` tokens are more than the model reads."""
    if denoiser.longest is not None and prompt + length > denoiser.longest:
        raise GuidedError(
            f"the prompt has {prompt} tokens and the canvas {length}, but the model reads at most {denoiser.longest}",
            remedy="Shorten the prompt, or ask for fewer new tokens.",
        )


def check_canvases(denoiser: Denoiser, canvases: Sequence[Canvas]) -> None:
    """Raise `GuidedError` for canvases that the denoiser cannot score together, or at all."""
    lengths = {len(canvas) for canvas in canvases}
    if len(lengths) > 1:
        raise GuidedError(
            f"the canvases have lengths {sorted(lengths)}", remedy="Score canvases of one length at a time."
        )
    for canvas in canvases:
        check_room(denoiser, len(canvas.prompt), len(canvas))
        if denoiser.block is not None and len(canvas) != denoiser.block:
            raise GuidedError(
                f"the canvas has {len(canvas)} positions, but the model denoises blocks of {denoiser.block}",
                remedy="Pass one block; those before it belong to the prompt.",
            )
        ids = [*canvas.prompt, *canvas.tokens.tolist()]
        outside = next((token for token in ids if not 0 <= token < denoiser.width), None)
        if outside is not None:
            raise GuidedError(f"the model has no id {outside}", remedy=f"Pass ids below {denoiser.width}.")


def blank(
    denoiser: Denoiser,
    prompt: Sequence[int],
    length: int,
    fixed: Mapping[int, int] | None = None,
    *,
    chance: np.random.Generator | None = None,
) -> Canvas:
    """The canvas that decoding begins with: noise, but for tokens ``fixed`` by position.

    Uniform noise is drawn by ``chance``.  Raises `UnsupportedError` for a masked model without a mask token,
    `GuidedError` for a length below 1, fixed positions outside the canvas, fixed masks, and too little room.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> canvas = diffusion.blank(denoiser, [5], 2, fixed={1: 0})
    >>> canvas.tokens.tolist(), canvas.unknown, canvas.prompt
    ([2, 0], 1, (5,))
    """
    if length < 1:
        raise GuidedError(f"a canvas of {length} positions", remedy="Ask for at least one.")
    check_room(denoiser, len(prompt), length)
    if denoiser.noise is Noise.UNIFORM:
        rng = chance or np.random.default_rng(0)
        tokens = rng.integers(0, denoiser.width, length)
    elif denoiser.mask_id is None:
        raise UnsupportedError(
            "the model has no mask token, so it cannot be told which positions to fill",
            remedy="Use a masked language model, or one trained on uniform noise.",
        )
    else:
        tokens = np.full(length, denoiser.mask_id)
    canvas = Canvas(tokens, np.zeros(length, bool), tuple(prompt))
    if not fixed:
        return canvas
    outside = next((place for place in fixed if not 0 <= place < length), None)
    if outside is not None:
        raise GuidedError(
            f"position {outside} is fixed, but the canvas has {length}", remedy="Count positions from 0, in the canvas."
        )
    masked = next((place for place, token in fixed.items() if token == denoiser.mask_id), None)
    if masked is not None:
        raise GuidedError(
            f"the mask is fixed at position {masked}", remedy="Leave out positions that are not known, or fix a token."
        )
    return canvas.filled(list(fixed), list(fixed.values()))
