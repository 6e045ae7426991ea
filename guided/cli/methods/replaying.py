"""``--replay`` without a sampler: how a denoiser filled its canvas, as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError

if TYPE_CHECKING:
    from pathlib import Path

    from guided.constraint.constraint import Constraint
    from guided.hf import LoadedModel

__all__ = ["check_replayed", "write_canvas"]


def check_replayed(loaded: LoadedModel) -> None:
    """Raise `GuidedError` for a model that writes token by token: without a sampler there is nothing to show."""
    from guided.hf.denoisers import is_denoiser

    if not is_denoiser(loaded):
        raise GuidedError(
            "a replay shows the run of a sampler, or of a denoiser",
            where="--replay",
            remedy="Add --sampler, such as --sampler smc, or use --model nano-diffusion.",
        )


def write_canvas(made: Any, constraint: Constraint, path: Path) -> None:
    """Write the page of a text that a denoiser made."""
    from guided.diffusion.replay_page import replay_page

    vocabulary = constraint.vocabulary

    def piece(token: int) -> str:
        known = 0 <= token < vocabulary.size
        return (vocabulary.token_bytes(token) or b"").decode("utf-8", "replace") if known else ""

    page = replay_page(made.denoised, piece)
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise GuidedError(
            f"cannot write the replay: {error.strerror}", where=str(path), remedy="Name another file."
        ) from error
