"""The error of a potential that breaks its own laws; everything else raised here is in `guided.errors`."""

from __future__ import annotations

from guided.errors import GuidedError

__all__ = ["PotentialError"]


class PotentialError(GuidedError):
    """A potential returned NaN or plus infinity, the wrong number of values, or broke monotonicity."""
