"""`Generation`: one generated text, and how it is read off its tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from guided.errors import TextError
from guided.hf.constraints import is_whole, named_special_ids
from guided.hf.front.request import Prompt
from guided.vocab import Vocabulary

if TYPE_CHECKING:
    from guided.draft import Statistics

__all__ = ["Generation", "generation_of"]


@dataclass(frozen=True)
class Generation:
    """One generated text."""

    text: str
    """The generated text alone: no prompt, and of special tokens the names of those that the grammar asks for."""
    token_ids: tuple[int, ...]
    """Its tokens, without the end-of-text id and padding."""
    finished: bool
    """True when this is a whole text of the grammar; False if another stopping criterion cut it."""
    drafts: Statistics | None = None
    """What the whole call cost in which this text was made, and what drafts gave; None without a draft."""
    read: Callable[[str], Any] = field(default=str, repr=False, compare=False)
    """From a whole text to `value`."""

    @cached_property
    def value(self) -> Any:
        """What the text says: an object of the type that was the grammar, the data of a JSON Schema, else the text.

        Raises what the type's validation raises where it asks for more than its schema says, and `TextError` for a text
        that was cut.
        """
        if not self.finished:
            raise TextError("the text was cut before it was whole", remedy="Look at `text`, or raise max_new_tokens.")
        return self.read(self.text)


def generation_of(
    prompt: Prompt, ids: Sequence[int], vocabulary: Vocabulary, drafts: Statistics | None = None
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
    return Generation(text, tuple(tokens), finished, drafts, prompt.read)
