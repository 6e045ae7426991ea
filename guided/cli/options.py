"""Options that several commands share, as annotated types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "AsJson",
    "Decoding",
    "Device",
    "MaxNewTokens",
    "Model",
    "Offline",
    "Sample",
    "Seed",
    "Temperature",
    "decoding",
]

_MODEL = "Model"
_DECODING = "Decoding"

Model: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME_OR_PATH",
        help="The packaged model `nano`, a folder, or a name on the hub.",
        rich_help_panel=_MODEL,
    ),
]
Device: TypeAlias = Annotated[
    str | None,
    typer.Option(help="cpu, cuda, cuda:1, mps; by default the first accelerator.", rich_help_panel=_MODEL),
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Do not ask the hub: local files and its cache only.", rich_help_panel=_MODEL)
]
MaxNewTokens: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Most tokens to write. The output is steered to be whole within them, never cut.",
        rich_help_panel=_DECODING,
    ),
]
Sample: TypeAlias = Annotated[
    bool, typer.Option("--sample", help="Draw tokens instead of taking the likeliest.", rich_help_panel=_DECODING)
]
Temperature: TypeAlias = Annotated[
    float | None,
    typer.Option(
        min=0.0, metavar="T", help="Draw at this temperature (implies --sample; 0: do not).", rich_help_panel=_DECODING
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the draws.", rich_help_panel=_DECODING)]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help='One JSON object on standard output; {"error": {...}} if it fails.')
]


@dataclass(frozen=True)
class Decoding:
    """How tokens are chosen; ``temperature`` None is greedy, ``max_new_tokens`` None leaves it to the model's room."""

    max_new_tokens: int | None = None
    temperature: float | None = None
    seed: int = 0


def decoding(max_new_tokens: int | None, sample: bool, temperature: float | None, seed: int) -> Decoding:
    """The options of a command line together.

    >>> decoding(None, False, 0.0, 1).temperature, decoding(None, True, None, 1).temperature
    (None, 1.0)
    """
    if temperature == 0.0:
        return Decoding(max_new_tokens, None, seed)
    drawn = 1.0 if temperature is None and sample else temperature
    return Decoding(max_new_tokens, drawn, seed)
