"""The one interface to language models, and models that need no transformers; the Transformers model is in `guided.hf`.

Reading order: `model` (the protocols `LanguageModel` and `Sequences`), `table` (exact models for tests), `wrapped` and
`transforms` (models over models), `prefixes` (equal token sequences as equal numbers).  Loads torch.
"""

from guided.lm.model import (
    NOTHING,
    Abilities,
    Calls,
    LanguageModel,
    Needs,
    Scores,
    Sequences,
    Tree,
    check_needs,
    next_logits,
)
from guided.lm.prefixes import Prefixes
from guided.lm.table import TableModel
from guided.lm.transforms import Truncation, transformed
from guided.lm.wrapped import MappedScores, WrappedSequences

__all__ = [
    "NOTHING",
    "Abilities",
    "Calls",
    "LanguageModel",
    "MappedScores",
    "Needs",
    "Prefixes",
    "Scores",
    "Sequences",
    "TableModel",
    "Tree",
    "Truncation",
    "WrappedSequences",
    "check_needs",
    "next_logits",
    "transformed",
]
