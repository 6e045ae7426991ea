"""Options that several commands share: annotated types, and the blocks that commands which run a model have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "AsJson",
    "Decoding",
    "MaxNewTokens",
    "ModelOptions",
    "SamplerName",
    "SamplingOptions",
    "Spelled",
    "Strict",
    "decoding",
    "searches",
]

_MODEL = "Model"
_DECODING = "Decoding"
_SAMPLING = "Sampling"
_SEARCH = "Search"


class SamplerName(str, Enum):
    """Values of --sampler; `guided.cli.methods.sampling` knows the functions."""

    LOCAL = "local"
    IMPORTANCE = "importance"
    SMC = "smc"
    SMC_STEER = "smc-steer"
    ASAP = "asap"
    CARS = "cars"
    MCMC = "mcmc"
    REJECTION = "rejection"
    BEST_OF_N = "best-of-n"
    EXACT = "exact"


def _steering_help(given: list[str] | None) -> list[str]:
    """Print the methods for ``--steer help``, before anything else is asked for.

    Without any the answer is an empty list: of None typer 0.15 asks the length.
    """
    if given and "help" in given:
        from guided.cli.methods.steering import steering_help

        typer.echo(steering_help())
        raise typer.Exit
    return given or []


def _search_help(given: str | None) -> str | None:
    """Print the searches for ``--search help``."""
    if given == "help":
        from guided.cli.methods.search_methods import search_help

        typer.echo(search_help())
        raise typer.Exit
    return given


Model: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME_OR_PATH",
        help="A packaged model (`nano`; `nano-amateur`, `reviews`, `reviews-positive`, ..), a folder, or a name on the"
        " hub.",
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
Sampler: TypeAlias = Annotated[
    SamplerName | None,
    typer.Option(
        metavar="|".join(name.value for name in SamplerName),
        help="Draw texts from the model's distribution given the constraint, and print the likeliest; masking token by"
        " token, which is `local`, distorts that distribution.",
        rich_help_panel=_SAMPLING,
    ),
]
Particles: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Particles or samples of --sampler.", rich_help_panel=_SAMPLING)
]
Steer: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METHOD:KEY=VALUE,..",
        is_eager=True,
        callback=_steering_help,
        help="Steer the model, such as contrastive:model=NAME_OR_PATH; repeat it, in order. `help` lists the methods.",
        rich_help_panel=_SAMPLING,
    ),
]
Search: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME:KEY=VALUE,..",
        is_eager=True,
        callback=_search_help,
        help="Compare whole texts and print the best, such as beam, best-first:beams=8 or neurologic:beams=8,ahead=3."
        " `help` lists the searches.",
        rich_help_panel=_SEARCH,
    ),
]
MustInclude: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PHRASE",
        help="A text that has to occur in the output (ONE|OTHER: one of them); repeat it for more. Done by the search"
        " `dynamic`, or by grid or neurologic.",
        rich_help_panel=_SEARCH,
    ),
]
MustExclude: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PHRASE",
        help="A text that must not occur in the output (ONE|OTHER: neither); repeat it for more. Done by the search"
        " `neurologic`.",
        rich_help_panel=_SEARCH,
    ),
]
Draft: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="auto|lookup|recycling|ngrams|trigrams|suffixes|copy|small|hydra|medusa|eagle|model:NAME_OR_PATH",
        help="Draft several tokens for each pass of the model: the same texts in fewer passes. `auto` adapts."
        " `small`, `hydra`, `medusa` and `eagle` are nano's own.",
        rich_help_panel=_DECODING,
    ),
]
Replay: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html",
        help="Write the run of --sampler, or how a denoiser fills its canvas, as a page for a browser.",
        rich_help_panel=_SAMPLING,
    ),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help='One JSON object on standard output; {"error": {...}} if it fails.')
]


Spelled: TypeAlias = Annotated[
    str,
    typer.Option(
        "--spelling",
        metavar="plain|any",
        help="JSON as programs write it, or every spelling of strings and numbers and any white space.",
    ),
]

Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Objects hold all members that the schema declares, and no others.")
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


@dataclass(frozen=True)
class SamplingOptions:
    """How texts are drawn or searched and what steers the model, as the command line says it."""

    sampler: Sampler = None
    particles: Particles = 16
    steer: Steer = None
    search: Search = None
    must_include: MustInclude = None
    must_exclude: MustExclude = None
    replay: Replay = None
    draft: Draft = None


def searches(sampling: SamplingOptions) -> bool:
    """True where the options ask for a search."""
    return sampling.search is not None or bool(sampling.must_include or sampling.must_exclude)


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
