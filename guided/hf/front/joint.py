"""Where a prompt and its generated text meet: `heal=` and `canonical=` of `guided.generate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guided.constraint.constraint import Constraint
from guided.constraint.protocol import Constrains
from guided.constraint.spelling.canonical import canonical as make_canonical
from guided.constraint.spelling.healing import heal as take_back
from guided.errors import UnsupportedError

__all__ = ["Joint", "joined_as_asked"]


@dataclass(frozen=True)
class Joint:
    """Where a prompt and its generated text meet."""

    ids: Sequence[int]
    constraint: Constrains
    removed: bytes = b""
    """The end of the prompt that is generated again."""


def joined_as_asked(joint: Joint, tokenizer: Any, heal: bool, canonical: bool, encoder_decoder: bool) -> Joint:
    """The joint with the end of its prompt taken back, and with the tokenizer's own spelling, where that is asked for.

    Raises `UnsupportedError` for encoder-decoder models, whose prompt has no end to heal, and other constraints.
    """
    ids, constraint, removed = joint.ids, joint.constraint, joint.removed
    if heal:
        if encoder_decoder or not isinstance(constraint, Constraint):
            raise UnsupportedError(
                "only the prompt of a decoder-only model can be healed, before a grammar or a guided.Constraint",
                remedy="Leave out heal=True.",
            )
        healed = take_back(ids, tokenizer, constraint)
        ids, constraint, removed = healed.prompt_ids, healed.constraint, healed.removed
    if canonical:
        constraint = make_canonical(constraint, tokenizer, before=() if encoder_decoder else ids)
    return Joint(ids, constraint, removed)
