"""`guided eval`: the group of the evaluations, one command a file."""

from __future__ import annotations

import typer

from guided.cli.evaluations.awrs import awrs
from guided.cli.evaluations.decoding import decoding
from guided.cli.evaluations.diffusion import diffusion
from guided.cli.evaluations.jsonschemabench import jsonschemabench
from guided.cli.evaluations.steering_effects import steering
from guided.cli.evaluations.text_to_sql import sql
from guided.cli.exits import EXIT_HELP

__all__ = ["evaluations"]

evaluations = typer.Typer(
    name="eval",
    help=(
        "Evaluations: how much an engine covers, how sound and how fast it is, what samplers draw, what decoding is"
        " worth, what steering moves."
        "\n\nData is read from where you have it; nothing is downloaded. Every run can be stopped and goes on with the"
        " same command."
        "\n\nTry this:"
        "\n\n    guided eval jsonschemabench --data JSONSchemaBench/ --limit 100"
        "\n\n    guided eval awrs --data data/ --limit 20"
        "\n\n    guided eval decoding --limit 20"
        "\n\n    guided eval steering --limit 20"
        "\n\n    guided eval diffusion --limit 20"
        "\n\n    guided eval sql --data spider/ --limit 100"
    ),
    epilog=EXIT_HELP,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


for _command in (jsonschemabench, awrs, decoding, steering, diffusion, sql):
    evaluations.command(epilog=EXIT_HELP)(_command)
