"""The names of tasks and methods; what each is, is in `tasks` and `methods`."""

from __future__ import annotations

from enum import Enum

__all__ = ["MethodName", "Mode", "TaskName"]


class TaskName(str, Enum):
    """What is asked of a model."""

    RECORDS = "records"
    """Extract a record whose fields have made-up names; measured: the share of fields that are right."""
    FAMILIAR = "familiar"
    """The same with everyday names."""
    FACTS = "facts"
    """Answer a question from memory, although most texts say something else; measured: right."""
    CONTEXT = "context"
    """Answer a question from a context that contradicts memory; measured: right."""
    REVIEW = "review"
    """Go on with a review, the one task without a right answer; measured: new sentences that make sense."""


class Mode(str, Enum):
    """Whether a grammar speaks."""

    FREE = "free"
    CONSTRAINED = "constrained"


class MethodName(str, Enum):
    """Ways to decode."""

    GREEDY = "greedy"
    BEAM = "beam"
    DIVERSE_BEAM = "diverse-beam"
    CONTRASTIVE_SEARCH = "contrastive-search"
    CONTRASTIVE_DECODING = "contrastive-decoding"
    DOLA = "dola"
    FSD = "fsd"
    FSD_D = "fsd-d"
    SAMPLING = "sampling"
    TEMPERATURE = "temperature"
    TOP_P = "top-p"
    TOP_K = "top-k"
    MIN_P = "min-p"
    ETA = "eta"
    TYPICAL = "typical"
    MIROSTAT = "mirostat"
    FAST_SLOW = "fast-slow"
    """FS-GEN."""
    DRAFT_FIRST = "draft-first"
    """DCCD: ``think="draft"``; only with a grammar."""
