"""Options that several commands share: annotated types, and the block that every command which runs a model has."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

__all__ = ["AsJson", "Decoding", "MaxNewTokens", "ModelOptions", "decoding", "runs_a_model"]

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


@dataclass(frozen=True)
class ModelOptions:
    """Which model runs, where, and how it chooses tokens, as the command line says it."""

    model: Model = "nano"
    sample: Sample = False
    temperature: Temperature = None
    seed: Seed = 0
    device: Device = None
    offline: Offline = False


def runs_a_model(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of `ModelOptions` where its parameter ``running`` stands, which gets them together."""
    hints = get_type_hints(command, include_extras=True)
    shared = get_type_hints(ModelOptions, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name != "running":
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))
            continue
        for field in dataclasses.fields(ModelOptions):
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(field.name, kind, default=field.default, annotation=shared[field.name]))

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        chosen = {field.name: given.pop(field.name) for field in dataclasses.fields(ModelOptions)}
        command(**given, running=ModelOptions(**chosen))

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def decoding(max_new_tokens: int | None, running: ModelOptions) -> Decoding:
    """How tokens are chosen, from the options of a command line.

    >>> decoding(None, ModelOptions(temperature=0.0)).temperature, decoding(None, ModelOptions(sample=True)).temperature
    (None, 1.0)
    """
    temperature = running.temperature
    if temperature == 0.0:
        return Decoding(max_new_tokens, None, running.seed)
    drawn = 1.0 if temperature is None and running.sample else temperature
    return Decoding(max_new_tokens, drawn, running.seed)
