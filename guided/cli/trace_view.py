"""Showing a trace: the tokens coloured by the probability that the mask took away, and a table of the changed steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from guided.cli.trace import TracedToken

__all__ = ["show_trace"]

SHADES = ((0.9, "white on red3"), (0.5, "black on dark_orange"), (0.1, "black on yellow"), (0.01, "black on green"))
"""From which removed probability which colour is used."""
TABLED = 0.1
"""Steps that lost at least this much are listed."""


def show_trace(console: Console, steps: Sequence[TracedToken]) -> None:
    """Print the tokens in colour, a legend, and in numbers the steps that lost the most."""
    from rich.table import Table
    from rich.text import Text

    line = Text()
    for step in steps:
        line.append(_visible(step.text), style=_shade(step.removed))
    console.print(line, soft_wrap=True)
    legend = Text("probability that the mask took away: ", style="dim")
    for least, style in reversed(SHADES):
        legend.append(f" {least:.0%}+ ", style=style)
    console.print(legend)
    changed = [step for step in steps if step.removed >= TABLED]
    if not changed:
        console.print(Text(f"the mask took less than {TABLED:.0%} at every step", style="dim"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name, side in (("step", "right"), ("written", "left"), ("its probability", "right"), ("taken away", "right")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    table.add_column("likeliest without the mask")
    for number, step in enumerate(steps, 1):
        if step.removed >= TABLED:
            table.add_row(
                str(number),
                Text(repr(step.text)),
                f"{step.probability:.1%}",
                f"{step.removed:.1%}",
                Text(repr(step.preferred)),
            )
    console.print(table)


def _shade(removed: float) -> str:
    return next((style for least, style in SHADES if removed >= least), "")


def _visible(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t")
