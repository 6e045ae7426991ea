"""How the days of two centuries are written, each of which is in the calendar."""

from __future__ import annotations

__all__ = ["DAY"]

DAY = (
    "(19|20)[0-9]{2}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
    "|(19|20)([02468][48]|[13579][26]|[2468]0)-02-29|2000-02-29"
)
