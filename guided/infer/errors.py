"""Potentials that break their own laws, samplers that fall short; all else that is raised is in `guided.errors`."""

from __future__ import annotations

from guided.errors import GuidedError

__all__ = ["FewSamplesWarning", "PotentialError"]


class PotentialError(GuidedError):
    """A potential returned NaN or plus infinity, the wrong number of values, or broke monotonicity."""


class FewSamplesWarning(UserWarning):
    """A sampler gave fewer samples than it was asked for."""
