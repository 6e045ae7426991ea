"""Where a batch is answered, as the command line says it: here, or on Ray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from guided.errors import GuidedError

__all__ = ["RayOptions", "check_ray"]


@dataclass(frozen=True)
class RayOptions:
    """Whether a batch runs on Ray, as the command line says it."""

    ray: Annotated[
        bool, typer.Option("--ray", help="Answer a batch on Ray: the cluster of RAY_ADDRESS, else this machine.")
    ] = False
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Workers on Ray, each with its own model.")] = 2


def check_ray(place: RayOptions, *, is_batch: bool) -> None:
    """Raise `GuidedError` where there is no batch to answer on Ray."""
    if place.ray and not is_batch:
        raise GuidedError("only a batch is answered on Ray", where="--ray", remedy="Add --batch.")
