"""How much work a constraint may do, in counted steps: the same error on every machine, never a time-out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds after which `guided.LimitError` is raised.

    >>> Limits(step_work=1_000).step_work
    1000
    """

    step_work: int = 100_000_000
    """Parser and walk steps of one ``advance`` or ``fill_mask``; one hostile random grammar took 4 s to use them up."""
    table_items: int = 50_000_000
    """Entries of any one table of a constraint (parser sets, threads): 8 bytes each."""
    search_states: int = 20_000
    """States that one search may visit, as for a shortest completion in the tokens of a vocabulary that lacks bytes.
    Seven steps for each decide, when compiling, which terminals can stand side by side."""
    mask_bytes: int = 64 << 20
    """Memory for remembered masks of one constraint; the least recently made half is dropped when it is full."""
    steps: int = 1 << 20
    """Remembered ``(state, token) -> state`` steps of one constraint, 100 bytes each; the older half is dropped."""
    live_states: int = 1 << 12
    """States of a live language (a database's, a monitor's) that are kept at most; others are read again from their
    texts when they are asked for.  One takes 9 KB for SQLite, and some 100 KB where types are followed."""
    forced_bytes: int = 65_536
    """Longest text that ``forced`` returns at once."""
