"""`Generation`: one generated text, and how it is read off its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guided.hf.constraints import is_whole, named_special_ids
from guided.hf.front.request import Prompt
from guided.reading.text import Text
from guided.vocab import Vocabulary

if TYPE_CHECKING:
    from guided.diffusion import Denoised
    from guided.draft import Statistics
    from guided.infer.analysis.distortion import Distortion

__all__ = ["Generation", "generation_of"]


@dataclass(frozen=True)
class Generation(Text):
    """One text that `guided.generate` made.

    >>> import guided.hf
    >>> made = guided.generate(guided.hf.load(), "The answer: ", guided.regex("[0-9]{2}"), max_new_tokens=8)
    >>> len(made.text), made.finished, made.value == made.text
    (2, True, True)
    """

    drafts: Statistics | None = None
    """What the whole call cost in which this text was made, and what drafts gave; None without a draft."""
    denoised: Denoised | None = None
    """How a denoiser filled the canvas, step by step; None where the model is none."""
    distortion: Distortion | None = None
    """What the grammar took before each token from the model, without steering and at temperature 1; a notebook colours
    by it.  None without ``distortion=True``."""
    thought: str | None = None
    """The draft without the grammar that this text is conditioned on; None without ``think=``."""

    def _repr_html_(self) -> str:
        return super()._repr_html_() if self.distortion is None else self._card(self.distortion.marked())


def generation_of(
    prompt: Prompt,
    ids: Sequence[int],
    vocabulary: Vocabulary,
    drafts: Statistics | None = None,
    denoised: Denoised | None = None,
) -> Generation:
    """What was generated after a prompt, from its ids up to an end or where it was cut."""
    ends = [i for i, token in enumerate(ids) if token in vocabulary.eos_ids]
    tokens = ids[: ends[0]] if ends else ids
    constraint = prompt.constraint
    named = {} if constraint is None else named_special_ids(constraint)
    known = [token for token in tokens if 0 <= token < vocabulary.size]
    data = b"".join(named.get(token, "").encode() or vocabulary.token_bytes(token) or b"" for token in known)
    # A text that was cut from outside may end within a character, or within what was taken back from the prompt.
    text = data[len(prompt.removed) :].decode("utf-8", errors="replace")
    finished = bool(ends) if constraint is None else is_whole(constraint, tokens)
    return Generation(text, tuple(tokens), finished, prompt.read, drafts, denoised)
