"""`guided version`: what is installed."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Annotated

import typer

from guided.cli.output import print_json, print_text

__all__ = ["version", "version_text"]

SHOWN = ("numba", "torch", "transformers", "lark", "jsonschema", "sqlalchemy")
"""The packages whose versions a report of a problem needs."""


def version_text() -> str:
    """The one line of ``--version``."""
    import guided

    return f"guided {guided.__version__}"


def version(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Print the versions of guided, Python and the libraries that guided uses."""
    import guided

    versions: dict[str, str | None] = {"guided": guided.__version__, "python": platform.python_version()}
    for name in SHOWN:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    if as_json:
        print_json(versions)
        return
    for name, found in versions.items():
        print_text(f"{name:<13} {found or 'not installed'}")
