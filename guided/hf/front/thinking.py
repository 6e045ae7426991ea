"""What ``think=`` of `guided.generate` means: a draft without the grammar first, and the answer conditioned on it.

DCCD: Reddy, Walker, Ide and Bedi, "Draft-Conditioned Constrained Decoding" (2026, arXiv 2603.03305): the first
text plans without being masked, the second is constrained and sees it.  Of several drafts the one is kept under which
the grammar takes the least away, the sum of the logarithms of the mass that the masks kept: reconstructed from the
paper's view of a projection, as its code joins drafts instead.  Nothing here generates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from guided.errors import GuidedError, UnsupportedError
from guided.hf.front.distorted import distortions_of
from guided.hf.front.encoding import is_conversation
from guided.hf.front.generation import Generation
from guided.hf.front.request import Request

__all__ = ["DraftFirst", "Think", "conditioned", "least_taken", "thinking_of"]


@dataclass(frozen=True)
class DraftFirst:
    """Write a text without the grammar, and then the one that is asked for, which is conditioned on it.

    Raises `GuidedError` for numbers below 1.
    """

    drafts: int = 1
    """How many are drawn; of the answers to them the best is kept."""
    max_new_tokens: int = 256
    """Tokens of a draft at most; one that is longer is cut."""
    between: str = "\n"
    """What comes between draft and answer where the prompt is a text."""
    ask: str = "Now give that answer alone, in the form that is required."
    """What the user says between draft and answer where the prompt is a conversation, or ``chat`` makes it one."""

    def __post_init__(self) -> None:
        if self.drafts < 1 or self.max_new_tokens < 1:
            raise GuidedError(f"{self.drafts} drafts of {self.max_new_tokens} tokens", remedy="Ask for at least 1.")


Think: TypeAlias = "DraftFirst | str"
"""What ``think=`` takes: ``"draft"`` for `DraftFirst` as it is, or one of your own."""


def thinking_of(think: Think | None) -> DraftFirst | None:
    """What ``think=`` says; raises `GuidedError` for anything else."""
    if think is None or isinstance(think, DraftFirst):
        return think
    if think == "draft":
        return DraftFirst()
    raise GuidedError(
        f"think is {think!r}", where="guided.generate", remedy='Pass "draft", or a guided.hf.front.thinking.DraftFirst.'
    )


def conditioned(prompt: Any, draft: str, think: DraftFirst, chat: bool) -> Any:
    """The prompt with a draft behind it: a text, or a conversation in which the model has said it.

    Raises `UnsupportedError` for token ids, which have no words to put it into.
    """
    if is_conversation(prompt) or (chat and isinstance(prompt, str)):
        said: Sequence[Mapping[str, str]] = (
            [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        )
        return [*said, {"role": "assistant", "content": draft}, {"role": "user", "content": think.ask}]
    if not isinstance(prompt, str):
        raise UnsupportedError("think= puts drafts into words", where="prompt", remedy="Pass a text or a conversation.")
    return prompt + draft + think.between


def least_taken(request: Request, results: Sequence[Generation]) -> int:
    """Which of the results kept most of the model's probability under its masks; the first among equals.

    Asks the model about all tokens again, one pass a result.
    """
    kept = [each.log_weight for each in distortions_of(request, results)]
    return kept.index(max(kept))
