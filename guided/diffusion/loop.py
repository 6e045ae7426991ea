"""The one loop of all decoders: score, propose, commit, until the canvas is full.

What a step proposes is a `Law`'s matter, how much of it is committed a `Policy`'s, and where blocks end that of
`Blocks`; the loop holds the canvas.  Texts go in step, one forward pass for all of them; each is a generator that asks
for scores.  A model of fixed blocks writes one canvas after the other, and finished ones join the prompt.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guided.diffusion.denoiser import Canvas, Denoiser, Noise, blank, check_room
from guided.diffusion.law import Commit, Committing, Free, Law, Standing
from guided.diffusion.policies import Blocks, FixedBlocks, Policy, Threshold, View
from guided.errors import GuidedError, UnsupportedError

__all__ = ["Denoised", "Denoising", "Frame", "Job", "denoise"]

Asking = Generator[list[Canvas], NDArray[np.float32], "Denoised"]


@dataclass(frozen=True)
class Denoising:
    """How canvases are filled.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> how = diffusion.Denoising(diffusion.LowConfidence(steps=1))  # both positions at once
    >>> diffusion.denoise(denoiser, [diffusion.Job((), 2)], how)[0].passes
    1
    >>> diffusion.denoise(denoiser, [diffusion.Job((), 2)])[0].passes  # by default as many as are sure
    2
    """

    policy: Policy = field(default_factory=Threshold)
    """How much a step commits."""
    blocks: Blocks = field(default_factory=FixedBlocks)
    """Which positions come first."""
    drafts: int = 0
    """Steps guessed ahead of each pass, with its own scores, and verified together by the next: FreeDave ("Free Draft-
    and-Verification", 2025).  The texts are those without; each pass scores up to so many canvases more."""
    joined: bool = False
    """Finished blocks join the prompt, as they do where the model knows no other way: a model that caches its prompt
    reads them once, and then does not see what comes after them."""

    def __post_init__(self) -> None:
        if self.drafts < 0:
            raise GuidedError(f"{self.drafts} drafts", remedy="Ask for 0 or more.")


@dataclass(frozen=True)
class Job:
    """One text to write.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> jobs = [diffusion.Job((), 2, fixed={0: token}) for token in (0, 1)]
    >>> [text.tokens for text in diffusion.denoise(denoiser, jobs)]
    [(0, 0), (1, 1)]
    """

    prompt: tuple[int, ...]
    length: int
    """Positions, the end-of-text token among them where there is one."""
    law: Law = field(default_factory=Free)
    fixed: Mapping[int, int] = field(default_factory=dict)
    """Tokens that are given, by position."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What one step did; ``proposed`` and ``confidence`` are those of its canvas, which begins at ``start``.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> for frame in diffusion.denoise(denoiser, [diffusion.Job((), 2)])[0].frames:
    ...     print(frame.committed.tolist(), frame.proposed.tolist(), frame.confidence.round(2).tolist())
    [True, False] [0, 0] [0.5, 0.5]
    [False, True] [0, 0] [1.0, 0.8]
    """

    start: int
    committed: NDArray[np.bool_]
    proposed: NDArray[np.int64]
    confidence: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Denoised:
    """A text that was written.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> text = diffusion.denoise(denoiser, [diffusion.Job((), 2, fixed={0: 1})])[0]
    >>> text.tokens, text.n_text, text.passes, len(text.frames)
    ((1, 1), 2, 1, 1)
    """

    tokens: tuple[int, ...]
    """All positions, what follows the end of the text included."""
    n_text: int
    """How many of them are text: those before the first end-of-text token."""
    frames: tuple[Frame, ...]
    """The steps, in order."""
    passes: int
    """Forward passes that the text waited for; fewer than steps where drafts were right."""
    scored: int
    """Canvases scored."""

    @property
    def text(self) -> tuple[int, ...]:
        """The tokens before the end."""
        return self.tokens[: self.n_text]


@dataclass(frozen=True)
class _Place:
    """Where a canvas stands: its present block ends at ``end``, None before that is known."""

    at: Standing
    end: int | None = None
    step: int = 0
    before: tuple[View, ...] = ()
    whole: tuple[int, ...] | None = None
    """The text, where its law ended it here."""

    @property
    def canvas(self) -> Canvas:
        return self.at.canvas


def denoise(
    denoiser: Denoiser,
    jobs: Sequence[Job],
    how: Denoising | None = None,
    chance: np.random.Generator | int | None = None,
) -> list[Denoised]:
    """Write the texts, in order.  Every step commits at least one position, so there are at most ``length`` a text.

    Raises `GuidedError` for prompts and lengths that the model has no room for, before it computes anything, and
    `UnsupportedError` for drafts with what is random, which they cannot foresee.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> (text,) = diffusion.denoise(denoiser, [diffusion.Job((), 2)])
    >>> text.tokens, text.passes  # first one position, then the other, which agrees
    ((0, 0), 2)
    >>> (text,) = diffusion.denoise(denoiser, [diffusion.Job((), 2, fixed={1: 1})])
    >>> text.tokens
    (1, 1)
    """
    how = how or Denoising()
    rng = np.random.default_rng(chance)
    for job in jobs:
        if job.length < 1:
            raise GuidedError(f"a text of {job.length} tokens", remedy="Ask for at least one.")
        outside = next((place for place in job.fixed if not 0 <= place < job.length), None)
        if outside is not None:
            raise GuidedError(
                f"position {outside} is fixed, but the text has {job.length}", remedy="Count positions from 0."
            )
        check_room(denoiser, len(job.prompt), _rounded(denoiser, job.length))
        if how.drafts and (denoiser.noise is Noise.UNIFORM or getattr(job.law, "temperature", 0.0) > 0):
            raise UnsupportedError(
                "drafts are verified by repeating a step, and a random one is not repeated",
                remedy="Leave out drafts, or use a masked model and temperature 0.",
            )
        if how.drafts and isinstance(job.law, Committing):
            raise UnsupportedError(
                f"{type(job.law).__name__} decides itself what a step commits, and drafts cannot foresee it",
                remedy="Leave out drafts.",
            )
    writers = [_written(denoiser, job, how, rng) for job in jobs]
    results: list[Denoised | None] = [None] * len(jobs)
    asked: dict[int, list[Canvas]] = {}
    answers: dict[int, NDArray[np.float32] | None] = dict.fromkeys(range(len(jobs)))
    while answers:
        asked = {}
        for number, answer in answers.items():
            try:
                # None begins it.
                asked[number] = writers[number].send(answer)  # type: ignore[arg-type]
            except StopIteration as stop:
                results[number] = stop.value
        answers = dict(_scored(denoiser, asked))
    return [result for result in results if result is not None]


def _scored(denoiser: Denoiser, asked: Mapping[int, list[Canvas]]) -> dict[int, NDArray[np.float32]]:
    """The scores of the canvases that each text asks for, one pass for each length."""
    found: dict[int, NDArray[np.float32]] = {}
    for length in sorted({len(canvases[0]) for canvases in asked.values()}):
        numbers = [number for number, canvases in asked.items() if len(canvases[0]) == length]
        scores = denoiser.scores([canvas for number in numbers for canvas in asked[number]])
        at = 0
        for number in numbers:
            found[number] = scores[at : at + len(asked[number])]
            at += len(asked[number])
    return found


def _rounded(denoiser: Denoiser, length: int) -> int:
    return length if denoiser.block is None else -(-length // denoiser.block) * denoiser.block


def _written(denoiser: Denoiser, job: Job, how: Denoising, rng: np.random.Generator) -> Asking:
    """One text: asks for the scores of canvases, and returns what it wrote."""
    frames: list[Frame] = []
    done: tuple[int, ...] = ()
    passes = scored = 0
    left = None
    while len(done) < job.length and not denoiser.eos_ids.intersection(done):
        # A text without an end so far: the next block, or the next part of it.
        place = _begun(denoiser, job, done, rng, left)
        if _is_over(denoiser, place.canvas) and not isinstance(job.law, Free):
            # All is given: the law is asked whether that is a text of its own.
            (scores,) = yield [place.canvas]
            passes, scored = passes + 1, scored + 1
            job.law.proposal(place.at, scores, rng)
        ahead = [place]
        while not _is_over(denoiser, place.canvas):
            found = yield [each.canvas for each in ahead]
            passes, scored = passes + 1, scored + len(ahead)
            for number, scores in enumerate(found):
                place, frame = _stepped(denoiser, place, scores, job, how, rng)
                frames.append(frame)
                if place.whole is not None:
                    return Denoised(place.whole, len(place.whole), tuple(frames), passes, scored)
                # A draft whose canvas is the real one was scored as that.
                if number + 1 == len(ahead) or not _are_same(place.canvas, ahead[number + 1].canvas):
                    break
            ahead = [place, *_drafts(denoiser, place, scores, job, how, rng)]
        done, left = (*place.at.written, *place.canvas.tokens.tolist()), place.at.left
    ends = [i for i, token in enumerate(done) if token in denoiser.eos_ids]
    n_text = ends[0] if ends else min(len(done), job.length)
    tail = done[n_text] if ends else 0
    tokens = (*done[:n_text], *[tail] * (job.length - n_text))
    return Denoised(tokens, n_text, tuple(frames), passes, scored)


def _begun(denoiser: Denoiser, job: Job, done: tuple[int, ...], rng: np.random.Generator, law_left: Any) -> _Place:
    """The next canvas of a text; positions beyond the text's length hold what the model writes after an end."""
    left = job.length - len(done)
    if denoiser.block is None and denoiser.window is not None and denoiser.window < job.length:
        length = min(job.length, len(done) + denoiser.window)
        known = {place: token for place, token in job.fixed.items() if place < length} | dict(enumerate(done))
        canvas = blank(denoiser, job.prompt, length, known, chance=rng)
        return _Place(Standing(canvas, (), job.length - length, _behind(job, length), left=law_left))
    length = left if denoiser.block is None else denoiser.block
    fixed = {place - len(done): token for place, token in job.fixed.items() if 0 <= place - len(done) < length}
    tail = denoiser.pad_id if denoiser.pad_id is not None else min(denoiser.eos_ids, default=None)
    if left < length and tail is not None:
        fixed |= dict.fromkeys(range(left, length), tail)
    canvas = blank(denoiser, (*job.prompt, *done), length, fixed, chance=rng)
    return _Place(Standing(canvas, done, max(0, left - length), _behind(job, len(done) + length), left=law_left))


def _behind(job: Job, end: int) -> dict[int, int]:
    """The fixed tokens behind a canvas."""
    return {place - end: token for place, token in job.fixed.items() if place >= end}


def _is_over(denoiser: Denoiser, canvas: Canvas) -> bool:
    """Whether nothing is left to decode: all is known, or an end of text and all before it."""
    unknown = np.flatnonzero(~canvas.known)
    if not len(unknown):
        return True
    return bool(np.isin(canvas.tokens[: unknown[0]], list(denoiser.eos_ids)).any())


def _are_same(one: Canvas, other: Canvas) -> bool:
    """Whether the model reads the same, and the same positions are known."""
    return (
        one.prompt == other.prompt
        and np.array_equal(one.tokens, other.tokens)
        and np.array_equal(one.known, other.known)
    )


def _drafts(
    denoiser: Denoiser, place: _Place, scores: NDArray[np.float32], job: Job, how: Denoising, rng: np.random.Generator
) -> list[_Place]:
    """The next steps as they would be if the scores stayed what they were, up to where the prompt changes."""
    drafts: list[_Place] = []
    length = len(place.canvas)
    while len(drafts) < how.drafts and not _is_over(denoiser, place.canvas):
        # A block may have joined the prompt since.
        place, _ = _stepped(denoiser, place, scores[len(scores) - length :], job, how, rng)
        if len(place.canvas) < length or _is_over(denoiser, place.canvas):
            break
        drafts.append(place)
    return drafts


def _stepped(
    denoiser: Denoiser, place: _Place, scores: NDArray[np.float32], job: Job, how: Denoising, rng: np.random.Generator
) -> tuple[_Place, Frame]:
    """The place after one step, and what the step did."""
    canvas = place.canvas
    proposal = job.law.proposal(place.at, scores, rng)
    start = int(np.flatnonzero(~canvas.known)[0])
    end = how.blocks.end(start, proposal.probabilities) if place.end is None else place.end
    if not start < end <= len(canvas):
        raise GuidedError(f"{type(how.blocks).__name__} ends a block from {start} at {end}", remedy="Mend its end().")
    still = ~canvas.known & (np.arange(len(canvas)) < end)
    # Ends behind the end are no choices: no policy counts them, and they come with what is as sure.
    behind = still & proposal.behind
    counted = still if behind[still].all() else still & ~behind
    view = View(proposal.probabilities, proposal.tokens, counted, place.step, place.before)
    chosen = how.policy.commits(view)
    if not chosen.any() or (chosen & ~counted).any():
        raise GuidedError(
            f"{type(how.policy).__name__} commits positions {np.flatnonzero(chosen).tolist()}",
            remedy="A policy commits at least one open position, and no other.",
        )
    over = proposal.n_text is not None and (chosen | canvas.known)[proposal.n_text]
    chosen |= behind & (over | (view.confidence >= view.confidence[chosen].min()))
    if isinstance(job.law, Committing):
        made = job.law.commit(place.at, proposal, end, int(chosen.sum()), rng)
    else:
        places = np.flatnonzero(chosen)
        made = Commit(canvas.filled(places, proposal.tokens[places]))
    after = made.canvas
    if after.unknown:
        # A masked model without a mask token comes to no step.
        noise: ArrayLike = denoiser.mask_id or 0
        if denoiser.noise is Noise.UNIFORM:
            noise = rng.integers(0, denoiser.width, after.unknown)
        after = after.cleared(np.flatnonzero(~after.known), noise)
    shown = np.where(after.known, after.tokens, proposal.tokens)
    frame = Frame(len(place.at.written), after.known & ~canvas.known, shown, view.confidence)
    at = replace(place.at, canvas=after, proposed=proposal.tokens, left=made.left)
    if made.whole is not None:
        return _Place(at, whole=(*place.at.written, *made.whole)), frame
    if not after.known[:end].all():
        kept = (*place.before, replace(view, before=()))[-how.policy.memory :] if how.policy.memory else ()
        return _Place(at, end, place.step + 1, kept), frame
    if how.joined and denoiser.block is None and end < len(after):
        ended = tuple(after.tokens[:end].tolist())
        rest = Canvas(after.tokens[end:], after.known[end:], (*after.prompt, *ended))
        at = Standing(rest, (*at.written, *ended), at.room, at.ahead, proposal.tokens[end:], made.left)
    return _Place(at), frame
