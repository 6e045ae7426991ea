"""Texts under a constraint, by what the command line asks for: a sampler, a search, or the masked model itself.

Nothing here imports torch before a model runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guided.cli.methods.options import Decoding, SamplingOptions, searches
from guided.cli.methods.replaying import check_replayed, write_canvas
from guided.cli.methods.sampling import sample_text
from guided.cli.methods.searching import search_text
from guided.cli.models import generate_batch

if TYPE_CHECKING:
    from guided.cli.methods.steered import Steered
    from guided.constraint.constraint import Constraint
    from guided.draft import Statistics

__all__ = ["Written", "compares_texts", "write_texts"]


@dataclass(frozen=True)
class Written:
    """One text under the constraint, and how many tokens it took."""

    text: str
    tokens: int
    facts: dict[str, Any]
    """What a sampler, a search or a draft says of all the texts that it found, as JSON data."""
    drafts: Statistics | None = None


def compares_texts(sampling: SamplingOptions) -> bool:
    """True where many texts are written for a prompt and one is chosen; prompts are then taken one by one."""
    return sampling.sampler is not None or searches(sampling)


def write_texts(
    ready: Steered,
    prompts: Sequence[Any],
    constraint: Constraint,
    how: Decoding,
    *,
    max_new_tokens: int,
    processors: Sequence[Any] = (),
    quiet: bool = False,
) -> list[Written]:
    """One whole text for each prompt; ``processors`` see the model's scores where no texts are compared.

    Raises `LimitError` where a sampler or a search finds no text.
    """
    sampling = ready.sampling
    if searches(sampling):
        found = [
            search_text(ready, prompt, constraint, max_new_tokens=max_new_tokens, quiet=quiet) for prompt in prompts
        ]
        return [Written(each.text, each.tokens, each.record()) for each in found]
    if sampling.sampler is not None:
        drawn = [
            sample_text(ready, prompt, constraint, max_new_tokens=max_new_tokens, how=how, quiet=quiet)
            for prompt in prompts
        ]
        return [Written(each.text, each.tokens, each.record()) for each in drawn]
    if sampling.replay is not None:
        check_replayed(ready.loaded)
    made = generate_batch(
        ready.loaded,
        prompts,
        constraint,
        max_new_tokens=max_new_tokens,
        how=how,
        processors=processors,
        draft=ready.drafting,
        steer=ready.stack if sampling.steer else None,
        quiet=quiet,
    )
    if sampling.replay is not None:
        write_canvas(made[0], constraint, sampling.replay)
    return [
        Written(
            each.text,
            len(each.token_ids),
            {} if each.drafts is None else {"drafts": each.drafts.record()},
            each.drafts,
        )
        for each in made
    ]
