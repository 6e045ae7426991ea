"""The HTML that objects of this package are in a notebook: titles, facts, tables, marked texts.

No scripts, no style sheets, nothing from elsewhere.  Colours are translucent, so that they fit light and dark pages.
What an object shows is said by its own ``_repr_html_``; this file knows only how.  Everything that comes in is text and
is escaped here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

__all__ = ["card", "facts", "marked", "number", "preformatted", "share", "table"]

MOST_CHARACTERS = 20_000
"""Of one text: a notebook keeps what it shows, and longer ones are not read there."""

_DARKEST = 0.55
"""Opacity of the strongest mark: text over it keeps a contrast of 4.5 on white and on black pages."""

_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"

_LEFT = "text-align:left;vertical-align:top"


def card(title: str, *parts: str) -> str:
    """An object: its title and what other functions here made."""
    return f'<div class="guided"><div><b>{_escaped(title)}</b></div>{"".join(parts)}</div>'


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Names and values, a line each."""
    lines = (f'<tr><th style="{_LEFT}">{_escaped(name)}</th>{_cell(value)}</tr>' for name, value in rows)
    return f"<table><tbody>{''.join(lines)}</tbody></table>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], more: int = 0) -> str:
    """Columns under their names; ``more`` rows are said not to be shown."""
    names = "".join(f'<th style="{_LEFT}">{_escaped(name)}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    rest = f"<div>... and {more:,} more</div>" if more > 0 else ""
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>{rest}"


def preformatted(text: str) -> str:
    """A text as it is, its end left out where it is very long."""
    shown, rest = _cut(text)
    return f'<pre style="white-space:pre-wrap">{_escaped(shown)}</pre>{rest}'


def marked(pieces: Iterable[tuple[str, float, str]]) -> str:
    """A text in pieces, each the redder the nearer its number is to 1, with what the pointer shows over it.

    >>> marked([("a", 0.0, "nothing"), ("b", 1.0, "all")])[:60]
    '<pre style="white-space:pre-wrap"><span title="nothing">a</s'
    """
    spans, room = [], MOST_CHARACTERS
    for text, strength, title in pieces:
        if room <= 0:
            spans.append("...")
            break
        room -= len(text)
        opacity = _DARKEST * min(max(strength, 0.0), 1.0)
        # Below a hundredth nobody sees it.
        style = f' style="background:rgba(220,38,38,{opacity:.2f})"' if opacity >= 0.01 else ""
        spans.append(f'<span title="{_escaped(title)}"{style}>{_escaped(text)}</span>')
    return f'<pre style="white-space:pre-wrap">{"".join(spans)}</pre>'


def number(value: float) -> str:
    """Four digits, and an infinity as such."""
    if math.isinf(value):
        return "\N{MINUS SIGN}\N{INFINITY}" if value < 0 else "\N{INFINITY}"
    return "not known" if math.isnan(value) else f"{value:.4g}"


def share(value: float) -> str:
    """A probability in percent."""
    return f"{100 * value:.1f} %" if value >= 0.0005 or value == 0 else "below 0.1 %"


def _cut(text: str) -> tuple[str, str]:
    if len(text) <= MOST_CHARACTERS:
        return text, ""
    return text[:MOST_CHARACTERS], f"<div>... and {len(text) - MOST_CHARACTERS:,} characters more</div>"


def _cell(value: object) -> str:
    shown, rest = _cut(str(value))
    return f'<td style="{_LEFT};white-space:pre-wrap">{_escaped(shown)}{rest}</td>'


def _escaped(text: str) -> str:
    # Controls (a terminal's escapes, NUL) and lone surrogates are nothing in HTML: shown as Python writes them.
    plain = "".join(each if each in "\n\t" or each.isprintable() else _written(each) for each in text)
    return html.escape(plain)


def _written(character: str) -> str:
    # Spaces of other kinds and the joiners of scripts and emoji do not count as printable, and are text all the same.
    is_text = (character.isspace() and ord(character) >= 0xA0) or character in _JOINERS
    return character if is_text else ascii(character)[1:-1]
