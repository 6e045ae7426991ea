"""`guided serve`: a model behind OpenAI's endpoints, and a page to see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import Device, Model, Offline
from guided.cli.output import print_note, print_text
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.hf import LoadedModel
    from guided.server.api.settings import Settings

__all__ = ["serve"]

_NAMED = "What requests may name"
_SAFETY = "Safety"


@dataclass(frozen=True)
class Named:
    """Steerers, drafts and databases, each NAME=WHAT, as the command line says it."""

    db: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=URL", help="A database, as --db of `guided sql`.", rich_help_panel=_NAMED),
    ] = None
    steer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=METHOD:KEY=VALUE,..",
            help="A steerer, as --steer of `guided extract`.",
            rich_help_panel=_NAMED,
        ),
    ] = None
    draft: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=DRAFT]", help="A draft, as --draft of `guided extract`.", rich_help_panel=_NAMED),
    ] = None
    alias: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Another name of the model, for clients that know only some.", rich_help_panel=_NAMED
        ),
    ] = None
    tool_style: Annotated[
        str,
        typer.Option(metavar="STYLE", help="How the model writes calls: `guided.ToolStyle`.", rich_help_panel=_NAMED),
    ] = "hermes"
    reasoning: Annotated[
        str | None,
        typer.Option(
            metavar="BEGIN,END",
            help="What stands around the model's reasoning, such as `<think>,</think>`; BEGIN is empty where the chat "
            "template ends with it.",
            rich_help_panel=_NAMED,
        ),
    ] = None


@dataclass(frozen=True)
class Guarding:
    """Who may ask, how much at once, and what is written down."""

    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Bearer keys, one a line; so does GUIDED_API_KEY give one.", rich_help_panel=_SAFETY
        ),
    ] = None
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A site whose pages may ask, by CORS.", rich_help_panel=_SAFETY),
    ] = None
    max_body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Of a request.", rich_help_panel=_SAFETY)] = (
        2 << 20
    )
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="Texts that grow at once.", rich_help_panel=_SAFETY)] = (
        64
    )
    waiting: Annotated[
        int, typer.Option(min=0, metavar="N", help="Texts that wait; more are answered 429.", rich_help_panel=_SAFETY)
    ] = 512
    grace: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="For what runs, once told to stop.", rich_help_panel=_SAFETY),
    ] = 30.0
    log_contents: Annotated[
        bool, typer.Option("--log-contents", help="Write bodies of requests to the log.", rich_help_panel=_SAFETY)
    ] = False


@with_option_blocks
def serve(
    model: Model = "nano",
    device: Device = None,
    offline: Offline = False,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for all of this machine's.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8000,
    named: Named = Named(),
    guarding: Guarding = Guarding(),
) -> None:
    """Serve a model to OpenAI's clients, and a page at `/`.

    Answers are exact: schemas, grammars, tools and databases of requests are enforced to the letter, or refused with
    what to do. The server listens to this machine alone unless --host says otherwise.

    **Examples:**

        guided serve
        guided serve --model Qwen/Qwen2.5-0.5B-Instruct --db shop=sqlite:///shop.db
        guided serve --steer careful=contrastive:model=nano-amateur,alpha=0.1 --draft auto
        GUIDED_API_KEY=secret guided serve --host 0.0.0.0 --port 8080
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise GuidedError(
            f"{error.name} is not installed", remedy="Install the extra: pip install 'guided-decoding[serve]'."
        ) from error
    from guided.cli.models import load_model
    from guided.cli.progress import kernel_compilation
    from guided.server.api import serving
    from guided.server.api.service import Service
    from guided.server.scheduling import Scheduler, SchedulerLimits

    keys = _keys(guarding.key_file)
    listening = serving.bound(host, port)
    loaded = load_model(model, device=device, offline=offline, quiet=False)

    def load(name: str) -> LoadedModel:
        return load_model(name, device=device, offline=offline, quiet=False)

    settings = _settings(loaded, load, named, guarding, keys, serving.is_local(host))
    with kernel_compilation(quiet=False):
        serving.warm(loaded)
    limits = SchedulerLimits(rows=guarding.rows, waiting=guarding.waiting)
    service = Service(loaded, Scheduler(loaded, limits), settings)
    if not keys and not serving.is_local(host):
        print_note("everybody who reaches this address may use the server: GUIDED_API_KEY or --key-file asks for a key")
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    serving.serve(service, listening, lambda: print_text(f"{loaded.name} is served at {address}/ and {address}/v1"))


def _keys(path: Path | None) -> tuple[str, ...]:
    """The keys of the file and of the environment; raises `GuidedError` for a file without any."""
    import os

    found = [os.environ["GUIDED_API_KEY"]] if os.environ.get("GUIDED_API_KEY") else []
    if path is not None:
        try:
            lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise GuidedError(f"the keys cannot be read: {error}", where="--key-file", remedy="Name a file.") from error
        if not any(lines):
            raise GuidedError("the file has no key", where="--key-file", remedy="Write one key a line.")
        found += [line for line in lines if line]
    return tuple(found)


def _settings(
    loaded: LoadedModel, load: Callable[[str], LoadedModel], named: Named, guarding: Guarding, keys: tuple[str, ...],
    local: bool,
) -> Settings:  # fmt: skip
    from guided.cli.methods.drafting import drafting_of
    from guided.cli.methods.steering import sources_of, steering_stack
    from guided.grammar.sql import reflect
    from guided.grammar.tags import ToolStyle
    from guided.server.api.settings import Settings, Thinking

    sources = sources_of(loaded, load)
    pairs = _pairs(named.steer, "--steer")
    # Requests draw or take the likeliest: a draft that draws is right for both.
    drafts = {name: drafting_of(what or name, sources.base, load, greedy=False) for name, what in _names(named.draft)}
    styles = [style.value for style in ToolStyle]
    if named.tool_style not in styles:
        raise GuidedError(
            f"there is no style {named.tool_style!r}", where="--tool-style", remedy=f"Use one of {', '.join(styles)}."
        )
    thinking = None
    if named.reasoning is not None:
        begin, comma, end = named.reasoning.partition(",")
        if not comma or not end:
            raise GuidedError("reasoning without an end", where="--reasoning", remedy="Write BEGIN,END.")
        thinking = Thinking(begin or None, end)
    return Settings(
        aliases=tuple(named.alias or ()), keys=keys, local=local, origins=tuple(guarding.allow_origin or ()),
        most_bytes=guarding.max_body, grace_seconds=guarding.grace, tool_style=ToolStyle(named.tool_style),
        thinking=thinking, log_contents=guarding.log_contents,
        databases={name: reflect(url) for name, url in _pairs(named.db, "--db").items()},
        steerers={name: steering_stack([what], sources) for name, what in pairs.items()}, drafts=drafts,
    )  # fmt: skip


def _names(given: Sequence[str] | None) -> list[tuple[str, str]]:
    """Names, each with what stands behind ``=``, if anything does."""
    return [(name, what) for name, _, what in (each.partition("=") for each in given or ())]


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Names with what they stand for; raises `GuidedError` where one is missing."""
    found = _names(given)
    for name, what in found:
        if not name or not what:
            raise GuidedError("a name without what it stands for", where=option, remedy=f"Write {option} NAME=WHAT.")
    return dict(found)
