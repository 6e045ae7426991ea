"""`Job`: one text that a scheduler is asked for.  Several texts of a prompt are several jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.constraint.protocol import Constrains
    from guided.draft.auto import Drafting
    from guided.server.scheduling.biases import Biases
    from guided.steer import Stack

__all__ = ["Job"]


@dataclass(frozen=True, eq=False)
class Job:
    """One text: what it follows, what it must be, and how it is drawn.

    A text of a constraint is whole within ``max_new_tokens``, its end-of-text token included.  Raises `GuidedError` for
    numbers that make no sense, naming the field.
    """

    prompt: tuple[int, ...]
    """Token ids, at least one; what jobs begin with alike is computed once."""
    constraint: Constrains | None = None
    """None leaves the text free."""
    max_new_tokens: int = 256
    temperature: float = 1.0
    """0 is greedy: the likeliest allowed token, the first of equal ones."""
    top_p: float = 1.0
    top_k: int = 0
    """0 is all tokens.  Truncation follows the mask and the temperature, top-k before top-p, as in transformers."""
    seed: int | None = None
    """What the draws depend on; None: nothing that anybody knows.  Each token takes one number of the job's own."""
    stop: tuple[str, ...] = ()
    """Texts at which the text ends, without them."""
    alternatives: int = 0
    """How many of the likeliest tokens each `Token` lists, by either law."""
    steer: Stack | None = None
    draft: Drafting | None = None
    client: str = ""
    """Whose job it is: clients take turns in the queue, however many jobs each has."""
    biases: Biases | None = None
    """What is added to the logits, behind steering and before the mask; a job with a draft has none."""

    def __post_init__(self) -> None:
        for where, wrong, what in (
            ("prompt", not self.prompt, "the prompt has no tokens"),
            ("max_new_tokens", self.max_new_tokens < 1, f"max_new_tokens is {self.max_new_tokens}"),
            ("temperature", not 0 <= self.temperature < float("inf"), f"the temperature is {self.temperature}"),
            ("top_p", not 0 < self.top_p <= 1, f"top_p is {self.top_p}"),
            ("top_k", self.top_k < 0, f"top_k is {self.top_k}"),
            ("seed", self.seed is not None and self.seed < 0, f"the seed is {self.seed}"),
            ("stop", not all(self.stop), "a stop string is empty"),
            ("alternatives", self.alternatives < 0, f"{self.alternatives} alternatives"),
            ("biases", bool(self.biases and self.draft), "a draft is verified by the law without biases"),
        ):
            if wrong:
                raise GuidedError(what, where=where, remedy=REMEDIES[where])


REMEDIES = {
    "prompt": "Begin with the tokenizer's beginning-of-text id, or with any other.",
    "max_new_tokens": "Ask for at least one token.",
    "temperature": "Pass 0 for greedy decoding, or a positive number.",
    "top_p": "Pass a number above 0, at most 1, which keeps all tokens.",
    "top_k": "Pass a number of tokens, or 0 to keep all.",
    "seed": "Pass a number that is not negative.",
    "stop": "Leave it out.",
    "alternatives": "Pass a number of tokens, or 0.",
    "biases": "Leave out one of the two.",
}
"""What to do about a field, by its name."""
