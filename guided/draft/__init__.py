"""Speculation: drafts that accelerate decoding under constraints and steering, and change nothing of what comes out."""

from __future__ import annotations

from guided.draft.drafter import Context, Drafter, Observed
from guided.draft.policy import Fixed, Policy, Round
from guided.draft.proposal import Drawn, Group, Proposal, chain
from guided.draft.speculate import Speculated, speculate
from guided.draft.statistics import Statistics

__all__ = [
    "Context",
    "Drafter",
    "Drawn",
    "Fixed",
    "Group",
    "Observed",
    "Policy",
    "Proposal",
    "Round",
    "Speculated",
    "Statistics",
    "chain",
    "speculate",
]
