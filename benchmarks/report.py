"""A run of the suite as one JSON file, one Markdown page and its plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from results import Bar, Curves, Result, Table

__all__ = ["as_text", "write_report"]


def write_report(folder: Path, parts: Sequence[Mapping[str, Any]]) -> Path:
    """Write ``report.json``, ``report.md`` and ``plots/`` from the parts' records; the page's path.

    A record is ``{"part", "title", "machine", "setting", "seconds", "result"}``.
    """
    (folder / "report.json").write_text(json.dumps({"parts": list(parts)}, indent=1, ensure_ascii=False))
    results = [(part, Result.from_json(part["result"])) for part in parts]
    lines = ["# Benchmarks", ""]
    lines += _machine([part["machine"] for part in parts])
    bars = [(part["part"], bar) for part, result in results for bar in result.bars]
    if bars:
        lines += ["## Bars", "", *_markdown(_bars_table(bars)), ""]
    for part, result in results:
        lines += [f"## {part['title']}", ""]
        size = "quick" if part["setting"]["quick"] else "full"
        lines += [
            f"Part `{part['part']}`, {size}, {part['seconds']:.0f} s, commit {part['machine']['commit'][:12]}.",
            "",
        ]
        for table in result.tables:
            lines += [f"**{table.title}**", "", *_markdown(table), ""]
            if table.note:
                lines += [table.note, ""]
        for number, curves in enumerate(result.curves):
            name = f"plots/{part['part']}-{number}.png"
            if save_plot(curves, folder / name):
                lines += [f"![{curves.title}]({name})", ""]
    lines += [
        "Times depend on the machine and on what else runs on it. Within a part the engines take turns, so compare "
        "columns of one part, not of two reports.",
        "",
    ]
    page = folder / "report.md"
    page.write_text("\n".join(lines))
    return page


def _machine(machines: Sequence[Mapping[str, Any]]) -> list[str]:
    if not machines:
        return []
    facts = {name: list(dict.fromkeys(str(one.get(name, "")) for one in machines)) for name in machines[0]}
    return [*(f"- {name.replace('_', ' ')}: {', '.join(values)}" for name, values in facts.items()), ""]


def _bars_table(bars: Sequence[tuple[str, Bar]]) -> Table:
    rows = [[part, bar.what, bar.measured, bar.allowed, bar.unit, "yes" if bar.holds else "NO"] for part, bar in bars]
    return Table("bars", ["part", "figure", "measured", "at most", "unit", "holds"], rows)


def as_text(cell: Any) -> str:
    """A table's cell: thousands set apart, four digits at least, ``-`` for nothing."""
    if cell is None:
        return "-"
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"


def _markdown(table: Table) -> list[str]:
    head = "| " + " | ".join(table.columns) + " |"
    rule = "|" + "|".join("---" if number == 0 else "---:" for number in range(len(table.columns))) + "|"
    rows = ["| " + " | ".join(as_text(cell).replace("|", "\\|") for cell in row) + " |" for row in table.rows]
    return [head, rule, *rows]


def save_plot(curves: Curves, path: Path) -> bool:
    """Draw lines to a file; False, and no file, without matplotlib or without a point."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None or not any(curves.lines.values()):
        return False
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.lines.items():
        axes.plot([x for x, _ in points], [y for _, y in points], marker="o", markersize=3, label=name)
    if curves.log_x:
        axes.set_xscale("log")
    if curves.log_y:
        axes.set_yscale("log")
    axes.set_xlabel(curves.x)
    axes.set_ylabel(curves.y)
    axes.set_title(curves.title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)
    return True
