"""A block of options is its fields on the command line, and one value in the command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from guided.cli.methods.blocks import with_option_blocks


@dataclass(frozen=True)
class Place:
    """Two options, of which one must be given."""

    folder: Annotated[str, typer.Option(help="Where.")]
    depth: Annotated[int, typer.Option("--depth", "-d", min=1)] = 3


got: list[tuple[str, Place, bool]] = []


@with_option_blocks
def command(
    name: Annotated[str, typer.Argument(help="What.")],
    place: Place,
    quiet: Annotated[bool, typer.Option("--quiet")] = False,
) -> None:
    """Say what was given."""
    got.append((name, place, quiet))


application = typer.Typer()
application.command()(command)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["x", "--folder", "a"], ("x", Place("a"), False)),
        (["--folder", "a", "-d", "7", "x", "--quiet"], ("x", Place("a", 7), True)),
    ],
)
def test_the_command_gets_the_block(words, expected):
    got.clear()
    assert CliRunner().invoke(application, words).exit_code == 0
    assert got == [expected]


@pytest.mark.parametrize("words", [["x"], ["x", "--folder", "a", "--depth", "0"], ["x", "--place", "a"]])
def test_each_field_is_checked_as_an_option(words):
    got.clear()
    assert CliRunner().invoke(application, words).exit_code == 2
    assert not got


def test_the_help_lists_the_fields_in_their_order():
    shown = CliRunner().invoke(application, ["--help"]).stdout
    assert shown.index("--folder") < shown.index("--depth") < shown.index("--quiet")
    assert "place" not in shown
